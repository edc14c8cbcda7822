//===- Partition.h - Which stage computes which layers ----------*- C++ -*-===//
//
// A model is a row of units: the calls before its repeated blocks (embedding),
// the applications of those blocks (layers), the calls after them (head). A
// pipeline cuts the row into parts, one for each chunk of each stage, in model
// order:
//
//   units   E  L L L  L L L L  L L L H        begin  0  4  8  12
//   parts   |- 0 --|  |- 1 -|  |- 2 -|
//
// Every unit lies in one part and no part is empty. `balance` chooses the cuts
// by cost, `parseStages` takes them from a user. No IR and no state.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_PASSES_PARTITION_H
#define MEGA_PASSES_PARTITION_H

#include "runtime/plan/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mega {

struct PartitionUnit {
  /// Time of its forward and backward, in any unit: finite and not negative.
  double cost;
  /// 'E': a call before the repeated blocks; 'L': one application of a
  /// repeated block; 'H': a call after them.
  char kind;
};

/// In order, as in `1 embedding, 3 layers, 1 head`.
std::string describe(std::span<const PartitionUnit> units);

/// The cuts with the least costly largest part. Among those, the ones with the
/// smallest sum of squares, so that the other parts are even as well; among
/// those, the ones whose first cut is earliest, then the second, and so on:
/// early stages hold the most micro-batches.
///
/// Exact in steps of 2^-30 of the total cost: costs that differ by rounding
/// are the same. parts * n log n operations.
///
/// Returns parts + 1 ascending indices: part p holds the units
/// [begin[p], begin[p + 1]). Fails (Code::Failed) on more parts than units.
StatusOr<std::vector<int64_t>> balance(std::span<const PartitionUnit> units,
                                       int64_t parts);

/// The cuts that a user wrote, as `E 3L | 4L | 3L H`: parts in model order,
/// each a list of kinds with a count in front of more than one. Every unit has
/// to be placed, in order. Text of another form is Code::Usage, text that does
/// not fit the model or the number of parts Code::Failed. Messages count parts
/// from 0 and name no flag.
StatusOr<std::vector<int64_t>> parseStages(std::string_view text,
                                           std::span<const PartitionUnit> units,
                                           int64_t parts);

} // namespace mega

#endif // MEGA_PASSES_PARTITION_H
