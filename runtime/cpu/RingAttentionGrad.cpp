//===- RingAttentionGrad.cpp - Attention to keys of all ranks, backward ---===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/KeyValueHead.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/RingExchange.h"

namespace mega {
namespace {

/// The parts of `sums`, one after another.
class Parts {
public:
  explicit Parts(const View &sums) : next(sums.data) {}

  float *floats(int64_t count) {
    float *part = reinterpret_cast<float *>(next);
    next += count * static_cast<int64_t>(sizeof(float));
    return part;
  }
  ChunkBuffer chunks(const Ring &ring, const View &k) {
    const ChunkBuffer part(ring, k, DataType::F32, next);
    next += ring.ranks == 1 ? 0 : part.bytes();
    return part;
  }
  /// `view` itself if it is f32, else one like it.
  View unrounded(const View &view) {
    if (view.type == DataType::F32) {
      return view;
    }
    const BufferType type(DataType::F32, {view.dims[0], view.dims[1],
                                          view.dims[2], view.dims[3]});
    return {type, floats(view.elements())};
  }

private:
  std::byte *next;
};

/// Gradients of other ranks' keys go to their owners while the next step is
/// computed; those of the own keys come in the order of steps and are added.
class RingGradients {
public:
  RingGradients(const KernelContext &ctx, const RingPlace &place, const View &k,
                Parts &parts)
      : ctx(ctx), place(place),
        sums{parts.chunks(place.ring, k), parts.chunks(place.ring, k)},
        arriving(parts.chunks(place.ring, k)), messages(ctx, place) {}

  /// Where a step sums up a chunk of another rank's keys.
  KeyRows rows(int64_t step, int64_t chunk) const {
    return sums[static_cast<size_t>(step % 2)][chunk];
  }

  /// Exchanges what a step has summed up.
  void post(int64_t step) {
    if (step == 0) {
      return;
    }
    const Ring &ring = place.ring;
    const int64_t reader = ring.readerIn(step, place.rank);
    expected = chunksSeen(ring, reader, place.rank);
    messages.receive(arriving, expected, reader);
    messages.send(sums[static_cast<size_t>(step % 2)], place.chunksIn(step),
                  ring.ownerIn(step, place.rank));
  }

  /// Adds what has come to the gradients of the own keys. False once anything
  /// has failed.
  bool add(const View &gradK, const View &gradV) {
    if (!messages.wait()) {
      return false;
    }
    const int64_t batch = gradK.dims[0], rows = place.ring.chunkRows();
    forRows(ctx.pool, expected.count * batch * rows, 2 * gradK.rowSize(),
            [&](int64_t task) {
              const int64_t row = task % rows, b = task / rows % batch;
              const int64_t chunk = expected.first + task / rows / batch;
              const KeyRows from = arriving[chunk];
              const int64_t to = b * gradK.dims[1] + chunk * rows + row;
              rows::accumulate(from.k.row<float>(b * rows + row),
                               gradK.row<float>(to), gradK.rowSize());
              rows::accumulate(from.v.row<float>(b * rows + row),
                               gradV.row<float>(to), gradV.rowSize());
            });
    expected = {};
    return true;
  }

private:
  const KernelContext &ctx;
  const RingPlace &place;
  std::array<ChunkBuffer, 2> sums;
  ChunkBuffer arriving;
  ChunkRange expected;
  RingMessages messages;
};

struct RingBackward {
  const AttentionProblem &problem;
  const RingPlace &place;
  const QueryRows &rows;
  /// In f32.
  View gradQ, gradK, gradV;

  void computeStep(ThreadPool &pool, const RingKeys &keys,
                   const RingGradients &gradients, int64_t step) const {
    const ChunkRange chunks = place.chunksIn(step);
    if (chunks.count == 0) {
      return;
    }
    pool.parallelFor(
        problem.batch * problem.kvHeads,
        [&](int64_t task, std::span<std::byte> scratch) {
          const int64_t b = task / problem.kvHeads;
          KeyValueHead head{problem,
                            problem.maskOf(b),
                            rows,
                            b,
                            task % problem.kvHeads,
                            AttentionScratch(scratch, problem.dim)};
          if (step == 0) {
            for (int64_t h = head.heads().begin; h < head.heads().end; ++h) {
              head.clear(headRows<float>(gradQ, b, h, 0), problem.queries);
              head.computeDelta(h);
            }
          }
          for (int64_t c = chunks.first; c < chunks.first + chunks.count; ++c) {
            const KeyRows part = keys.rows(step, c);
            const KeyRows sums =
                step == 0 ? KeyRows{gradK, gradV, part.first, part.count}
                          : gradients.rows(step, c);
            for (const View *sum : {&sums.k, &sums.v}) {
              head.clear(headRows<float>(*sum, b, head.kvHead, sums.first),
                         sums.count);
            }
            head.mask = problem.maskOf(b, place.rowsOf(step, c));
            head.meetAll(part, gradQ, sums);
          }
        });
  }
};

void round(ThreadPool &pool, const View &from, const View &to) {
  if (from.data == to.data) {
    return;
  }
  forRows(pool, to.rows(), to.rowSize(), [&](int64_t row) {
    rows::narrow(from.row<float>(row), to.row<BFloat16>(row), to.rowSize());
  });
}

} // namespace

void cpu::ringAttentionGrad(const KernelContext &ctx,
                            const KernelArguments &args) {
  const View &q = args[1], &k = args[2];
  const AttentionProblem p(ctx, args, q, k, args.operands.subspan(4, 4));
  const RingPlace place(ctx, args, k, args[6]);
  Parts parts(args[14]);
  const QueryRows rows = {args[0], q, args[8], args[9].as<float>(),
                          parts.floats(p.batch * p.heads * p.queries)};
  RingGradients gradients(ctx, place, k, parts);
  RingBackward backward{p, place, rows, {}, {}, {}};
  backward.gradQ = parts.unrounded(args[10]);
  backward.gradK = parts.unrounded(args[11]);
  backward.gradV = parts.unrounded(args[12]);
  RingKeys keys(ctx, place, k, args[3], args[13]);
  for (int64_t step = 0; step < place.ring.ranks; ++step) {
    keys.post(step + 1);
    backward.computeStep(ctx.pool, keys, gradients, step);
    const bool added = gradients.add(backward.gradK, backward.gradV);
    if (!keys.wait() || !added) {
      return;
    }
    gradients.post(step);
  }
  if (!gradients.add(backward.gradK, backward.gradV)) {
    return;
  }
  round(ctx.pool, backward.gradQ, args[10]);
  round(ctx.pool, backward.gradK, args[11]);
  round(ctx.pool, backward.gradV, args[12]);
}

} // namespace mega
