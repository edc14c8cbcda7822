//===- AttentionGrad.cpp - Tiled attention, backward ----------------------===//
#include "runtime/cpu/AttentionProblem.h"
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

namespace mega {
namespace {
/// What meets in one step: blocks of queries of a head and of keys, as f32.
struct Meeting {
  int64_t h;
  Range queries, keys = {};
  Matrix<const float> query = {}, grad = {}, key = {}, value = {};
  /// Sums to add to. Without data: not wanted.
  Matrix<float> gradQ = {}, gradK = {}, gradV = {};
};

/// The gradient of one key/value head of one sample. Query heads of its group
/// come in order, and blocks of keys outermost, so every sum has one order.
struct KeyValueHead {
  const AttentionProblem &problem;
  AttentionMask mask;
  /// gradOut, q, k, v.
  std::span<const View> in;
  /// out, lse, gradQ, gradK, gradV, delta.
  std::span<const View> results;
  int64_t b, kvHead;
  AttentionScratch scratch;

  const View &gradOut() const { return in[0]; }
  const View &q() const { return in[1]; }
  const View &k() const { return in[2]; }
  const View &v() const { return in[3]; }
  const View &gradQ() const { return results[2]; }
  const View &gradK() const { return results[3]; }
  const View &gradV() const { return results[4]; }
  float *lse(int64_t h) const { return statistics(results[1], h); }
  float *delta(int64_t h) const { return statistics(results[5], h); }

  float *statistics(const View &view, int64_t h) const {
    return view.as<float>() + (b * problem.heads + h) * problem.queries;
  }

  void clear(Matrix<float> target, int64_t rows) const {
    for (int64_t s = 0; s < rows; ++s) {
      std::fill_n(target.data + s * target.stride, problem.dim, 0.0f);
    }
  }

  /// delta = row sums of gradOut * out.
  template <typename T> void computeDelta(int64_t h) const {
    const Matrix<T> grad = headRows<T>(gradOut(), b, h, 0);
    const Matrix<T> out = headRows<T>(results[0], b, h, 0);
    float *sums = delta(h);
    for (int64_t s = 0; s < problem.queries; ++s) {
      sums[s] = rows::dot(grad.data + s * grad.stride,
                          out.data + s * out.stride, problem.dim);
    }
  }

  /// Drops elements of a row of scores that starts at `firstKey`.
  void dropoutRow(int64_t h, int64_t query, int64_t firstKey, Range seen,
                  float *row) const {
    if (problem.threshold != 0) {
      // From a multiple of four keys, as the counter counts.
      const int64_t begin = seen.begin / 4 * 4;
      row += begin - firstKey;
      rows::dropout(problem.counter(b, h, query, begin), problem.key,
                    problem.threshold, problem.keptFactor, row, row,
                    seen.end - begin);
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
    dropoutRow(h, query, keys.begin, seen, ds);
    rows::softmaxGrad(p + skip, delta(h)[query], problem.scale, ds + skip,
                      seen.size());
    if (problem.softcap != 0) {
      rows::multiply(ds + skip, slope, ds + skip, seen.size());
    }
    for (float *row : {p, ds}) {
      std::fill_n(row, skip, 0.0f);
      std::fill_n(row + keys.size() - rest, rest, 0.0f);
    }
    dropoutRow(h, query, keys.begin, seen, p);
  }

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

  /// The query heads of the group.
  Range heads() const {
    return {kvHead * problem.group(), (kvHead + 1) * problem.group()};
  }
  Range keysFrom(int64_t first, int64_t end) const {
    return {first, std::min(end, first + kKeyBlock)};
  }

  /// Blocks of queries; body(h, queries).
  template <typename Body> void forQueries(Range rows, Body &&body) const {
    for (int64_t h = heads().begin; h < heads().end; ++h) {
      for (int64_t i = rows.begin / kQueryBlock * kQueryBlock; i < rows.end;
           i += kQueryBlock) {
        body(h, Range{i, std::min(rows.end, i + kQueryBlock)});
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

  /// f32: the sums are where the results belong.
  void run() const {
    const auto at = [&](const View &view, int64_t h, int64_t row) {
      return headRows<float>(view, b, h, row);
    };
    clear(at(gradK(), kvHead, 0), problem.keys);
    clear(at(gradV(), kvHead, 0), problem.keys);
    for (int64_t h = heads().begin; h < heads().end; ++h) {
      clear(at(gradQ(), h, 0), problem.queries);
      computeDelta<float>(h);
    }
    for (int64_t j = 0; j < problem.keys; j += kKeyBlock) {
      const Range keys = keysFrom(j, problem.keys);
      forQueriesSeeing(keys, [&](int64_t h, Range queries) {
        const int64_t i = queries.begin;
        meet({h, queries, keys, constant(at(q(), h, i)),
              constant(at(gradOut(), h, i)), constant(at(k(), kvHead, j)),
              constant(at(v(), kvHead, j)), at(gradQ(), h, i),
              at(gradK(), kvHead, j), at(gradV(), kvHead, j)});
      });
    }
  }

  Matrix<const float> read(const View &view, int64_t h, Range range,
                           int block) const {
    return readHead(view, b, h, range, scratch.block(block));
  }

  /// Sums of gradQ that wait in scratch for all keys.
  Matrix<float> sumQ(int64_t h, int64_t row) const {
    const Matrix<float> all = scratch.rest();
    const int64_t at = (h - heads().begin) * problem.queries + row;
    return {all.data + at * all.stride, all.stride};
  }

  void keyPass(bool withQueries) const {
    const Matrix<float> sumK = scratch.block(4), sumV = scratch.block(5);
    for (int64_t j = 0; j < problem.keys; j += kKeyBlock) {
      const Range keys = keysFrom(j, problem.keys);
      const Matrix<const float> key = read(k(), kvHead, keys, 0);
      const Matrix<const float> value = read(v(), kvHead, keys, 1);
      clear(sumK, keys.size());
      clear(sumV, keys.size());
      forQueriesSeeing(keys, [&](int64_t h, Range queries) {
        Meeting x = {.h = h, .queries = queries, .keys = keys};
        x.query = read(q(), h, queries, 2);
        x.grad = read(gradOut(), h, queries, 3);
        x.key = key;
        x.value = value;
        x.gradQ = withQueries ? sumQ(h, queries.begin) : Matrix<float>{};
        x.gradK = sumK;
        x.gradV = sumV;
        meet(x);
      });
      writeHead(gradK(), b, kvHead, keys, sumK);
      writeHead(gradV(), b, kvHead, keys, sumV);
    }
  }

  void queryPass() const {
    const Matrix<float> sum = scratch.block(4);
    forQueries({0, problem.queries}, [&](int64_t h, Range queries) {
      Meeting x = {.h = h, .queries = queries};
      x.query = read(q(), h, queries, 2);
      x.grad = read(gradOut(), h, queries, 3);
      x.gradQ = sum;
      clear(sum, queries.size());
      const Range seen = mask.keysSeenBy(queries);
      for (int64_t j = seen.begin / kKeyBlock * kKeyBlock; j < seen.end;
           j += kKeyBlock) {
        x.keys = keysFrom(j, seen.end);
        if (!mask.meet(queries, x.keys)) {
          continue;
        }
        x.key = read(k(), kvHead, x.keys, 0);
        x.value = read(v(), kvHead, x.keys, 1);
        meet(x);
      }
      writeHead(gradQ(), b, h, queries, sum);
    });
  }

  /// bf16: sums stay in scratch until they are complete and are rounded once.
  /// Those of keys are complete after one block of keys, those of queries after
  /// all of them: where scratch does not hold them for so long, queries get a
  /// pass of their own, and scores are computed twice.
  void runNarrow() const {
    for (int64_t h = heads().begin; h < heads().end; ++h) {
      computeDelta<BFloat16>(h);
    }
    const int64_t queryRows = problem.group() * problem.queries;
    if (queryRows > scratch.restRows()) {
      keyPass(false);
      queryPass();
      return;
    }
    clear(scratch.rest(), queryRows);
    keyPass(true);
    forQueries({0, problem.queries}, [&](int64_t h, Range queries) {
      writeHead(gradQ(), b, h, queries, sumQ(h, queries.begin));
    });
  }
};
} // namespace

/// As `attend` of the forward has it, with grad_out in front.
static void attendGrad(const KernelContext &ctx, const KernelArguments &args,
                       size_t places) {
  const AttentionProblem p(ctx, args, args[1], args[2],
                           args.operands.subspan(4, places));
  ctx.pool.parallelFor(
      p.batch * p.kvHeads, [&](int64_t task, std::span<std::byte> scratch) {
        const int64_t b = task / p.kvHeads;
        const KeyValueHead head{p,
                                p.maskOf(b),
                                args.operands.first(4),
                                args.operands.subspan(4 + places),
                                b,
                                task % p.kvHeads,
                                AttentionScratch(scratch, p.dim)};
        args[1].type == DataType::F32 ? head.run() : head.runNarrow();
      });
}

void cpu::attentionGrad(const KernelContext &ctx, const KernelArguments &args) {
  attendGrad(ctx, args, 0);
}

void cpu::packedAttentionGrad(const KernelContext &ctx,
                              const KernelArguments &args) {
  attendGrad(ctx, args, 4);
}

} // namespace mega
