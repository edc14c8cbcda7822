//===- SequenceOrder.h - Which tokens of a row a rank has -------*- C++ -*-===//
//
// Context parallelism cuts the rows of a batch over the ranks of cp. Under a
// causal mask the last of equal contiguous pieces would see most of the keys,
// so there are two more orders:
//
//   zigzag      2n chunks, rank r has chunks r and 2n - 1 - r
//                 n = 2    | 0 | 1 | 2 | 3 |     rank 0: 0 3    rank 1: 1 2
//   balanced    of packed documents: the data loader permutes the tokens of a
//               row, so that contiguous pieces of what it makes see equally
//               much (runtime/data/BalanceSequence.h)
//
// Zigzag is part of a layout: the tensor is in its logical order, and a piece
// is two runs of it. Balanced is in the data: to layouts the pieces are
// contiguous.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_SEQUENCEORDER_H
#define MEGA_RUNTIME_PLAN_SEQUENCEORDER_H

#include "runtime/plan/Status.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace mega {

/// Numeric values are part of the plan format; append only.
enum class SequenceOrder : uint8_t { Contiguous = 0, Zigzag = 1, Balanced = 2 };
constexpr std::string_view name(SequenceOrder order) {
  return order == SequenceOrder::Zigzag     ? "zigzag"
         : order == SequenceOrder::Balanced ? "balanced"
                                            : "contiguous";
}

/// Elements begin .. begin + length - 1 of a sequence.
struct SequenceRun {
  int64_t begin = 0;
  int64_t length = 0;

  int64_t end() const { return begin + length; }
  friend bool operator==(const SequenceRun &, const SequenceRun &) = default;
};

/// What a rank has of a sequence, in its order.
struct SequencePiece {
  std::array<SequenceRun, 2> runs;
  int count = 1;

  const SequenceRun *begin() const { return runs.data(); }
  const SequenceRun *end() const { return runs.data() + count; }
};

/// Piece `piece` of `pieces` of `extent` elements, which divide into them (into
/// twice as many for a zigzag).
constexpr SequencePiece pieceOf(bool zigzag, int64_t piece, int64_t pieces,
                                int64_t extent) {
  if (!zigzag) {
    const int64_t length = extent / pieces;
    return {{{{piece * length, length}}}, 1};
  }
  const int64_t length = extent / (2 * pieces);
  return {
      {{{piece * length, length}, {(2 * pieces - 1 - piece) * length, length}}},
      2};
}

/// Whether `extent` divides so; names the nearest ones that do.
Status checkPieces(bool zigzag, int64_t pieces, int64_t extent);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_SEQUENCEORDER_H
