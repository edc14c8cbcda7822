//===- TensorPiece.h - A rank's piece of a tensor ---------------*- C++ -*-===//
//
// Which elements of a whole tensor a rank holds, by the tensor's layout. Both
// the whole and the piece are contiguous and row-major; `flat` indices count
// elements in that order. A piece may reach beyond the whole: what is there is
// padding.
//
//   whole 5 x 3, rows padded to 6 and cut in two      piece of rank 1: 3 x 3
//     rows 0 1 2 | 3 4 (5)                              rows 3 4 and padding
//
// A plain value without heap storage.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_TENSORPIECE_H
#define MEGA_RUNTIME_PLAN_TENSORPIECE_H

#include "runtime/plan/Layout.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace mega {

/// Flat indices begin .. end - 1.
struct FlatRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const FlatRange &, const FlatRange &) = default;
};

class TensorPiece {
public:
  TensorPiece() = default;
  /// The piece of rank number `rank` of a tensor of `shape`.
  TensorPiece(std::span<const int64_t> shape, const Layout &layout,
              const Mesh &mesh, int64_t rank);

  /// Elements of the piece, padding included.
  int64_t elements() const;
  /// Elements of the tensor.
  int64_t wholeElements() const;
  std::span<const int64_t> localShape() const {
    return std::span(local).first(static_cast<size_t>(rank_));
  }

  /// visit(piece, whole, count) for the elements `range` of the piece, in
  /// order, by runs that are contiguous in both: `count` elements from `piece`
  /// on are those from `whole` on, or padding if `whole` is -1.
  template <typename Visit>
  void forEachRun(FlatRange range, Visit &&visit) const {
    for (int64_t at = range.begin; at < range.end;) {
      const Run run = runAt(at);
      const int64_t count = std::min(run.count, range.end - at);
      visit(at, run.whole, count);
      at += count;
    }
  }

private:
  struct Run {
    int64_t whole;
    int64_t count;
  };
  /// The longest run that begins at element `flat` of the piece.
  Run runAt(int64_t flat) const;

  static constexpr int kMaxRank = Layout::kMaxRank;
  int rank_ = 0;
  std::array<int64_t, kMaxRank> whole = {1, 1, 1, 1};
  std::array<int64_t, kMaxRank> local = {1, 1, 1, 1};
  /// Of the piece's first element in the whole.
  std::array<int64_t, kMaxRank> first = {};
  /// The last dimension that is cut or padded, 0 if none is; those after it are
  /// as in the whole, `inner` elements.
  int cut = 0;
  int64_t inner = 1;
};

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_TENSORPIECE_H
