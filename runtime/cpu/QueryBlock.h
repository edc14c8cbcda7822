//===- QueryBlock.h - The online softmax of attention -----------*- C++ -*-===//
#ifndef MEGA_RUNTIME_CPU_QUERYBLOCK_H
#define MEGA_RUNTIME_CPU_QUERYBLOCK_H

#include "runtime/cpu/AttentionProblem.h"

#include <cmath>
#include <limits>

namespace mega {

/// One block of queries of one head, while it meets block after block of keys.
struct QueryBlock {
  const AttentionProblem &problem;
  AttentionMask mask;
  int64_t b, h;
  Range queries;
  Matrix<float> out;
  /// Scores, then unnormalised probabilities, [queries, kKeyBlock].
  float *scores;
  float max[kQueryBlock];
  float sum[kQueryBlock];
  /// Whether `out` holds nothing yet.
  bool first = true;

  void clear() {
    std::fill_n(max, kQueryBlock, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, kQueryBlock, 0.0f);
  }

  /// Turns row r of the scores against `keys` into probabilities on the scale
  /// of the largest score so far, and brings the row's output to that scale.
  void softmaxRow(int64_t r, Range keys) {
    const int64_t query = queries.begin + r;
    float *row = scores + r * kKeyBlock;
    const Range seen = mask.seen(query, keys);
    if (seen.isEmpty()) {
      std::fill_n(row, keys.size(), 0.0f);
      return;
    }
    float *begin = row + (seen.begin - keys.begin);
    if (problem.softcap != 0) {
      rows::softcap(problem.softcap, begin, seen.size());
    }
    mask.hide(query, seen, begin);
    const float best = std::max(max[r], rows::maximum(begin, seen.size()));
    const float correction = std::exp(max[r] - best);
    if (!first && correction != 1.0f) {
      float *target = out.data + r * out.stride;
      rows::scale(correction, target, target, problem.dim);
    }
    max[r] = best;
    sum[r] = sum[r] * correction + rows::expInPlace(best, begin, seen.size());
    std::fill(row, begin, 0.0f);
    std::fill(begin + seen.size(), row + keys.size(), 0.0f);
    if (problem.threshold != 0) {
      problem.dropOut(mask, b, h, query, keys, seen, 1.0f, row);
    }
  }

  void meet(Range keys, Matrix<const float> q, Matrix<const float> k,
            Matrix<const float> v) {
    gemmTile({queries.size(), keys.size(), problem.dim, false, true},
             problem.scale, q, k, false, {scores, kKeyBlock});
    for (int64_t r = 0; r < queries.size(); ++r) {
      softmaxRow(r, keys);
    }
    gemmTile({queries.size(), problem.dim, keys.size()}, 1.0f,
             {scores, kKeyBlock}, v, !first, out);
    first = false;
  }

  /// Meets those of the mask's keys that it may see. `q` are its queries.
  void meetAll(Matrix<const float> q, const KeyRows &keys,
               const AttentionScratch &own) {
    const int64_t kvHead = h / problem.group();
    const Range seen = mask.keysSeenBy(queries);
    for (int64_t key = seen.begin / kKeyBlock * kKeyBlock; key < seen.end;
         key += kKeyBlock) {
      const Range range = {key, std::min(seen.end, key + kKeyBlock)};
      if (mask.meet(queries, range)) {
        const Range at = {keys.first + range.begin, keys.first + range.end};
        meet(range, q, readHead(keys.k, b, kvHead, at, own.block(1)),
             readHead(keys.v, b, kvHead, at, own.block(2)));
      }
    }
  }

  /// A row that saw no key is 0, with a log-sum-exp of minus infinity.
  void finish(float *lse) {
    for (int64_t r = 0; r < queries.size(); ++r) {
      float *target = out.data + r * out.stride;
      if (sum[r] == 0) {
        std::fill_n(target, problem.dim, 0.0f);
      } else {
        rows::scale(problem.keptFactor / sum[r], target, target, problem.dim);
      }
      lse[queries.begin + r] = max[r] + std::log(sum[r]);
    }
  }
};
} // namespace mega

#endif // MEGA_RUNTIME_CPU_QUERYBLOCK_H
