//===- Buffers.h - Which values share memory --------------------*- C++ -*-===//
//
// The placement problem of one function, without IR: *data* (what a value or
// several views of it hold) with a lifetime in launches, and *roots*, the
// buffers they lie in. Data starts in a root of its own; roots are merged where
// values should share memory, if no two data that would overlap are alive at
// the same time.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_PASSES_BUFFERS_H
#define MEGA_PASSES_BUFFERS_H

#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace mega {

class Buffers {
public:
  static constexpr int64_t kBefore = -1;
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  struct Data {
    int root = 0;
    /// First column of the data in the root's rows, and how many (elements).
    int64_t column = 0;
    int64_t width = 0;
    /// Launch that first writes it, last launch that reads it.
    int64_t def = kForever;
    int64_t lastUse = kBefore;
    /// Kept in the block's saved frame: its root must not be fixed.
    bool saved = false;
    /// Some launch needs rows that follow each other: the root has no more in
    /// them.
    bool contiguous = false;
  };
  struct Root {
    /// Rows, row length and element size; equal in all data of the root.
    int64_t rows = 0;
    int64_t rowSize = 0;
    int64_t elementBytes = 0;
    /// The memory exists already: an argument, state, a counter.
    bool fixed = false;
    std::vector<int> members;
  };

  /// New data in a root of its own.
  int addData(int64_t rows, int64_t rowSize, int64_t elementBytes);
  /// A root for side-by-side columns of several data.
  int addPackedRoot(int64_t rows, int64_t rowSize, int64_t elementBytes);

  /// A launch that writes data uses it as well, so call useAt too: else a
  /// result that nobody reads could share memory with another one of its
  /// launch.
  void defineAt(int data, int64_t launch);
  void useAt(int data, int64_t launch);
  /// `result` may be written over `operand`, element for element, by the launch
  /// that defines it, which comes after the one that defines `operand`.
  void allowInPlace(int operand, int result);

  Data &data(int index) { return allData[index]; }
  const Data &data(int index) const { return allData[index]; }
  Root &root(int index) { return allRoots[index]; }
  const Root &root(int index) const { return allRoots[index]; }
  const Root &rootOf(int index) const { return root(data(index).root); }
  int dataCount() const { return static_cast<int>(allData.size()); }
  int rootCount() const { return static_cast<int>(allRoots.size()); }

  bool isSaved(int root) const;
  /// Whether everything in the root of `data` has its full width and the root
  /// may still be moved into another.
  bool isFree(int data) const;
  /// Moves the free root of `data` into `root` at `column`; false if that is
  /// impossible or would overlap something alive.
  bool place(int data, int root, int64_t column);
  /// Makes `result` share the memory of `operand`; false if impossible.
  bool share(int operand, int result);

private:
  bool conflict(const Data &a, int indexA, const Data &b, int indexB) const;

  std::vector<Data> allData;
  std::vector<Root> allRoots;
  std::set<std::pair<int, int>> inPlace;
};

} // namespace mega

#endif // MEGA_PASSES_BUFFERS_H
