//===- AttentionMask.h - Which keys a query sees ----------------*- C++ -*-===//
//
// Of one sample, by rows of queries and keys. Either a row is its position and
// all are one document, or places in documents are given: then the keys that a
// query sees need not follow each other, and `hide` leaves out those between.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_ATTENTIONMASK_H
#define MEGA_RUNTIME_CPU_ATTENTIONMASK_H

#include <algorithm>
#include <cstdint>
#include <limits>

namespace mega {

struct Range {
  int64_t begin, end;

  int64_t size() const { return end - begin; }
  bool isEmpty() const { return end <= begin; }
  Range operator&(const Range &other) const {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};

/// Positions and segments of rows; null: a row is its position.
struct Places {
  const int32_t *positions = nullptr;
  const int32_t *segments = nullptr;

  Places from(int64_t row) const {
    return positions ? Places{positions + row, segments + row} : Places{};
  }
};

class AttentionMask {
public:
  /// With a window of 0 there is none.
  AttentionMask(bool causal, int64_t window, int64_t queries, int64_t keys,
                Places query, Places key)
      : causal(causal), window(window), queries(queries), keys(keys),
        query(query), key(key) {}

  /// No other key is seen by any of the queries.
  Range keysSeenBy(Range rows) const {
    if (isPacked()) {
      return {0, keys};
    }
    return {rowKeys(rows.begin).begin, rowKeys(rows.end - 1).end};
  }
  /// No other query sees any of the keys.
  Range queriesSeeing(Range rows) const {
    if (isPacked()) {
      return {0, queries};
    }
    return {causal ? rows.begin : 0,
            window ? std::min(queries, rows.end - 1 + window) : queries};
  }
  /// False only if no query of a block sees any key of the other.
  bool meet(Range queryRows, Range keyRows) const {
    return !isPacked() || placesMeet(queryRows, keyRows);
  }
  /// From the first to the last of the keys that query `i` sees.
  Range seen(int64_t i, Range rows) const {
    return isPacked() ? seenPlaces(i, rows) : rowKeys(i) & rows;
  }
  /// Scores of query `i` from key rows.begin on become minus infinity where the
  /// query does not see the key.
  void hide(int64_t i, Range rows, float *scores) const {
    if (isPacked()) {
      hidePlaces(i, rows, scores);
    }
  }

  /// Whether places in documents are given.
  bool isPacked() const { return key.positions != nullptr; }
  /// Places in the row, which count queries and keys where they are given.
  uint32_t placeOfQuery(int64_t i) const { return placeIn(query, i); }
  uint32_t placeOfKey(int64_t j) const { return placeIn(key, j); }
  /// How many of the keys from rows.begin on have places one after another.
  int64_t keysInARow(Range rows) const {
    const uint32_t first = placeOfKey(rows.begin);
    int64_t count = 1;
    while (count < rows.size() && placeOfKey(rows.begin + count) ==
                                      first + static_cast<uint32_t>(count)) {
      ++count;
    }
    return count;
  }

private:
  static uint32_t placeIn(const Places &places, int64_t row) {
    return static_cast<uint32_t>(places.positions[row]) +
           static_cast<uint32_t>(places.segments[row]);
  }
  /// The keys of a segment at positions from `first` to `last` are seen.
  struct Sight {
    int32_t segment, first, last;
  };

  Range rowKeys(int64_t i) const {
    return {window ? std::max<int64_t>(0, i - window + 1) : 0,
            causal ? i + 1 : keys};
  }
  Sight sightOf(int64_t i) const;
  bool sees(const Sight &sight, int64_t j) const {
    return key.segments[j] == sight.segment &&
           key.positions[j] >= sight.first && key.positions[j] <= sight.last;
  }
  bool placesMeet(Range queryRows, Range keyRows) const;
  Range seenPlaces(int64_t i, Range rows) const;
  void hidePlaces(int64_t i, Range rows, float *scores) const;

  bool causal;
  int64_t window, queries, keys;
  Places query, key;
};

} // namespace mega

#endif // MEGA_RUNTIME_CPU_ATTENTIONMASK_H
