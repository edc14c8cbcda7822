//===- RingSteps.h - Who sends which keys to whom ---------------*- C++ -*-===//
//
// ring_attention in steps: in step t rank r of n works on the keys of rank
// (r + t) % n, which their owner sends to it. Keys are sent in chunks, the runs
// of a piece of the sequence. Where the order says which places of the row a
// chunk has, chunks that no query of a rank can see are neither sent nor worked
// on, and sender and receiver find the same ones here:
//
//   causal, n = 2    zigzag  | 0 | 1 | 2 | 3 |    rank 0: 0 3    rank 1: 1 2
//     rank 0 sees both chunks of rank 1, rank 1 sees chunk 0 of rank 0
//
// The documents of a packed row lie one after another, so a document only hides
// more. Of a balanced order nothing is known but the data.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_RINGSTEPS_H
#define MEGA_RUNTIME_PLAN_RINGSTEPS_H

#include "runtime/plan/SequenceOrder.h"
#include "runtime/plan/Shape.h"

namespace mega {

/// A sequence over the ranks of a ring, which divide it (twice as many do for a
/// zigzag), and the mask of its attention.
struct Ring {
  int64_t ranks;
  int64_t sequence;
  SequenceOrder order;
  bool causal;
  /// 0: unlimited.
  int64_t window;

  SequencePiece pieceOf(int64_t rank) const {
    return mega::pieceOf(order == SequenceOrder::Zigzag, rank, ranks, sequence);
  }
  int64_t chunks() const { return order == SequenceOrder::Zigzag ? 2 : 1; }
  int64_t chunkRows() const { return sequence / (ranks * chunks()); }
  /// Whose keys a rank works on in a step, and who works on its keys.
  int64_t ownerIn(int64_t step, int64_t rank) const {
    return (rank + step) % ranks;
  }
  int64_t readerIn(int64_t step, int64_t rank) const {
    return (rank + ranks - step) % ranks;
  }
};

/// Chunks of a piece, by their place in it.
struct ChunkRange {
  int64_t first = 0;
  int64_t count = 0;

  friend bool operator==(const ChunkRange &, const ChunkRange &) = default;
};

/// The chunks of `owner`'s keys that queries of `reader` may see.
ChunkRange chunksSeen(const Ring &ring, int64_t reader, int64_t owner);

/// What a rank sends, in chunks: of keys, each with its values; of the
/// gradients of other ranks' keys, each with that of its values.
struct RingTraffic {
  int64_t keys = 0;
  int64_t gradients = 0;
};
RingTraffic ringTraffic(const Ring &ring, int64_t rank);

/// Bytes that `rank` sends in ring_attention, or in its gradient, which sends
/// keys again and sums in f32. `k` is a rank's piece of the keys.
uint64_t ringSentBytes(const Ring &ring, const BufferType &k, int64_t rank,
                       bool gradient);
/// Of the rank that sends most.
uint64_t mostRingSentBytes(const Ring &ring, const BufferType &k,
                           bool gradient);

/// How many pairs of a query of `rank` and a key of the whole row are visible,
/// of a row that is one document. In a balanced order that is an equal share.
int64_t visiblePairs(const Ring &ring, int64_t rank);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_RINGSTEPS_H
