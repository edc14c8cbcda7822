#include "runtime/cpu/AttentionProblem.h"

#include "runtime/cpu/DropoutRow.h"

namespace mega {

void AttentionProblem::dropOut(const AttentionMask &mask, int64_t b, int64_t h,
                               int64_t query, Range keys, Range seen,
                               float factor, float *row) const {
  if (!mask.isPacked()) {
    // From a multiple of four keys, as the counter counts.
    const int64_t begin = seen.begin / 4 * 4;
    row += begin - keys.begin;
    rows::dropout(counter(b, h, query, begin), key, threshold, factor, row, row,
                  seen.end - begin);
    return;
  }
  const int64_t place = mask.placeOfQuery(query);
  while (!seen.isEmpty()) {
    const int64_t count = mask.keysInARow(seen);
    float *run = row + (seen.begin - keys.begin);
    dropoutFrom(
        int64_t{mask.placeOfKey(seen.begin)},
        [&](int64_t quad) { return counter(b, h, place, 4 * quad); }, key,
        threshold, factor, run, run, count);
    seen.begin += count;
  }
}

} // namespace mega
