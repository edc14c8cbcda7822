//===- Attention.cpp - Tiled attention, forward ---------------------------===//
#include "runtime/cpu/AttentionProblem.h"
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

#include <cmath>
#include <limits>

namespace mega {
namespace {
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
  bool first = true;

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
      // From a multiple of four keys, as the counter counts.
      const int64_t skip = (seen.begin - keys.begin) / 4 * 4;
      rows::dropout(problem.counter(b, h, query, keys.begin + skip),
                    problem.key, problem.threshold, 1.0f, row + skip,
                    row + skip, seen.end - keys.begin - skip);
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
} // namespace

/// Operands are q, k, v, then `places` that say what is visible, then out, lse.
static void attend(const KernelContext &ctx, const KernelArguments &args,
                   size_t places) {
  const View &q = args[0], &k = args[1], &v = args[2];
  const View &out = args.operands[3 + places];
  float *lse = args.operands[4 + places].as<float>();
  const AttentionProblem p(ctx, args, q, k, args.operands.subspan(3, places));
  const bool narrow = out.type != DataType::F32;
  const int64_t blocks = ceilDiv(p.queries, kQueryBlock);
  ctx.pool.parallelFor(
      p.batch * p.heads * blocks,
      [&](int64_t task, std::span<std::byte> scratch) {
        // The longest rows of a causal mask first: they balance best.
        const int64_t begin = (blocks - 1 - task % blocks) * kQueryBlock;
        const int64_t h = task / blocks % p.heads;
        const int64_t b = task / blocks / p.heads;
        const int64_t kvHead = h / p.group();
        const AttentionScratch own(scratch, p.dim);
        QueryBlock block{
            .problem = p,
            .mask = p.maskOf(b),
            .b = b,
            .h = h,
            .queries = {begin, std::min(p.queries, begin + kQueryBlock)},
            .out = narrow ? own.block(3) : headRows<float>(out, b, h, begin),
            .scores = own.scores(0)};
        std::fill_n(block.max, kQueryBlock,
                    -std::numeric_limits<float>::infinity());
        std::fill_n(block.sum, kQueryBlock, 0.0f);
        const Matrix<const float> query =
            readHead(q, b, h, block.queries, own.block(0));
        const Range seen = block.mask.keysSeenBy(block.queries);
        for (int64_t key = seen.begin / kKeyBlock * kKeyBlock; key < seen.end;
             key += kKeyBlock) {
          const Range keys = {key, std::min(seen.end, key + kKeyBlock)};
          if (!block.mask.meet(block.queries, keys)) {
            continue;
          }
          block.meet(keys, query, readHead(k, b, kvHead, keys, own.block(1)),
                     readHead(v, b, kvHead, keys, own.block(2)));
        }
        block.finish(lse + (b * p.heads + h) * p.queries);
        if (narrow) {
          writeHead(out, b, h, block.queries, block.out);
        }
      });
}

void cpu::attention(const KernelContext &ctx, const KernelArguments &args) {
  attend(ctx, args, 0);
}

void cpu::packedAttention(const KernelContext &ctx,
                          const KernelArguments &args) {
  attend(ctx, args, 4);
}

} // namespace mega
