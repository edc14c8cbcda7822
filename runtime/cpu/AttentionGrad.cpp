//===- AttentionGrad.cpp - Tiled attention, backward ----------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/KeyValueHead.h"
#include "runtime/cpu/Parallel.h"

namespace mega {
namespace {
/// With all keys at once, and where the results belong.
struct WholeHead {
  KeyValueHead head;
  KeyRows keys;
  const View &gradQ, &gradK, &gradV;

  const AttentionProblem &problem() const { return head.problem; }

  /// f32: the sums are where the results belong.
  void run() const {
    const auto clear = [&](const View &view, int64_t h, int64_t rows) {
      head.clear(headRows<float>(view, head.b, h, 0), rows);
    };
    clear(gradK, head.kvHead, problem().keys);
    clear(gradV, head.kvHead, problem().keys);
    for (int64_t h = head.heads().begin; h < head.heads().end; ++h) {
      clear(gradQ, h, problem().queries);
      head.computeDelta(h);
    }
    head.meetAll(keys, gradQ, {gradK, gradV, 0, problem().keys});
  }

  /// Sums of gradQ that wait in scratch for all keys.
  Matrix<float> sumQ(int64_t h, int64_t row) const {
    const Matrix<float> all = head.scratch.rest();
    const int64_t at = (h - head.heads().begin) * problem().queries + row;
    return {all.data + at * all.stride, all.stride};
  }

  void keyPass(bool withQueries) const {
    const Matrix<float> sumK = head.scratch.block(4),
                        sumV = head.scratch.block(5);
    for (int64_t j = 0; j < problem().keys; j += kKeyBlock) {
      const Range range = head.keysFrom(j, problem().keys);
      const Matrix<const float> key = head.read(keys.k, head.kvHead, range, 0);
      const Matrix<const float> value =
          head.read(keys.v, head.kvHead, range, 1);
      head.clear(sumK, range.size());
      head.clear(sumV, range.size());
      head.forQueriesSeeing(range, [&](int64_t h, Range queries) {
        Meeting x = {.h = h, .queries = queries, .keys = range};
        x.query = head.read(head.of.q, h, queries, 2);
        x.grad = head.read(head.of.gradOut, h, queries, 3);
        x.key = key;
        x.value = value;
        x.gradQ = withQueries ? sumQ(h, queries.begin) : Matrix<float>{};
        x.gradK = sumK;
        x.gradV = sumV;
        head.meet(x);
      });
      writeHead(gradK, head.b, head.kvHead, range, sumK);
      writeHead(gradV, head.b, head.kvHead, range, sumV);
    }
  }

  void queryPass() const {
    const Matrix<float> sum = head.scratch.block(4);
    head.forQueries({0, problem().queries}, [&](int64_t h, Range queries) {
      Meeting x = {.h = h, .queries = queries};
      x.query = head.read(head.of.q, h, queries, 2);
      x.grad = head.read(head.of.gradOut, h, queries, 3);
      x.gradQ = sum;
      head.clear(sum, queries.size());
      const Range seen = head.mask.keysSeenBy(queries);
      for (int64_t j = seen.begin / kKeyBlock * kKeyBlock; j < seen.end;
           j += kKeyBlock) {
        x.keys = head.keysFrom(j, seen.end);
        if (!head.mask.meet(queries, x.keys)) {
          continue;
        }
        x.key = head.read(keys.k, head.kvHead, x.keys, 0);
        x.value = head.read(keys.v, head.kvHead, x.keys, 1);
        head.meet(x);
      }
      writeHead(gradQ, head.b, h, queries, sum);
    });
  }

  /// bf16: sums stay in scratch until they are complete and are rounded once.
  /// Those of keys are complete after one block of keys, those of queries after
  /// all of them: where scratch does not hold them for so long, queries get a
  /// pass of their own, and scores are computed twice.
  void runNarrow() const {
    for (int64_t h = head.heads().begin; h < head.heads().end; ++h) {
      head.computeDelta(h);
    }
    const int64_t queryRows = problem().group() * problem().queries;
    if (queryRows > head.scratch.restRows()) {
      keyPass(false);
      queryPass();
      return;
    }
    head.clear(head.scratch.rest(), queryRows);
    keyPass(true);
    head.forQueries({0, problem().queries}, [&](int64_t h, Range queries) {
      writeHead(gradQ, head.b, h, queries, sumQ(h, queries.begin));
    });
  }
};
} // namespace

/// As `attend` of the forward has it, with grad_out in front.
static void attendGrad(const KernelContext &ctx, const KernelArguments &args,
                       size_t places) {
  const AttentionProblem p(ctx, args, args[1], args[2],
                           args.operands.subspan(4, places));
  const std::span<const View> results = args.operands.subspan(4 + places);
  const QueryRows rows = {args[0], args[1], results[0], results[1].as<float>(),
                          results[5].as<float>()};
  ctx.pool.parallelFor(
      p.batch * p.kvHeads, [&](int64_t task, std::span<std::byte> scratch) {
        const int64_t b = task / p.kvHeads;
        const WholeHead whole{{p, p.maskOf(b), rows, b, task % p.kvHeads,
                               AttentionScratch(scratch, p.dim)},
                              {args[2], args[3], 0, p.keys},
                              results[2],
                              results[3],
                              results[4]};
        args[1].type == DataType::F32 ? whole.run() : whole.runNarrow();
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
