//===- Values.h - Numbers for what buffers hold -----------------*- C++ -*-===//
//
// The verifier's second abstract memory: where ByteSet.h knows which bytes were
// written, this knows what was written. A value is a number that stands for the
// content of a buffer; equal numbers mean equal content. A kernel's result gets
// the hash of the kernel, its attributes and the values it read; sums are sums
// modulo a prime, so that they do not depend on their order; zeros are 0.
// Rounding is no part of a value: a cast keeps it.
//
// A buffer need not be read as it was written: part of a value is a slice,
// several values side by side are a concatenation. Both are named by
// coordinates in rows and elements, so that they do not depend on strides,
// addresses or element types.
//
// Two values that differ get equal numbers with a probability of about 2^-60.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_VALUES_H
#define MEGA_RUNTIME_PLAN_VALUES_H

#include "runtime/plan/ByteSet.h"
#include "runtime/plan/Status.h"

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace mega {

/// Below 2^61 - 1; 0 is a buffer of zeros.
using Value = uint64_t;

Value sum(Value a, Value b);
/// Never 0.
Value hashValue(std::span<const uint64_t> words);

/// A block of a buffer: rows and elements of a row.
struct Coordinates {
  int64_t row = 0;
  int64_t column = 0;
  int64_t rows = 0;
  int64_t columns = 0;

  friend auto operator<=>(const Coordinates &, const Coordinates &) = default;
};

/// The block of a value; the value itself is not this.
Value sliceOf(Value value, const Coordinates &block);
/// Values side by side; sorted by coordinates.
Value concatenationOf(std::span<const std::pair<Coordinates, Value>> blocks);

/// How a value is spread over the ranks: the layout, by its number in the plan,
/// of a buffer of `type` (Plan.layouts).
struct Spread {
  uint8_t layout = 0;
  BufferType type;
};

/// What a read finds: a value, and where it came from. (The analyzer takes one
/// that comes out of a std::optional for uninitialized.)
// NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign)
struct ReadValue {
  struct Part {
    /// In what is read.
    Coordinates place;
    Box box;
    /// Of `source`, which it is all of or the block `block` of.
    Value value = 0;
    Value source = 0;
    bool whole = true;
    Coordinates block;
    /// False if nothing wrote it.
    bool written = true;
    /// As `source` was written.
    Spread spread;
  };
  Value value = 0;
  /// One, or several of a concatenation.
  std::vector<Part> parts;
};

/// The values of all regions, at slot 0 and micro-batch 0.
class ValueMemory {
public:
  void write(uint32_t region, const Box &box, const BufferType &type,
             Value value, const Spread &spread = {});
  /// Bytes nothing wrote have the value of their place. Code::BadInput if
  /// buffers overlap in too many pieces to be told apart.
  StatusOr<ReadValue> read(uint32_t region, const Box &box,
                           const BufferType &type);
  /// The region holds nothing any more.
  void clear(uint32_t region);

private:
  struct Entry {
    /// What is left of it.
    Box visible;
    /// As it was written.
    Box box;
    BufferType type;
    Value value = 0;
    Spread spread;
  };
  /// Entries whose hulls meet, the last written last.
  struct Cell {
    int64_t end = 0;
    std::vector<Entry> entries;
  };
  using Key = std::pair<uint32_t, int64_t>; // region, begin

  std::map<Key, Cell>::iterator firstCell(uint32_t region, int64_t begin);
  void insert(uint32_t region, const std::vector<Entry> &entries);
  /// `piece` of what is read, out of `entry` or out of what nothing wrote.
  static void addPart(ReadValue &result, uint32_t region, const Box &box,
                      const BufferType &type, const Box &piece,
                      const Entry *entry);

  std::map<Key, Cell> cells;
  /// Entries looked at, which bounds the work a hostile plan can ask for.
  uint64_t work = 0;
};

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_VALUES_H
