#include "passes/Buffers.h"

#include <algorithm>

namespace mega {

int Buffers::addPackedRoot(int64_t rows, int64_t rowSize,
                           int64_t elementBytes) {
  Root root;
  root.rows = rows;
  root.rowSize = rowSize;
  root.elementBytes = elementBytes;
  allRoots.push_back(root);
  return rootCount() - 1;
}

int Buffers::addData(int64_t rows, int64_t rowSize, int64_t elementBytes) {
  Data data;
  data.root = addPackedRoot(rows, rowSize, elementBytes);
  data.width = rowSize;
  allData.push_back(data);
  allRoots.back().members.push_back(dataCount() - 1);
  return dataCount() - 1;
}

void Buffers::defineAt(int index, int64_t launch) {
  data(index).def = std::min(data(index).def, launch);
}

void Buffers::useAt(int index, int64_t launch) {
  data(index).lastUse = std::max(data(index).lastUse, launch);
}

void Buffers::allowInPlace(int operand, int result) {
  inPlace.insert({operand, result});
}

bool Buffers::isSaved(int index) const {
  const Root &r = root(index);
  return std::any_of(r.members.begin(), r.members.end(),
                     [&](int member) { return data(member).saved; });
}

bool Buffers::isFree(int index) const {
  const Root &r = rootOf(index);
  return !r.fixed &&
         std::all_of(r.members.begin(), r.members.end(), [&](int member) {
           return data(member).column == 0 && data(member).width == r.rowSize;
         });
}

/// Whether two data of one root would destroy each other: columns in common and
/// lives that overlap. Lives may touch in a launch that works in place.
bool Buffers::conflict(const Data &a, int indexA, const Data &b,
                       int indexB) const {
  if (a.column + a.width <= b.column || b.column + b.width <= a.column) {
    return false;
  }
  const bool aFirst = a.def <= b.def;
  const Data &first = aFirst ? a : b;
  const Data &second = aFirst ? b : a;
  if (first.lastUse < second.def) {
    return false;
  }
  const std::pair<int, int> pair =
      aFirst ? std::pair(indexA, indexB) : std::pair(indexB, indexA);
  return !(first.lastUse == second.def && inPlace.count(pair) != 0);
}

bool Buffers::place(int index, int target, int64_t column) {
  const int source = data(index).root;
  if (source == target) {
    return data(index).column == column;
  }
  if (!isFree(index)) {
    return false;
  }
  const Root &from = root(source);
  const Root &to = root(target);
  if (from.rows != to.rows || from.elementBytes != to.elementBytes ||
      column + from.rowSize > to.rowSize) {
    return false;
  }
  if (to.fixed && isSaved(source)) {
    return false;
  }
  for (int moving : from.members) {
    Data moved = data(moving);
    if (moved.contiguous && from.rowSize != to.rowSize) {
      return false;
    }
    moved.column += column;
    for (int member : to.members) {
      if (conflict(moved, moving, data(member), member)) {
        return false;
      }
    }
  }
  for (int moving : from.members) {
    data(moving).root = target;
    data(moving).column += column;
    root(target).members.push_back(moving);
  }
  root(source).members.clear();
  return true;
}

bool Buffers::share(int operand, int result) {
  const Data &a = data(operand);
  const Data &b = data(result);
  if (a.root == b.root) {
    return a.column == b.column;
  }
  if (a.width != b.width) {
    return false;
  }
  return place(result, a.root, a.column) || place(operand, b.root, b.column);
}

} // namespace mega
