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
#include "runtime/cpu/AttentionMask.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/rows/Rows.h"
#include "runtime/plan/Philox.h"

#include <algorithm>

namespace mega {

/// Queries and keys of one block of scores: 64 KiB, within a second-level
/// cache together with the rows it is made from.
inline constexpr int64_t kQueryBlock = 128;
inline constexpr int64_t kKeyBlock = 128;

struct AttentionProblem {
  /// Keys are those of a ring, of which a rank has a part.
  int64_t batch, queries, keys, heads, kvHeads, dim;
  /// Of all samples, row after row.
  Places queryPlaces, keyPlaces;
  bool causal;
  /// 0: unlimited.
  int64_t window;
  float scale;
  /// Of the scores; 0: none.
  float softcap;
  /// Dropout: nothing is dropped when the threshold is 0.
  uint32_t threshold;
  float keptFactor;
  PhiloxKey key;
  int64_t firstSample;
  int64_t firstHead;

  /// `places`: none, or positions and segments of queries, then of keys.
  AttentionProblem(const KernelContext &ctx, const KernelArguments &args,
                   const View &q, const View &k, std::span<const View> places)
      : batch(q.dims[0]), queries(q.dims[1]),
        keys(places.empty() ? k.dims[1] : places[2].dims[1]), heads(q.dims[2]),
        kvHeads(k.dims[2]), dim(q.dims[3]), causal(args.integers.last(4)[0]),
        window(args.integers.last(4)[1]),
        scale(static_cast<float>(args.floats[0])),
        softcap(static_cast<float>(args.floats[2])),
        threshold(dropoutThreshold(args.floats[1])),
        keptFactor(static_cast<float>(1 / (1 - args.floats[1]))),
        key(toPhiloxKey(dropoutKey(ctx.scalars.seed, ctx.scalars.step,
                                   args.integers.last(4)[2], ctx.application))),
        firstSample(ctx.firstSample), firstHead(args.integers.last(4)[3]) {
    if (!places.empty()) {
      queryPlaces = {places[0].as<int32_t>(), places[1].as<int32_t>()};
      keyPlaces = {places[2].as<int32_t>(), places[3].as<int32_t>()};
    }
  }

  int64_t group() const { return heads / kvHeads; }

  AttentionMask maskOf(int64_t b) const { return maskOf(b, {0, keys}); }
  /// With some of the keys, which count from 0 then.
  AttentionMask maskOf(int64_t b, Range some) const {
    return {causal,
            window,
            queries,
            some.size(),
            queryPlaces.from(b * queries),
            keyPlaces.from(b * keys + some.begin)};
  }

  PhiloxCounter counter(int64_t b, int64_t h, int64_t query,
                        int64_t firstKey) const {
    return attentionCounter(firstSample + b, firstHead + h, query,
                            firstKey / 4);
  }

  /// Drops elements out of `row`, the scores of a query against `keys`, and
  /// multiplies the others by `factor`: those of `seen`, and possibly some
  /// before them.
  void dropOut(const AttentionMask &mask, int64_t b, int64_t h, int64_t query,
               Range keys, Range seen, float factor, float *row) const;
};

/// Rows of keys and values of every sample: `count` of them from row `first`
/// on.
struct KeyRows {
  View k, v;
  int64_t first, count;
};

/// Row `first` of one head of a [batch, sequence, heads, dim] buffer.
template <typename T>
Matrix<T> headRows(const View &view, int64_t b, int64_t h, int64_t first) {
  return {view.row<T>(b * view.dims[1] + first) + h * view.dims[3],
          view.rowStride};
}
inline Matrix<const float> constant(Matrix<float> m) {
  return {m.data, m.stride};
}

/// A thread's scratch: two blocks of scores, six f32 blocks of rows of bf16
/// operands, and the rest.
class AttentionScratch {
public:
  AttentionScratch(std::span<std::byte> scratch, int64_t dim)
      : floats(reinterpret_cast<float *>(scratch.data())),
        size(static_cast<int64_t>(scratch.size() / sizeof(float))), dim(dim) {}

  float *scores(int i) const { return floats + i * kQueryBlock * kKeyBlock; }
  /// Block `i` of at most kQueryBlock rows.
  Matrix<float> block(int i) const {
    return {scores(2) + i * kQueryBlock * dim, dim};
  }
  /// Behind the blocks, and how many rows there are.
  Matrix<float> rest() const { return block(kBlocks); }
  int64_t restRows() const {
    return (size - 2 * kQueryBlock * kKeyBlock) / dim - kBlocks * kQueryBlock;
  }

private:
  static constexpr int kBlocks = 6;
  static_assert(kQueryBlock == kKeyBlock);
  static_assert((2 * kQueryBlock * kKeyBlock +
                 kBlocks * kQueryBlock * kMaxBf16HeadDim) *
                    sizeof(float) <=
                ThreadPool::kScratchBytes);

  float *floats;
  int64_t size, dim;
};

/// Rows of one head as f32: where they are, or widened into `copy`.
inline Matrix<const float> readHead(const View &view, int64_t b, int64_t h,
                                    Range range, Matrix<float> copy) {
  if (view.type == DataType::F32) {
    return constant(headRows<float>(view, b, h, range.begin));
  }
  const Matrix<BFloat16> from = headRows<BFloat16>(view, b, h, range.begin);
  for (int64_t r = 0; r < range.size(); ++r) {
    rows::widen(from.data + r * from.stride, copy.data + r * copy.stride,
                view.dims[3]);
  }
  return constant(copy);
}

/// Rounds `from` to rows of one head of a bf16 buffer.
inline void writeHead(const View &view, int64_t b, int64_t h, Range range,
                      Matrix<float> from) {
  const Matrix<BFloat16> to = headRows<BFloat16>(view, b, h, range.begin);
  for (int64_t r = 0; r < range.size(); ++r) {
    rows::narrow(from.data + r * from.stride, to.data + r * to.stride,
                 view.dims[3]);
  }
}

} // namespace mega

#endif // MEGA_RUNTIME_CPU_ATTENTIONPROBLEM_H
