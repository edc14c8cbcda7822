//===- RingSteps.cpp - Who sends which keys to whom -----------------------===//
#include "runtime/plan/RingSteps.h"

#include <algorithm>

namespace mega {

/// Whether any query of a run sees any key of another: the distances from keys
/// to queries are all numbers between the least and the most.
static bool sees(const Ring &ring, const SequenceRun &queries,
                 const SequenceRun &keys) {
  const int64_t least = queries.begin - (keys.end() - 1);
  const int64_t most = queries.end() - 1 - keys.begin;
  return (!ring.causal || most >= 0) &&
         (ring.window == 0 || least < ring.window);
}

ChunkRange chunksSeen(const Ring &ring, int64_t reader, int64_t owner) {
  if (ring.order == SequenceOrder::Balanced) {
    return {0, 1};
  }
  const SequencePiece queries = ring.pieceOf(reader);
  const SequencePiece keys = ring.pieceOf(owner);
  const auto isSeen = [&](int64_t chunk) {
    return std::any_of(queries.begin(), queries.end(), [&](const auto &run) {
      return sees(ring, run, keys.begin()[chunk]);
    });
  };
  ChunkRange range{0, ring.chunks()};
  while (range.count > 0 && !isSeen(range.first)) {
    ++range.first;
    --range.count;
  }
  while (range.count > 0 && !isSeen(range.first + range.count - 1)) {
    --range.count;
  }
  return range.count == 0 ? ChunkRange() : range;
}

RingTraffic ringTraffic(const Ring &ring, int64_t rank) {
  RingTraffic traffic;
  for (int64_t step = 1; step < ring.ranks; ++step) {
    traffic.keys += chunksSeen(ring, ring.readerIn(step, rank), rank).count;
    traffic.gradients += chunksSeen(ring, rank, ring.ownerIn(step, rank)).count;
  }
  return traffic;
}

uint64_t ringSentBytes(const Ring &ring, const BufferType &k, int64_t rank,
                       bool gradient) {
  const RingTraffic traffic = ringTraffic(ring, rank);
  // Of keys and of values.
  const int64_t elements = 2 * k.elements() / ring.chunks();
  const int64_t sums =
      gradient ? traffic.gradients * elements * byteSize(DataType::F32) : 0;
  return static_cast<uint64_t>(traffic.keys * elements * byteSize(k.type) +
                               sums);
}

uint64_t mostRingSentBytes(const Ring &ring, const BufferType &k,
                           bool gradient) {
  uint64_t most = 0;
  for (int64_t rank = 0; rank < ring.ranks; ++rank) {
    most = std::max(most, ringSentBytes(ring, k, rank, gradient));
  }
  return most;
}

/// Of the first `queries` queries of the row. Query i sees those up to i or
/// all, but not the first i - window + 1.
static int64_t pairsBefore(const Ring &ring, int64_t queries) {
  const int64_t upTo =
      ring.causal ? queries * (queries + 1) / 2 : queries * ring.sequence;
  const int64_t late =
      ring.window == 0 ? 0 : std::max<int64_t>(0, queries - ring.window);
  return upTo - late * (late + 1) / 2;
}

int64_t visiblePairs(const Ring &ring, int64_t rank) {
  if (ring.order == SequenceOrder::Balanced) {
    return pairsBefore(ring, ring.sequence) / ring.ranks;
  }
  int64_t pairs = 0;
  for (const SequenceRun &run : ring.pieceOf(rank)) {
    pairs += pairsBefore(ring, run.end()) - pairsBefore(ring, run.begin);
  }
  return pairs;
}

} // namespace mega
