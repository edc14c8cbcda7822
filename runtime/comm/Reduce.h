//===- Reduce.h - Reductions in rank order ----------------------*- C++ -*-===//
//
// The one definition of what a reduction computes; every implementation of
// Communicator calls it, so they agree bit for bit.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_REDUCE_H
#define MEGA_RUNTIME_COMM_REDUCE_H

#include "runtime/plan/DataType.h"
#include "runtime/plan/Layout.h"

#include <cstdint>
#include <span>

namespace mega {

/// For i in 0 .. count - 1: every output[i] = ((s0[i] . s1[i]) . s2[i]) ...
/// over the sources in order. An output may be one of the sources, not overlap
/// one otherwise. bf16 is combined in f32 and rounded once. `max` and `min`
/// take a NaN over any number and the earlier of two equal values. `or` only
/// for integers. Allocates nothing; works in blocks that stay in the cache.
void reduce(std::span<const void *const> sources,
            std::span<void *const> outputs, int64_t count, DataType type,
            Reduction reduction, bool large = false);

} // namespace mega

#endif // MEGA_RUNTIME_COMM_REDUCE_H
