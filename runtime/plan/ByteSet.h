//===- ByteSet.h - Sets of bytes of a region --------------------*- C++ -*-===//
//
// What the verifier's abstract memory is made of: exact sets of bytes, built
// from boxes. A box is the extent of a buffer, `rows` runs of `width` bytes,
// `stride` apart:
//
//   |width|            rows = 3
//   #######....#######....#######
//   ^begin     ^begin + stride
//
// A set holds intervals and, as long as they do not add up to whole rows,
// column slices: the three slices q, k, v of a [rows, 3n] buffer become one
// interval once all are in. Slices of different strides that meet are split
// into rows, so that answers stay exact; a set that would need more than
// kMaxRows pieces for that sets `overflowed`, which callers treat as a failed
// proof.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_BYTESET_H
#define MEGA_RUNTIME_PLAN_BYTESET_H

#include "runtime/plan/Shape.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace mega {

struct Box {
  int64_t begin = 0;
  int64_t width = 0;
  int64_t stride = 0;
  int64_t rows = 1;

  static Box interval(int64_t begin, int64_t end) {
    return {begin, end - begin, end - begin, 1};
  }
  /// The bytes of a buffer of `type` at `offset`.
  static Box of(const BufferType &type, int64_t offset);

  /// One past the last byte.
  int64_t end() const { return begin + (rows - 1) * stride + width; }
  bool isInterval() const { return rows == 1; }
  Box shifted(int64_t bytes) const {
    return {begin + bytes, width, stride, rows};
  }
  friend bool operator==(const Box &, const Box &) = default;
};

/// Whether the boxes share a byte; exact.
bool overlap(const Box &a, const Box &b);
/// Whether every byte of `inner` is in `outer`; exact.
bool contains(const Box &outer, const Box &inner);

/// Disjoint intervals, neighbours merged: begin -> end.
class IntervalSet {
public:
  void add(int64_t begin, int64_t end);
  void subtract(int64_t begin, int64_t end);
  bool covers(int64_t begin, int64_t end) const;
  bool overlaps(int64_t begin, int64_t end) const;
  bool empty() const { return runs.empty(); }
  const std::map<int64_t, int64_t> &intervals() const { return runs; }

private:
  std::map<int64_t, int64_t> runs;
};

class ByteSet {
public:
  static constexpr int64_t kMaxRows = int64_t{1} << 20;

  ByteSet() = default;
  explicit ByteSet(const Box &box) { add(box); }

  void add(const Box &box);
  void add(const ByteSet &other, int64_t shift = 0);
  void subtract(const Box &box);
  void subtract(const ByteSet &other);

  /// All of `box` is in the set.
  bool covers(const Box &box) const;
  bool covers(const ByteSet &other) const { return !firstMissing(other); }
  bool overlaps(const Box &box) const;
  bool overlaps(const ByteSet &other, int64_t shift = 0) const;
  bool empty() const { return plain.empty() && slices.empty(); }
  /// The first byte of `other` that is not here.
  std::optional<int64_t> firstMissing(const ByteSet &other) const;
  /// First byte and one past the last; not for the empty set.
  std::pair<int64_t, int64_t> hull() const;
  /// Disjoint boxes that make up the set, in no particular order.
  std::vector<Box> boxes() const;

  /// The set got too fine to represent; it is no longer exact.
  bool overflowed() const { return tooFine; }

private:
  /// Columns of `rows` rows from `base`: 0 <= column < stride.
  struct Slice {
    int64_t base;
    int64_t stride;
    int64_t rows;
    IntervalSet columns;

    int64_t begin() const;
    int64_t end() const;
  };
  /// Columns of `box` in the grid of `slice`, if it fits.
  static std::optional<std::pair<int64_t, int64_t>>
  columnsIn(const Slice &slice, const Box &box);
  void addRows(const Slice &slice);
  /// Splits slices that reach into [begin, end) into rows.
  void split(int64_t begin, int64_t end);
  void subtractFromIntervals(const Box &box);

  IntervalSet plain;
  std::vector<Slice> slices;
  bool tooFine = false;
};

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_BYTESET_H
