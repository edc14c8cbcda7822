#include "runtime/cpu/AttentionMask.h"

namespace mega {
namespace {

using Limits = std::numeric_limits<int32_t>;

/// Smallest and largest; nothing if the smallest is larger.
struct Bounds {
  int32_t least = Limits::max();
  int32_t most = Limits::min();

  void add(int32_t value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  bool isEmpty() const { return least > most; }
};

Bounds segmentsOf(const Places &places, Range rows) {
  Bounds bounds;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    bounds.add(places.segments[i]);
  }
  return bounds;
}

/// Of the rows whose segment is one of `segments`.
Bounds positionsOf(const Places &places, Range rows, const Bounds &segments) {
  Bounds bounds;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    if (places.segments[i] >= segments.least &&
        places.segments[i] <= segments.most) {
      bounds.add(places.positions[i]);
    }
  }
  return bounds;
}

} // namespace

AttentionMask::Sight AttentionMask::sightOf(int64_t i) const {
  const int32_t position = query.positions[i];
  const int64_t first = position - window + 1;
  return {query.segments[i],
          window == 0 || first < Limits::min() ? Limits::min()
                                               : static_cast<int32_t>(first),
          causal ? position : Limits::max()};
}

bool AttentionMask::placesMeet(Range queryRows, Range keyRows) const {
  const Bounds of = segmentsOf(query, queryRows);
  const Bounds in = segmentsOf(key, keyRows);
  const Bounds common = {std::max(of.least, in.least),
                         std::min(of.most, in.most)};
  if (common.isEmpty()) {
    return false;
  }
  const Bounds from = positionsOf(query, queryRows, common);
  const Bounds to = positionsOf(key, keyRows, common);
  return !from.isEmpty() && !to.isEmpty() &&
         (!causal || to.least <= from.most) &&
         (window == 0 || int64_t{from.least} - to.most < window);
}

Range AttentionMask::seenPlaces(int64_t i, Range rows) const {
  const Sight sight = sightOf(i);
  while (!rows.isEmpty() && !sees(sight, rows.begin)) {
    ++rows.begin;
  }
  while (!rows.isEmpty() && !sees(sight, rows.end - 1)) {
    --rows.end;
  }
  return rows;
}

void AttentionMask::hidePlaces(int64_t i, Range rows, float *scores) const {
  const Sight sight = sightOf(i);
  for (int64_t j = rows.begin; j < rows.end; ++j) {
    float &score = scores[j - rows.begin];
    score = sees(sight, j) ? score : -std::numeric_limits<float>::infinity();
  }
}

} // namespace mega
