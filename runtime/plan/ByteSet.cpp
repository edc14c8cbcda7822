//===- ByteSet.cpp - Sets of bytes of a region ----------------------------===//
#include "runtime/plan/ByteSet.h"

#include <algorithm>

namespace mega {
namespace {

/// Whether some r in [0, rows) has lo <= r * stride <= hi.
bool rowBetween(int64_t lo, int64_t hi, int64_t stride, int64_t rows) {
  if (hi < 0 || lo > hi) {
    return false;
  }
  const int64_t first = lo <= 0 ? 0 : (lo + stride - 1) / stride;
  return first < rows && first * stride <= hi;
}

} // namespace

Box Box::of(const BufferType &type, int64_t offset) {
  const int64_t size = byteSize(type.type);
  if (type.isContiguous()) {
    return interval(offset, offset + type.extentBytes());
  }
  return {offset, type.rowSize() * size, type.rowStride * size, type.rows()};
}

bool overlap(const Box &a, const Box &b) {
  if (a.end() <= b.begin || b.end() <= a.begin) {
    return false;
  }
  if (a.isInterval() && b.isInterval()) {
    return true;
  }
  if (a.isInterval()) {
    return overlap(b, a);
  }
  // Row r of a is [a.begin + r*stride, + width). It meets row 0 of b iff
  // b.begin - a.begin - a.width < r*stride < b.begin - a.begin + b.width.
  const auto meets = [&a](int64_t begin, int64_t width) {
    return rowBetween(begin - a.begin - a.width + 1,
                      begin - a.begin + width - 1, a.stride, a.rows);
  };
  if (b.isInterval()) {
    return meets(b.begin, b.width);
  }
  if (a.stride == b.stride) {
    // Only the difference of the row numbers matters: -(b.rows-1) ..
    // a.rows-1.
    const int64_t shift = (b.rows - 1) * b.stride;
    return rowBetween(b.begin - a.begin - a.width + 1 + shift,
                      b.begin - a.begin + b.width - 1 + shift, a.stride,
                      a.rows + b.rows - 1);
  }
  const Box &fewer = a.rows < b.rows ? a : b;
  const Box &other = a.rows < b.rows ? b : a;
  for (int64_t r = 0; r < fewer.rows; ++r) {
    const int64_t begin = fewer.begin + r * fewer.stride;
    if (overlap(other, Box::interval(begin, begin + fewer.width))) {
      return true;
    }
  }
  return false;
}

bool contains(const Box &outer, const Box &inner) {
  return ByteSet(outer).covers(inner);
}

void IntervalSet::add(int64_t begin, int64_t end) {
  if (begin >= end) {
    return;
  }
  auto it = runs.upper_bound(begin);
  if (it != runs.begin() && std::prev(it)->second >= begin) {
    --it;
    begin = it->first;
    end = std::max(end, it->second);
  }
  while (it != runs.end() && it->first <= end) {
    end = std::max(end, it->second);
    it = runs.erase(it);
  }
  runs.emplace(begin, end);
}

void IntervalSet::subtract(int64_t begin, int64_t end) {
  if (begin >= end) {
    return;
  }
  auto it = runs.upper_bound(begin);
  if (it != runs.begin() && std::prev(it)->second > begin) {
    --it;
  }
  while (it != runs.end() && it->first < end) {
    const auto [from, to] = *it;
    it = runs.erase(it);
    if (from < begin) {
      runs.emplace(from, begin);
    }
    if (to > end) {
      runs.emplace(end, to);
    }
  }
}

bool IntervalSet::covers(int64_t begin, int64_t end) const {
  auto it = runs.upper_bound(begin);
  return begin >= end || (it != runs.begin() && std::prev(it)->second >= end);
}

bool IntervalSet::overlaps(int64_t begin, int64_t end) const {
  auto it = runs.lower_bound(end);
  return begin < end && it != runs.begin() && std::prev(it)->second > begin;
}

int64_t ByteSet::Slice::begin() const {
  return base + columns.intervals().begin()->first;
}

int64_t ByteSet::Slice::end() const {
  return base + (rows - 1) * stride + columns.intervals().rbegin()->second;
}

std::optional<std::pair<int64_t, int64_t>>
ByteSet::columnsIn(const Slice &slice, const Box &box) {
  const int64_t first = box.begin - slice.base;
  if (box.stride != slice.stride || box.rows != slice.rows || first < 0 ||
      first + box.width > slice.stride) {
    return std::nullopt;
  }
  return std::pair(first, first + box.width);
}

void ByteSet::addRows(const Slice &slice) {
  const auto count =
      static_cast<int64_t>(slice.columns.intervals().size()) * slice.rows;
  if (count > kMaxRows) {
    tooFine = true;
    return;
  }
  for (const auto &[from, to] : slice.columns.intervals()) {
    for (int64_t r = 0; r < slice.rows; ++r) {
      const int64_t row = slice.base + r * slice.stride;
      plain.add(row + from, row + to);
    }
  }
}

void ByteSet::split(int64_t begin, int64_t end) {
  for (size_t i = 0; i < slices.size();) {
    if (slices[i].end() <= begin || slices[i].begin() >= end) {
      ++i;
      continue;
    }
    const Slice slice = std::move(slices[i]);
    slices.erase(slices.begin() + static_cast<int64_t>(i));
    addRows(slice);
  }
}

void ByteSet::add(const Box &box) {
  if (box.isInterval()) {
    plain.add(box.begin, box.end());
    return;
  }
  if (plain.covers(box.begin, box.end())) {
    return;
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    Slice &slice = slices[i];
    // A slice to the left of all so far moves the grid, while it fits.
    const int64_t left = slice.base - box.begin;
    if (box.stride == slice.stride && box.rows == slice.rows && left > 0 &&
        slice.columns.intervals().rbegin()->second + left <= slice.stride) {
      IntervalSet moved;
      for (const auto &[from, to] : slice.columns.intervals()) {
        moved.add(from + left, to + left);
      }
      slice.base = box.begin;
      slice.columns = std::move(moved);
    }
    const auto columns = columnsIn(slice, box);
    if (!columns) {
      continue;
    }
    slice.columns.add(columns->first, columns->second);
    if (slice.columns.covers(0, slice.stride)) {
      plain.add(slice.base, slice.base + slice.rows * slice.stride);
      slices.erase(slices.begin() + static_cast<int64_t>(i));
    }
    return;
  }
  Slice slice{box.begin, box.stride, box.rows, {}};
  slice.columns.add(0, box.width);
  slices.push_back(std::move(slice));
}

void ByteSet::add(const ByteSet &other, int64_t shift) {
  for (const Box &box : other.boxes()) {
    add(box.shifted(shift));
  }
  tooFine |= other.tooFine;
}

void ByteSet::subtractFromIntervals(const Box &box) {
  if (!plain.overlaps(box.begin, box.end())) {
    return;
  }
  if (plain.covers(box.begin, box.end())) {
    // What is left between the columns is a slice again.
    plain.subtract(box.begin, box.end());
    const int64_t gap = box.stride - box.width;
    if (gap > 0) {
      add(box.rows == 2
              ? Box::interval(box.begin + box.width, box.begin + box.stride)
              : Box{box.begin + box.width, gap, box.stride, box.rows - 1});
    }
    return;
  }
  if (box.rows > kMaxRows) {
    tooFine = true;
    return;
  }
  for (int64_t r = 0; r < box.rows; ++r) {
    const int64_t row = box.begin + r * box.stride;
    plain.subtract(row, row + box.width);
  }
}

void ByteSet::subtract(const Box &box) {
  if (box.isInterval()) {
    std::erase_if(slices, [&box](const Slice &slice) {
      return box.begin <= slice.begin() && slice.end() <= box.end();
    });
    split(box.begin, box.end());
    plain.subtract(box.begin, box.end());
    return;
  }
  // Slices first: what the intervals leave behind is free of the box.
  for (size_t i = 0; i < slices.size();) {
    Slice &slice = slices[i];
    if (slice.end() <= box.begin || box.end() <= slice.begin()) {
      ++i;
    } else if (const auto columns = columnsIn(slice, box)) {
      slice.columns.subtract(columns->first, columns->second);
      if (slice.columns.empty()) {
        slices.erase(slices.begin() + static_cast<int64_t>(i));
      } else {
        ++i;
      }
    } else {
      const Slice rows = std::move(slice);
      slices.erase(slices.begin() + static_cast<int64_t>(i));
      addRows(rows);
    }
  }
  subtractFromIntervals(box);
}

void ByteSet::subtract(const ByteSet &other) {
  for (const Box &box : other.boxes()) {
    subtract(box);
  }
  tooFine |= other.tooFine;
}

bool ByteSet::covers(const Box &box) const {
  if (plain.covers(box.begin, box.end())) {
    return true;
  }
  for (const Slice &slice : slices) {
    const auto columns = columnsIn(slice, box);
    if (columns && slice.columns.covers(columns->first, columns->second)) {
      return true;
    }
  }
  // Several pieces together may still cover it, unless it is an interval that
  // meets no slice: plain intervals are merged.
  const bool meetsSlice =
      std::any_of(slices.begin(), slices.end(), [&box](const Slice &slice) {
        return slice.begin() < box.end() && box.begin < slice.end();
      });
  if ((box.isInterval() && !meetsSlice) || !overlaps(box)) {
    return false;
  }
  return !overflowed() && !firstMissing(ByteSet(box));
}

bool ByteSet::overlaps(const Box &box) const {
  if (box.isInterval() && plain.overlaps(box.begin, box.end())) {
    return true;
  }
  if (!box.isInterval()) {
    const auto &runs = plain.intervals();
    auto it = runs.upper_bound(box.begin);
    if (it != runs.begin()) {
      --it;
    }
    for (; it != runs.end() && it->first < box.end(); ++it) {
      if (overlap(box, Box::interval(it->first, it->second))) {
        return true;
      }
    }
  }
  for (const Slice &slice : slices) {
    for (const auto &[from, to] : slice.columns.intervals()) {
      if (overlap({slice.base + from, to - from, slice.stride, slice.rows},
                  box)) {
        return true;
      }
    }
  }
  return false;
}

bool ByteSet::overlaps(const ByteSet &other, int64_t shift) const {
  const std::vector<Box> all = other.boxes();
  return std::any_of(all.begin(), all.end(), [&](const Box &box) {
    return overlaps(box.shifted(shift));
  });
}

std::optional<int64_t> ByteSet::firstMissing(const ByteSet &other) const {
  if (other.empty()) {
    return std::nullopt;
  }
  ByteSet rest = other;
  const auto [begin, end] = other.hull();
  auto it = plain.intervals().upper_bound(begin);
  if (it != plain.intervals().begin()) {
    --it;
  }
  for (; it != plain.intervals().end() && it->first < end; ++it) {
    rest.subtract(Box::interval(it->first, it->second));
  }
  for (const Slice &slice : slices) {
    for (const auto &[from, to] : slice.columns.intervals()) {
      rest.subtract({slice.base + from, to - from, slice.stride, slice.rows});
    }
  }
  if (rest.overflowed()) {
    return other.hull().first;
  }
  if (rest.empty()) {
    return std::nullopt;
  }
  return rest.hull().first;
}

std::pair<int64_t, int64_t> ByteSet::hull() const {
  int64_t begin = INT64_MAX;
  int64_t end = INT64_MIN;
  for (const Box &box : boxes()) {
    begin = std::min(begin, box.begin);
    end = std::max(end, box.end());
  }
  return {begin, end};
}

std::vector<Box> ByteSet::boxes() const {
  std::vector<Box> all;
  for (const auto &[begin, end] : plain.intervals()) {
    all.push_back(Box::interval(begin, end));
  }
  for (const Slice &slice : slices) {
    for (const auto &[from, to] : slice.columns.intervals()) {
      all.push_back({slice.base + from, to - from, slice.stride, slice.rows});
    }
  }
  return all;
}

} // namespace mega
