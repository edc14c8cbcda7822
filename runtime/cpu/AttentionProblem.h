//===- AttentionProblem.h - Shapes and masks of attention -------*- C++ -*-===//
//
// What attention and its gradient share: sizes, which keys a query sees, and
// the cut into blocks. Tiled with an online softmax as in FlashAttention (Dao,
// Fu, Ermon, Rudra, Re, 2022; Dao, 2023): scores exist for one block of
// queries and keys at a time, and blocks without a visible pair are skipped.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_ATTENTIONPROBLEM_H
#define MEGA_RUNTIME_CPU_ATTENTIONPROBLEM_H

#include "runtime/core/Kernel.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/plan/Philox.h"

#include <algorithm>

namespace mega {

/// Queries and keys of one block of scores: 64 KiB, within a second-level
/// cache together with the rows it is made from.
inline constexpr int64_t kQueryBlock = 128;
inline constexpr int64_t kKeyBlock = 128;

struct Range {
  int64_t begin, end;

  int64_t size() const { return end - begin; }
  bool isEmpty() const { return end <= begin; }
  Range operator&(const Range &other) const {
    return {std::max(begin, other.begin), std::min(end, other.end)};
  }
};

struct AttentionProblem {
  int64_t batch, sequence, heads, kvHeads, dim;
  bool causal;
  /// 0: unlimited.
  int64_t window;
  float scale;
  /// Dropout: nothing is dropped when the threshold is 0.
  uint32_t threshold;
  float keptFactor;
  PhiloxKey key;
  int64_t firstSample;

  AttentionProblem(const KernelContext &ctx, const KernelArguments &args,
                   const View &q, const View &k)
      : batch(q.dims[0]), sequence(q.dims[1]), heads(q.dims[2]),
        kvHeads(k.dims[2]), dim(q.dims[3]), causal(args.integers[0]),
        window(args.integers[1]), scale(static_cast<float>(args.floats[0])),
        threshold(dropoutThreshold(args.floats[1])),
        keptFactor(static_cast<float>(1 / (1 - args.floats[1]))),
        key(toPhiloxKey(dropoutKey(ctx.scalars.seed, ctx.scalars.step,
                                   args.integers[2], ctx.application))),
        firstSample(ctx.firstSample) {}

  int64_t group() const { return heads / kvHeads; }

  /// The keys that query i sees.
  Range visibleKeys(int64_t i) const {
    return {window ? std::max<int64_t>(0, i - window + 1) : 0,
            causal ? i + 1 : sequence};
  }
  /// The keys that any of the queries sees.
  Range visibleKeys(Range queries) const {
    return {visibleKeys(queries.begin).begin, visibleKeys(queries.end - 1).end};
  }
  /// The queries that see any of the keys.
  Range visibleQueries(Range keys) const {
    return {causal ? keys.begin : 0,
            window ? std::min(sequence, keys.end - 1 + window) : sequence};
  }

  PhiloxCounter counter(int64_t b, int64_t h, int64_t query,
                        int64_t firstKey) const {
    return attentionCounter(firstSample + b, h, query, firstKey / 4);
  }
};

/// Rows [first, ...) of one head of a [batch, sequence, heads, dim] buffer.
inline Matrix<float> headRows(const View &view, int64_t b, int64_t h,
                              int64_t first) {
  return {view.row<float>(b * view.dims[1] + first) + h * view.dims[3],
          view.rowStride};
}
inline Matrix<const float> constant(Matrix<float> m) {
  return {m.data, m.stride};
}

} // namespace mega

#endif // MEGA_RUNTIME_CPU_ATTENTIONPROBLEM_H
