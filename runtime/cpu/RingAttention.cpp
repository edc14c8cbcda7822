//===- RingAttention.cpp - Attention to keys of all ranks, forward --------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/QueryBlock.h"
#include "runtime/cpu/RingExchange.h"

namespace mega {
namespace {

/// Between steps a query has its largest score in `lse`, its sum in `sums`, and
/// its unnormalised output in f32.
struct RingForward {
  const AttentionProblem &problem;
  const RingPlace &place;
  const View &q, &out;
  /// `out` itself, or what is rounded to it in the end.
  View unrounded;
  float *lse, *sums;

  int64_t blocks() const { return ceilDiv(problem.queries, kQueryBlock); }

  /// body(block, scratch) for all blocks of queries, as they were left.
  template <typename Body> void forBlocks(ThreadPool &pool, Body &&body) const {
    pool.parallelFor(
        problem.batch * problem.heads * blocks(),
        [&](int64_t task, std::span<std::byte> scratch) {
          const int64_t begin = (blocks() - 1 - task % blocks()) * kQueryBlock;
          const int64_t h = task / blocks() % problem.heads;
          const int64_t b = task / blocks() / problem.heads;
          const AttentionScratch own(scratch, problem.dim);
          QueryBlock block{.problem = problem,
                           .mask = problem.maskOf(b),
                           .b = b,
                           .h = h,
                           .queries = {begin, std::min(problem.queries,
                                                       begin + kQueryBlock)},
                           .out = headRows<float>(unrounded, b, h, begin),
                           .scores = own.scores(0)};
          body(block, own);
        });
  }

  int64_t statistics(const QueryBlock &block) const {
    return (block.b * problem.heads + block.h) * problem.queries +
           block.queries.begin;
  }
  void load(QueryBlock &block) const {
    const int64_t at = statistics(block), count = block.queries.size();
    std::copy_n(lse + at, count, block.max);
    std::copy_n(sums + at, count, block.sum);
    block.first = false;
  }
  void store(const QueryBlock &block) const {
    const int64_t at = statistics(block), count = block.queries.size();
    std::copy_n(block.max, count, lse + at);
    std::copy_n(block.sum, count, sums + at);
  }

  void attend(ThreadPool &pool, const RingKeys &keys, int64_t step) const {
    const ChunkRange chunks = place.chunksIn(step);
    if (chunks.count == 0) {
      return;
    }
    forBlocks(pool, [&](QueryBlock &block, const AttentionScratch &own) {
      step == 0 ? block.clear() : load(block);
      const Matrix<const float> query =
          readHead(q, block.b, block.h, block.queries, own.block(0));
      for (int64_t c = chunks.first; c < chunks.first + chunks.count; ++c) {
        block.mask = problem.maskOf(block.b, place.rowsOf(step, c));
        block.meetAll(query, keys.rows(step, c), own);
      }
      for (int64_t r = 0; block.first && r < block.queries.size(); ++r) {
        std::fill_n(block.out.data + r * block.out.stride, problem.dim, 0.0f);
      }
      store(block);
    });
  }

  void finish(ThreadPool &pool) const {
    forBlocks(pool, [&](QueryBlock &block, const AttentionScratch &) {
      load(block);
      block.finish(lse + statistics(block) - block.queries.begin);
      if (out.type != DataType::F32) {
        writeHead(out, block.b, block.h, block.queries, block.out);
      }
    });
  }
};

} // namespace

void cpu::ringAttention(const KernelContext &ctx, const KernelArguments &args) {
  const View &q = args[0], &k = args[1], &out = args[7];
  const AttentionProblem p(ctx, args, q, k, args.operands.subspan(3, 4));
  const RingPlace place(ctx, args, k, args[5]);
  float *sums = args[10].as<float>();
  View unrounded = out;
  if (out.type != DataType::F32) {
    unrounded = View(BufferType(DataType::F32, {out.dims[0], out.dims[1],
                                                out.dims[2], out.dims[3]}),
                     sums + p.batch * p.heads * p.queries);
  }
  const RingForward forward{p,   place, q, out, unrounded, args[8].as<float>(),
                            sums};
  RingKeys keys(ctx, place, k, args[2], args[9]);
  for (int64_t step = 0; step < place.ring.ranks; ++step) {
    keys.post(step + 1);
    forward.attend(ctx.pool, keys, step);
    if (!keys.wait()) {
      return;
    }
  }
  forward.finish(ctx.pool);
}

} // namespace mega
