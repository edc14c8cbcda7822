//===- AttentionGrad.cpp - Tiled attention, backward ----------------------===//
#include "runtime/cpu/AttentionProblem.h"
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

namespace mega {
namespace {
/// The gradient of one key/value head of one sample. Query heads of its group
/// come in order, and blocks of keys outermost, so every sum has one order.
struct KeyValueHead {
  const AttentionProblem &problem;
  const KernelArguments &args;
  int64_t b, kvHead;
  /// Both [kQueryBlock, kKeyBlock].
  float *probabilities, *gradScores;

  const View &gradOut() const { return args[0]; }
  const View &q() const { return args[1]; }
  const View &k() const { return args[2]; }
  const View &v() const { return args[3]; }

  float *statistics(int operand, int64_t h) const {
    return args[operand].as<float>() +
           (b * problem.heads + h) * problem.sequence;
  }

  void clear(const View &view, int64_t h) const {
    const Matrix<float> target = headRows(view, b, h, 0);
    for (int64_t s = 0; s < problem.sequence; ++s) {
      std::fill_n(target.data + s * target.stride, problem.dim, 0.0f);
    }
  }

  /// delta = row sums of gradOut * out.
  void computeDelta(int64_t h) const {
    const Matrix<float> grad = headRows(gradOut(), b, h, 0);
    const Matrix<float> out = headRows(args[4], b, h, 0);
    float *delta = statistics(9, h);
    for (int64_t s = 0; s < problem.sequence; ++s) {
      delta[s] = rows::dot(grad.data + s * grad.stride,
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
    const Range seen = problem.visibleKeys(query) & keys;
    if (seen.isEmpty()) {
      std::fill_n(p, keys.size(), 0.0f);
      std::fill_n(ds, keys.size(), 0.0f);
      return;
    }
    const int64_t skip = seen.begin - keys.begin;
    const int64_t rest = keys.end - seen.end;
    rows::scaledExp(1.0f, statistics(5, h)[query], p + skip, seen.size());
    dropoutRow(h, query, keys.begin, seen, ds);
    rows::softmaxGrad(p + skip, statistics(9, h)[query], problem.scale,
                      ds + skip, seen.size());
    for (float *row : {p, ds}) {
      std::fill_n(row, skip, 0.0f);
      std::fill_n(row + keys.size() - rest, rest, 0.0f);
    }
    dropoutRow(h, query, keys.begin, seen, p);
  }

  void meet(int64_t h, Range queries, Range keys) const {
    const int64_t m = queries.size(), n = keys.size(), dim = problem.dim;
    const auto at = [&](const View &view, int64_t head, int64_t row) {
      return headRows(view, b, head, row);
    };
    const Matrix<float> p = {probabilities, kKeyBlock};
    const Matrix<float> ds = {gradScores, kKeyBlock};
    const Matrix<const float> query = constant(at(q(), h, queries.begin));
    const Matrix<const float> key = constant(at(k(), kvHead, keys.begin));
    const Matrix<const float> grad = constant(at(gradOut(), h, queries.begin));
    gemmTile({m, n, dim, false, true}, problem.scale, query, key, false, p);
    gemmTile({m, n, dim, false, true}, 1.0f, grad,
             constant(at(v(), kvHead, keys.begin)), false, ds);
    for (int64_t r = 0; r < m; ++r) {
      softmaxGradRow(h, queries.begin + r, keys, p.data + r * p.stride,
                     ds.data + r * ds.stride);
    }
    gemmTile({m, dim, n}, 1.0f, constant(ds), key, true,
             at(args[6], h, queries.begin));
    gemmTile({n, dim, m, true, false}, 1.0f, constant(ds), query, true,
             at(args[7], kvHead, keys.begin));
    gemmTile({n, dim, m, true, false}, 1.0f, constant(p), grad, true,
             at(args[8], kvHead, keys.begin));
  }

  void run() const {
    const Range heads = {kvHead * problem.group(),
                         (kvHead + 1) * problem.group()};
    clear(args[7], kvHead);
    clear(args[8], kvHead);
    for (int64_t h = heads.begin; h < heads.end; ++h) {
      clear(args[6], h);
      computeDelta(h);
    }
    for (int64_t first = 0; first < problem.sequence; first += kKeyBlock) {
      const Range keys = {first, std::min(problem.sequence, first + kKeyBlock)};
      const Range seeing = problem.visibleQueries(keys);
      for (int64_t h = heads.begin; h < heads.end; ++h) {
        for (int64_t i = seeing.begin / kQueryBlock * kQueryBlock;
             i < seeing.end; i += kQueryBlock) {
          meet(h, {i, std::min(seeing.end, i + kQueryBlock)}, keys);
        }
      }
    }
  }
};
} // namespace

void cpu::attentionGrad(const KernelContext &ctx, const KernelArguments &args) {
  const AttentionProblem p(ctx, args, args[1], args[2]);
  ctx.pool.parallelFor(
      p.batch * p.kvHeads, [&](int64_t task, std::span<std::byte> scratch) {
        auto *tiles = reinterpret_cast<float *>(scratch.data());
        KeyValueHead{p,
                     args,
                     task / p.kvHeads,
                     task % p.kvHeads,
                     tiles,
                     tiles + kQueryBlock * kKeyBlock}
            .run();
      });
}

} // namespace mega
