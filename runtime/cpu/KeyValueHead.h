//===- KeyValueHead.h - The gradient of one key/value head ------*- C++ -*-===//
#ifndef MEGA_RUNTIME_CPU_KEYVALUEHEAD_H
#define MEGA_RUNTIME_CPU_KEYVALUEHEAD_H

#include "runtime/cpu/AttentionProblem.h"

namespace mega {

/// What meets in one step: blocks of queries of a head and of keys, as f32.
struct Meeting {
  int64_t h;
  Range queries, keys = {};
  Matrix<const float> query = {}, grad = {}, key = {}, value = {};
  /// Sums to add to. Without data: not wanted.
  Matrix<float> gradQ = {}, gradK = {}, gradV = {};
};

/// What attention's gradient reads of queries, and row sums of gradOut * out,
/// which it makes.
struct QueryRows {
  const View &gradOut, &q, &out;
  /// [batch, heads, queries].
  const float *lse;
  float *delta;
};

/// The gradient of one key/value head of one sample. Query heads of its group
/// come in order, and blocks of keys outermost, so every sum has one order.
struct KeyValueHead {
  const AttentionProblem &problem;
  AttentionMask mask;
  const QueryRows &of;
  int64_t b, kvHead;
  AttentionScratch scratch;

  int64_t statistics(int64_t h) const {
    return (b * problem.heads + h) * problem.queries;
  }
  const float *lse(int64_t h) const { return of.lse + statistics(h); }
  float *delta(int64_t h) const { return of.delta + statistics(h); }

  /// The query heads of the group.
  Range heads() const {
    return {kvHead * problem.group(), (kvHead + 1) * problem.group()};
  }
  Range keysFrom(int64_t first, int64_t end) const {
    return {first, std::min(end, first + kKeyBlock)};
  }
  Matrix<const float> read(const View &view, int64_t h, Range range,
                           int block) const {
    return readHead(view, b, h, range, scratch.block(block));
  }
  void clear(Matrix<float> target, int64_t count) const {
    for (int64_t s = 0; s < count; ++s) {
      std::fill_n(target.data + s * target.stride, problem.dim, 0.0f);
    }
  }

  /// delta = row sums of gradOut * out.
  void computeDelta(int64_t h) const {
    of.q.type == DataType::F32 ? sumProducts<float>(h)
                               : sumProducts<BFloat16>(h);
  }

  /// Adds what a block of queries and a block of keys give each other.
  void meet(const Meeting &x) const {
    const int64_t m = x.queries.size(), n = x.keys.size(), dim = problem.dim;
    const Matrix<float> p = {scratch.scores(0), kKeyBlock};
    const Matrix<float> ds = {scratch.scores(1), kKeyBlock};
    gemmTile({m, n, dim, false, true}, problem.scale, x.query, x.key, false, p);
    gemmTile({m, n, dim, false, true}, 1.0f, x.grad, x.value, false, ds);
    for (int64_t r = 0; r < m; ++r) {
      softmaxGradRow(x.h, x.queries.begin + r, x.keys, p.data + r * p.stride,
                     ds.data + r * ds.stride);
    }
    if (x.gradQ.data) {
      gemmTile({m, dim, n}, 1.0f, constant(ds), x.key, true, x.gradQ);
    }
    if (x.gradK.data) {
      gemmTile({n, dim, m, true, false}, 1.0f, constant(ds), x.query, true,
               x.gradK);
      gemmTile({n, dim, m, true, false}, 1.0f, constant(p), x.grad, true,
               x.gradV);
    }
  }

  /// Blocks of queries; body(h, queries).
  template <typename Body> void forQueries(Range range, Body &&body) const {
    for (int64_t h = heads().begin; h < heads().end; ++h) {
      for (int64_t i = range.begin / kQueryBlock * kQueryBlock; i < range.end;
           i += kQueryBlock) {
        body(h, Range{i, std::min(range.end, i + kQueryBlock)});
      }
    }
  }
  /// Those that see any of `keys`.
  template <typename Body>
  void forQueriesSeeing(Range keys, Body &&body) const {
    forQueries(mask.queriesSeeing(keys), [&](int64_t h, Range queries) {
      if (mask.meet(queries, keys)) {
        body(h, queries);
      }
    });
  }

  /// All queries and the mask's keys meet. Sums are f32: of queries in the rows
  /// of gradQ, of keys and values in those of `sums` that `keys` has of its own
  /// views.
  void meetAll(const KeyRows &keys, const View &gradQ,
               const KeyRows &sums) const {
    for (int64_t j = 0; j < keys.count; j += kKeyBlock) {
      const Range range = keysFrom(j, keys.count);
      const Range at = {keys.first + range.begin, keys.first + range.end};
      const Matrix<const float> key = read(keys.k, kvHead, at, 0);
      const Matrix<const float> value = read(keys.v, kvHead, at, 1);
      forQueriesSeeing(range, [&](int64_t h, Range queries) {
        meet({h, queries, range, read(of.q, h, queries, 2),
              read(of.gradOut, h, queries, 3), key, value,
              headRows<float>(gradQ, b, h, queries.begin),
              headRows<float>(sums.k, b, kvHead, sums.first + j),
              headRows<float>(sums.v, b, kvHead, sums.first + j)});
      });
    }
  }

private:
  template <typename T> void sumProducts(int64_t h) const {
    const Matrix<T> grad = headRows<T>(of.gradOut, b, h, 0);
    const Matrix<T> out = headRows<T>(of.out, b, h, 0);
    float *sums = delta(h);
    for (int64_t s = 0; s < problem.queries; ++s) {
      sums[s] = rows::dot(grad.data + s * grad.stride,
                          out.data + s * out.stride, problem.dim);
    }
  }

  /// From scores and gradOut v^T of a row to dropped-out probabilities and
  /// the gradient of the scores (times scale, for the products that follow).
  void softmaxGradRow(int64_t h, int64_t query, Range keys, float *p,
                      float *ds) const {
    const Range seen = mask.seen(query, keys);
    if (seen.isEmpty()) {
      std::fill_n(p, keys.size(), 0.0f);
      std::fill_n(ds, keys.size(), 0.0f);
      return;
    }
    const int64_t skip = seen.begin - keys.begin;
    const int64_t rest = keys.end - seen.end;
    float slope[kKeyBlock];
    if (problem.softcap != 0) {
      rows::softcapWithSlope(problem.softcap, p + skip, slope, seen.size());
    }
    mask.hide(query, seen, p + skip);
    rows::scaledExp(1.0f, lse(h)[query], p + skip, seen.size());
    dropOut(h, query, keys, seen, ds);
    rows::softmaxGrad(p + skip, delta(h)[query], problem.scale, ds + skip,
                      seen.size());
    if (problem.softcap != 0) {
      rows::multiply(ds + skip, slope, ds + skip, seen.size());
    }
    for (float *row : {p, ds}) {
      std::fill_n(row, skip, 0.0f);
      std::fill_n(row + keys.size() - rest, rest, 0.0f);
    }
    dropOut(h, query, keys, seen, p);
  }
  void dropOut(int64_t h, int64_t query, Range keys, Range seen,
               float *row) const {
    if (problem.threshold != 0) {
      problem.dropOut(mask, b, h, query, keys, seen, problem.keptFactor, row);
    }
  }
};

} // namespace mega

#endif // MEGA_RUNTIME_CPU_KEYVALUEHEAD_H
