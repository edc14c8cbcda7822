//===- BalanceSequence.cpp - Equal work for the ranks of cp ---------------===//
//
// Multiprocessor scheduling with equally many jobs each: the heaviest block
// goes to the least loaded rank that has room (Graham, 1969), then blocks of
// the most and the least loaded rank change places while that helps.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/BalanceSequence.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <numeric>

namespace mega {

namespace {
constexpr int64_t kMostBlockTokens = 64;
/// Per rank; each one at least narrows the widest gap.
constexpr int64_t kSwaps = 16;
} // namespace

BalanceSequence::BalanceSequence(int64_t length, int64_t ranks)
    : counts(static_cast<size_t>(ranks)), loads(static_cast<size_t>(ranks)),
      order_(static_cast<size_t>(length)) {
  assert(ranks > 0 && length % ranks == 0);
  const int64_t tokens = length / ranks;
  blockTokens_ = std::min(tokens, kMostBlockTokens);
  while (tokens % blockTokens_ != 0) {
    --blockTokens_;
  }
  blocksOfRank = tokens / blockTokens_;
  const auto blocks = static_cast<size_t>(blocksOfRank * ranks);
  work.resize(blocks);
  heaviest.resize(blocks);
  dealt.resize(blocks);
}

void BalanceSequence::deal() {
  std::iota(heaviest.begin(), heaviest.end(), 0);
  std::ranges::sort(heaviest, [&](int32_t a, int32_t b) {
    return work[a] != work[b] ? work[a] > work[b] : a < b;
  });
  std::ranges::fill(counts, 0);
  std::ranges::fill(loads, 0);
  for (const int32_t block : heaviest) {
    int64_t least = -1;
    for (int64_t rank = 0; rank < ranks(); ++rank) {
      if (counts[rank] < blocksOfRank &&
          (least < 0 || loads[rank] < loads[least])) {
        least = rank;
      }
    }
    dealt[least * blocksOfRank + counts[least]++] = block;
    loads[least] += work[block];
  }
}

/// Between the most and the least loaded rank; false if no swap brings them
/// closer to each other.
bool BalanceSequence::swapOnce() {
  const auto most = std::ranges::max_element(loads) - loads.begin();
  const auto least = std::ranges::min_element(loads) - loads.begin();
  const int64_t gap = loads[most] - loads[least];
  const auto blocksOf = [&](int64_t rank) {
    return std::span(dealt).subspan(rank * blocksOfRank, blocksOfRank);
  };
  const std::span<int32_t> heavy = blocksOf(most), light = blocksOf(least);
  // What is left of the gap when `a` and `b` change places.
  int64_t best = gap;
  int32_t *bestHeavy = nullptr, *bestLight = nullptr;
  for (size_t a = 0, b = 0; a < heavy.size() && b < light.size();) {
    const int64_t moved = work[heavy[a]] - work[light[b]];
    if (const int64_t left = std::abs(gap - 2 * moved); left < best) {
      best = left;
      bestHeavy = &heavy[a];
      bestLight = &light[b];
    }
    // Both fall: a lighter `a` moves less, a lighter `b` more.
    ++(2 * moved > gap ? a : b);
  }
  if (!bestHeavy) {
    return false;
  }
  const int64_t moved = work[*bestHeavy] - work[*bestLight];
  std::swap(*bestHeavy, *bestLight);
  loads[most] -= moved;
  loads[least] += moved;
  for (const auto &blocks : {heavy, light}) {
    std::ranges::sort(blocks, [&](int32_t a, int32_t b) {
      return work[a] != work[b] ? work[a] > work[b] : a < b;
    });
  }
  return true;
}

std::span<const int32_t>
BalanceSequence::order(std::span<const int32_t> positions) {
  assert(std::ssize(positions) == length());
  for (size_t block = 0; block < work.size(); ++block) {
    const auto tokens = positions.subspan(block * blockTokens_, blockTokens_);
    work[block] = std::accumulate(tokens.begin(), tokens.end(), blockTokens_);
  }
  deal();
  for (int64_t i = 0; i < kSwaps * ranks() && swapOnce(); ++i) {
  }
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    const auto blocks =
        std::span(dealt).subspan(rank * blocksOfRank, blocksOfRank);
    std::ranges::sort(blocks);
    for (int64_t i = 0; i < blocksOfRank; ++i) {
      const auto to = std::span(order_).subspan(
          (rank * blocksOfRank + i) * blockTokens_, blockTokens_);
      std::iota(to.begin(), to.end(),
                static_cast<int32_t>(blocks[i] * blockTokens_));
    }
  }
  return order_;
}

} // namespace mega
