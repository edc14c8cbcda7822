//===- Values.cpp - Numbers for what buffers hold -------------------------===//
#include "runtime/plan/Values.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <optional>

namespace mega {
namespace {

constexpr Value kPrime = (Value{1} << 61) - 1;
constexpr uint64_t kMaxWork = uint64_t{1} << 26;

/// First words of hashes, apart from any kernel's number.
enum Tag : uint64_t { kSlice = 1 << 20, kConcatenation, kPlace };

/// The block of a buffer of `type` at `container` that `piece` is; a negative
/// row if it is not made of whole rows.
Coordinates coordinatesOf(const Box &container, const BufferType &type,
                          const Box &piece) {
  const int64_t size = byteSize(type.type);
  const int64_t offset = (piece.begin - container.begin) / size;
  const int64_t perRow = type.isContiguous() ? type.rowSize() : type.rowStride;
  const int64_t row = offset / perRow;
  const int64_t column = offset % perRow;
  const int64_t width = piece.width / size;
  if (!piece.isInterval()) {
    return piece.stride == perRow * size
               ? Coordinates{row, column, piece.rows, width}
               : Coordinates{-piece.stride, offset, piece.rows, width};
  }
  if (column == 0 && width % perRow == 0) {
    return {row, 0, width / perRow, perRow};
  }
  return column + width <= perRow ? Coordinates{row, column, 1, width}
                                  : Coordinates{-1, offset, 1, width};
}

/// Whether `inner` is a block of `outer`. Exact but for boxes of two strides,
/// which are taken to lead outside.
bool holds(const Box &outer, const Box &inner) {
  if (outer.isInterval()) {
    return outer.begin <= inner.begin && inner.end() <= outer.end();
  }
  if (inner.begin < outer.begin ||
      (!inner.isInterval() && inner.stride != outer.stride)) {
    return false;
  }
  const int64_t row = (inner.begin - outer.begin) / outer.stride;
  const int64_t column = (inner.begin - outer.begin) % outer.stride;
  return column + inner.width <= outer.width && row + inner.rows <= outer.rows;
}

std::optional<Box> intersection(const Box &a, const Box &b) {
  if (holds(b, a)) {
    return a;
  }
  if (holds(a, b)) {
    return b;
  }
  if (a.isInterval() && b.isInterval()) {
    return Box::interval(std::max(a.begin, b.begin),
                         std::min(a.end(), b.end()));
  }
  return std::nullopt;
}

/// `rows` rows of a block, as an interval if it is one.
void addBlock(std::vector<Box> &boxes, int64_t begin, int64_t width,
              int64_t stride, int64_t rows) {
  if (width <= 0 || rows <= 0) {
    return;
  }
  boxes.push_back(
      rows == 1 || width == stride
          ? Box::interval(begin, begin + (rows - 1) * stride + width)
          : Box{begin, width, stride, rows});
}

/// `from` without `piece`, a part of it, as boxes; false if it wraps around
/// rows.
bool subtract(const Box &from, const Box &piece, std::vector<Box> &rest) {
  if (from.isInterval() && piece.isInterval()) {
    addBlock(rest, from.begin, piece.begin - from.begin, 1, 1);
    addBlock(rest, piece.end(), from.end() - piece.end(), 1, 1);
    return true;
  }
  // Rows of one stride: above, left, right, below. Those of an interval start
  // where it does.
  const int64_t stride = piece.isInterval() ? from.stride : piece.stride;
  if (!from.isInterval() && from.stride != stride) {
    return false;
  }
  const int64_t width = from.isInterval() ? stride : from.width;
  const int64_t above = (piece.begin - from.begin) / stride;
  const int64_t left = (piece.begin - from.begin) % stride;
  const int64_t right = width - left - piece.width;
  if (right < 0) {
    return false;
  }
  const int64_t first = from.begin + above * stride;
  const int64_t last = first + (piece.rows - 1) * stride;
  const int64_t lastWidth =
      std::min(right, from.end() - (last + left + piece.width));
  addBlock(rest, from.begin, width, stride, above);
  addBlock(rest, first, left, stride, piece.rows);
  addBlock(rest, first + left + piece.width, right, stride,
           lastWidth == right ? piece.rows : piece.rows - 1);
  if (lastWidth != right) {
    addBlock(rest, last + left + piece.width, lastWidth, stride, 1);
  }
  if (from.isInterval()) {
    addBlock(rest, last + stride, from.end() - (last + stride), 1, 1);
  } else {
    addBlock(rest, last + stride, width, stride,
             from.rows - above - piece.rows);
  }
  return true;
}

Status tooManyPieces() {
  return badInput("buffers overlap in too many pieces for their values to be "
                  "told apart");
}

} // namespace

Value sum(Value a, Value b) {
  const Value total = a + b;
  return total >= kPrime ? total - kPrime : total;
}

Value hashValue(std::span<const uint64_t> words) {
  return XXH3_64bits(words.data(), words.size_bytes()) % (kPrime - 1) + 1;
}

Value sliceOf(Value value, const Coordinates &block) {
  if (value == 0) {
    return 0;
  }
  return hashValue(std::array{
      uint64_t{kSlice}, value, static_cast<uint64_t>(block.row),
      static_cast<uint64_t>(block.column), static_cast<uint64_t>(block.rows),
      static_cast<uint64_t>(block.columns)});
}

Value concatenationOf(std::span<const std::pair<Coordinates, Value>> blocks) {
  std::vector<uint64_t> words{kConcatenation};
  bool zero = true;
  for (const auto &[place, value] : blocks) {
    zero &= value == 0;
    for (int64_t number :
         {place.row, place.column, place.rows, place.columns}) {
      words.push_back(static_cast<uint64_t>(number));
    }
    words.push_back(value);
  }
  return zero ? 0 : hashValue(words);
}

std::map<ValueMemory::Key, ValueMemory::Cell>::iterator
ValueMemory::firstCell(uint32_t region, int64_t begin) {
  auto it = cells.lower_bound({region, begin});
  if (it != cells.begin()) {
    const auto before = std::prev(it);
    if (before->first.first == region && before->second.end > begin) {
      return before;
    }
  }
  return it;
}

/// Entries that are intervals are disjoint and get cells of their own.
void ValueMemory::insert(uint32_t region, const std::vector<Entry> &entries) {
  const bool intervals =
      std::all_of(entries.begin(), entries.end(),
                  [](const Entry &e) { return e.visible.isInterval(); });
  if (intervals) {
    for (const Entry &entry : entries) {
      const Box &box = entry.visible;
      cells[{region, box.begin}] = {box.end(), {entry}};
    }
    return;
  }
  int64_t begin = entries.front().visible.begin;
  int64_t end = begin;
  for (const Entry &entry : entries) {
    begin = std::min(begin, entry.visible.begin);
    end = std::max(end, entry.visible.end());
  }
  cells[{region, begin}] = {end, entries};
}

void ValueMemory::write(uint32_t region, const Box &box, const BufferType &type,
                        Value value, const Spread &spread) {
  // Reads say so.
  if (work > kMaxWork) {
    return;
  }
  std::vector<Entry> kept;
  auto it = firstCell(region, box.begin);
  while (it != cells.end() && it->first.first == region &&
         it->first.second < box.end()) {
    for (Entry &entry : it->second.entries) {
      ++work;
      const Box &old = entry.visible;
      if (holds(box, old)) {
        continue;
      }
      if (!box.isInterval() || !old.isInterval() || !overlap(box, old)) {
        kept.push_back(entry);
        continue;
      }
      for (const auto &[begin, end] :
           {std::pair(old.begin, box.begin), std::pair(box.end(), old.end())}) {
        if (begin < end) {
          kept.push_back(entry);
          kept.back().visible = Box::interval(begin, end);
        }
      }
    }
    it = cells.erase(it);
  }
  kept.push_back({box, box, type, value, spread});
  insert(region, kept);
}

void ValueMemory::clear(uint32_t region) {
  cells.erase(cells.lower_bound({region, INT64_MIN}),
              cells.upper_bound({region, INT64_MAX}));
}

void ValueMemory::addPart(ReadValue &result, uint32_t region, const Box &box,
                          const BufferType &type, const Box &piece,
                          const Entry *entry) {
  ReadValue::Part part;
  part.place = coordinatesOf(box, type, piece);
  part.box = piece;
  if (!entry) {
    part.written = false;
    part.value = part.source = hashValue(std::array{
        uint64_t{kPlace}, uint64_t{region}, static_cast<uint64_t>(piece.begin),
        static_cast<uint64_t>(piece.width), static_cast<uint64_t>(piece.stride),
        static_cast<uint64_t>(piece.rows)});
  } else {
    part.source = entry->value;
    part.spread = entry->spread;
    part.whole = holds(piece, entry->box);
    part.block = coordinatesOf(entry->box, entry->type, piece);
    part.value = part.whole ? part.source : sliceOf(part.source, part.block);
  }
  result.parts.push_back(part);
}

StatusOr<ReadValue> ValueMemory::read(uint32_t region, const Box &box,
                                      const BufferType &type) {
  ReadValue result;
  std::vector<Box> rest{box};
  for (auto it = firstCell(region, box.begin);
       it != cells.end() && it->first.first == region &&
       it->first.second < box.end() && !rest.empty();
       ++it) {
    const std::vector<Entry> &entries = it->second.entries;
    for (size_t i = entries.size(); i-- > 0 && !rest.empty();) {
      std::vector<Box> left;
      for (const Box &missing : rest) {
        if (++work > kMaxWork) {
          return tooManyPieces();
        }
        if (!overlap(missing, entries[i].visible)) {
          left.push_back(missing);
          continue;
        }
        const auto piece = intersection(missing, entries[i].visible);
        if (!piece || !subtract(missing, *piece, left)) {
          return tooManyPieces();
        }
        addPart(result, region, box, type, *piece, &entries[i]);
      }
      rest = std::move(left);
    }
  }
  for (const Box &missing : rest) {
    addPart(result, region, box, type, missing, nullptr);
  }
  std::sort(result.parts.begin(), result.parts.end(),
            [](const auto &a, const auto &b) { return a.place < b.place; });
  if (result.parts.size() == 1) {
    result.value = result.parts.front().value;
    return result;
  }
  std::vector<std::pair<Coordinates, Value>> blocks;
  blocks.reserve(result.parts.size());
  for (const ReadValue::Part &part : result.parts) {
    blocks.emplace_back(part.place, part.value);
  }
  result.value = concatenationOf(blocks);
  return result;
}

} // namespace mega
