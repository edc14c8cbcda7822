//===- Attention.cpp - Tiled attention, forward ---------------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/QueryBlock.h"

namespace mega {

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
        const AttentionScratch own(scratch, p.dim);
        QueryBlock block{
            .problem = p,
            .mask = p.maskOf(b),
            .b = b,
            .h = h,
            .queries = {begin, std::min(p.queries, begin + kQueryBlock)},
            .out = narrow ? own.block(3) : headRows<float>(out, b, h, begin),
            .scores = own.scores(0)};
        block.clear();
        block.meetAll(readHead(q, b, h, block.queries, own.block(0)),
                      {k, v, 0, p.keys}, own);
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
