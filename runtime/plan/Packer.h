//===- Packer.h - Places intervals in memory --------------------*- C++ -*-===//
//
// Buffers with lifetimes -> offsets. Two buffers whose lifetimes overlap never
// share a byte. First fit, largest first: simple, deterministic, and close to
// the lower bound (the largest sum alive at one time) on the short lists of a
// block function.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_PACKER_H
#define MEGA_RUNTIME_PLAN_PACKER_H

#include <cstdint>
#include <vector>

namespace mega {

struct PackItem {
  int64_t bytes;
  /// Alive from `first` to `last`, both included.
  int64_t first;
  int64_t last;
  /// Where it lies already, apart from all others alive; -1: to be placed.
  int64_t fixed = -1;
};

struct Packing {
  std::vector<int64_t> offsets;
  /// End of the highest buffer.
  int64_t bytes = 0;
};

/// Offsets are multiples of `alignment` (bytes).
Packing pack(const std::vector<PackItem> &items, int64_t alignment);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_PACKER_H
