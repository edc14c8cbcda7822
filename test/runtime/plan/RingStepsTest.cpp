#include "runtime/plan/RingSteps.h"

#include <gtest/gtest.h>

#include <set>

using namespace mega;

namespace {

constexpr SequenceOrder kContiguous = SequenceOrder::Contiguous;
constexpr SequenceOrder kZigzag = SequenceOrder::Zigzag;
constexpr SequenceOrder kBalanced = SequenceOrder::Balanced;

bool sees(const Ring &ring, int64_t query, int64_t key) {
  return (!ring.causal || key <= query) &&
         (ring.window == 0 || query - key < ring.window);
}

/// Every ring of 24 tokens.
template <typename Body> void forRings(Body &&body) {
  for (const SequenceOrder order : {kContiguous, kZigzag}) {
    for (const int64_t ranks : {1, 2, 3, 4, 6}) {
      for (const bool causal : {true, false}) {
        for (const int64_t window : {0, 1, 2, 3, 5, 9, 23, 24, 30}) {
          body(Ring{ranks, 24, order, causal, window});
        }
      }
    }
  }
}

TEST(RingSteps, ChunksAreThoseWithAVisibleKey) {
  forRings([](const Ring &ring) {
    for (int64_t reader = 0; reader < ring.ranks; ++reader) {
      for (int64_t owner = 0; owner < ring.ranks; ++owner) {
        std::set<int64_t> seen;
        const SequencePiece keys = ring.pieceOf(owner);
        for (const SequenceRun &queries : ring.pieceOf(reader)) {
          for (int64_t i = queries.begin; i < queries.end(); ++i) {
            for (int64_t c = 0; c < ring.chunks(); ++c) {
              const SequenceRun &run = keys.begin()[c];
              for (int64_t j = run.begin; j < run.end(); ++j) {
                if (sees(ring, i, j)) {
                  seen.insert(c);
                }
              }
            }
          }
        }
        const ChunkRange found = chunksSeen(ring, reader, owner);
        std::set<int64_t> listed;
        for (int64_t c = 0; c < found.count; ++c) {
          listed.insert(found.first + c);
        }
        EXPECT_EQ(listed, seen)
            << ring.ranks << " ranks, window " << ring.window << ", " << reader
            << " of " << owner;
      }
    }
  });
}

TEST(RingSteps, CountsVisiblePairs) {
  forRings([](const Ring &ring) {
    for (int64_t rank = 0; rank < ring.ranks; ++rank) {
      int64_t pairs = 0;
      for (const SequenceRun &queries : ring.pieceOf(rank)) {
        for (int64_t i = queries.begin; i < queries.end(); ++i) {
          for (int64_t j = 0; j < ring.sequence; ++j) {
            pairs += sees(ring, i, j);
          }
        }
      }
      EXPECT_EQ(visiblePairs(ring, rank), pairs)
          << ring.ranks << " ranks, window " << ring.window << ", rank "
          << rank;
    }
  });
}

TEST(RingSteps, ReadersAndOwnersMeet) {
  const Ring ring{5, 20, kContiguous, true, 0};
  for (int64_t step = 0; step < 5; ++step) {
    for (int64_t rank = 0; rank < 5; ++rank) {
      EXPECT_EQ(ring.readerIn(step, ring.ownerIn(step, rank)), rank);
    }
  }
}

TEST(RingSteps, ACausalZigzagIsTheSameWorkForAllRanks) {
  for (const int64_t ranks : {2, 3, 4, 8}) {
    const Ring zigzag{ranks, 48, kZigzag, true, 0};
    for (int64_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(visiblePairs(zigzag, rank), 48 * 49 / 2 / ranks);
    }
  }
  // The last of contiguous pieces has seven times the work of the first.
  const Ring contiguous{4, 48, kContiguous, true, 0};
  EXPECT_EQ(visiblePairs(contiguous, 0), 78);
  EXPECT_EQ(visiblePairs(contiguous, 3), 510);
}

/// Chunks that all ranks send, and that they would if everything were seen.
std::pair<int64_t, int64_t> sentOf(const Ring &ring) {
  int64_t keys = 0, gradients = 0;
  for (int64_t rank = 0; rank < ring.ranks; ++rank) {
    keys += ringTraffic(ring, rank).keys;
    gradients += ringTraffic(ring, rank).gradients;
  }
  // Every chunk of keys that arrives sends its gradient back.
  EXPECT_EQ(keys, gradients);
  return {keys, ring.ranks * (ring.ranks - 1) * ring.chunks()};
}

TEST(RingSteps, SendsWhatIsSeen) {
  for (const int64_t ranks : {2, 3, 4, 8}) {
    const auto [contiguous, allContiguous] =
        sentOf({ranks, 48, kContiguous, true, 0});
    EXPECT_EQ(2 * contiguous, allContiguous);
    // Later ranks see one chunk of two, earlier ones both.
    const auto [zigzag, allZigzag] = sentOf({ranks, 48, kZigzag, true, 0});
    EXPECT_EQ(4 * zigzag, 3 * allZigzag);
    const auto [balanced, allBalanced] =
        sentOf({ranks, 48, kBalanced, true, 0});
    EXPECT_EQ(balanced, allBalanced);
    const auto [open, allOpen] = sentOf({ranks, 48, kContiguous, false, 0});
    EXPECT_EQ(open, allOpen);
  }
  // Windows that reach into the piece before.
  EXPECT_EQ(sentOf({8, 48, kContiguous, true, 6}).first, 7);
  EXPECT_EQ(sentOf({8, 48, kContiguous, true, 1}).first, 0);
}

TEST(RingSteps, BytesAreThoseOfKeysValuesAndSums) {
  const Ring ring{4, 48, kZigzag, true, 0};
  const BufferType k(DataType::BF16, {2, 12, 3, 5});
  // Two chunks of 2 x 6 x 15 keys, and as many values.
  constexpr int64_t kChunk = 2 * 2 * 6 * 15;
  // Each of three later ranks sees one chunk of rank 0.
  EXPECT_EQ(ringTraffic(ring, 0).keys, 3);
  EXPECT_EQ(ringTraffic(ring, 0).gradients, 6);
  EXPECT_EQ(ringSentBytes(ring, k, 0, false), 3 * kChunk * 2);
  EXPECT_EQ(ringSentBytes(ring, k, 0, true), 3 * kChunk * 2 + 6 * kChunk * 4);
  EXPECT_EQ(ringTraffic(ring, 3).keys, 6);
  EXPECT_EQ(ringTraffic(ring, 3).gradients, 3);
  EXPECT_EQ(mostRingSentBytes(ring, k, false), 6 * kChunk * 2);
  EXPECT_EQ(mostRingSentBytes(ring, k, true), 3 * kChunk * 2 + 6 * kChunk * 4);
  EXPECT_EQ(ringSentBytes({1, 12, kZigzag, true, 0}, k, 0, true), 0);
}

} // namespace
