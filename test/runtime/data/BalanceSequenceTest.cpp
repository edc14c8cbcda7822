#include "runtime/data/BalanceSequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>

using namespace mega;
using testing::ElementsAre;

namespace {

using Lengths = std::vector<int64_t>;

/// Positions in documents of these lengths, the last one cut to fit.
std::vector<int32_t> positionsOf(const Lengths &documents, int64_t length) {
  std::vector<int32_t> positions;
  for (size_t d = 0; std::ssize(positions) < length; ++d) {
    const int64_t tokens =
        std::min(documents.at(d), length - std::ssize(positions));
    for (int64_t i = 0; i < tokens; ++i) {
      positions.push_back(static_cast<int32_t>(i));
    }
  }
  return positions;
}

std::vector<int64_t> loadsOf(const std::vector<int32_t> &positions,
                             std::span<const int32_t> order, int64_t ranks) {
  std::vector<int64_t> loads(static_cast<size_t>(ranks));
  const auto piece = order.size() / static_cast<size_t>(ranks);
  for (size_t i = 0; i < order.size(); ++i) {
    loads[i / piece] += positions[static_cast<size_t>(order[i])] + 1;
  }
  return loads;
}

/// How far a rank is from the mean, as a share of it.
double imbalance(const std::vector<int64_t> &loads) {
  const double mean = static_cast<double>(std::accumulate(
                          loads.begin(), loads.end(), int64_t{0})) /
                      static_cast<double>(loads.size());
  double worst = 0;
  for (const int64_t load : loads) {
    worst = std::max(worst, std::abs(static_cast<double>(load) / mean - 1));
  }
  return worst;
}

/// Of a mixture: how long its documents are.
struct Mixture {
  const char *name;
  Lengths (*documents)(std::mt19937 &, int64_t length);
};

double uniform(std::mt19937 &random) {
  return static_cast<double>(random() >> 5) * 0x1p-27;
}
int64_t logUniform(std::mt19937 &random, int64_t most) {
  return static_cast<int64_t>(
      std::exp(uniform(random) * std::log(static_cast<double>(most) + 1)));
}
Lengths fill(int64_t length, auto &&next) {
  Lengths lengths;
  for (int64_t sum = 0; sum < length; sum += lengths.back()) {
    lengths.push_back(std::max<int64_t>(1, next()));
  }
  return lengths;
}

const Mixture kMixtures[] = {
    {"one document", [](std::mt19937 &, int64_t s) { return Lengths{s}; }},
    {"documents of one token",
     [](std::mt19937 &, int64_t s) {
       return Lengths(static_cast<size_t>(s), 1);
     }},
    {"log-uniform lengths",
     [](std::mt19937 &random, int64_t s) {
       return fill(s, [&] { return logUniform(random, s); });
     }},
    {"lengths of one order of magnitude",
     [](std::mt19937 &random, int64_t s) {
       const int64_t scale = logUniform(random, s);
       return fill(s, [&] {
         return static_cast<int64_t>((0.3 + uniform(random)) *
                                     static_cast<double>(scale));
       });
     }},
    {"one long after many short",
     [](std::mt19937 &random, int64_t s) {
       const auto begin = static_cast<int64_t>(uniform(random) *
                                               static_cast<double>(s) * 0.75);
       Lengths lengths;
       for (int64_t sum = 0; sum < begin; sum += lengths.back()) {
         lengths.push_back(1 + logUniform(random, 30));
       }
       lengths.push_back(s);
       return lengths;
     }},
};

} // namespace

TEST(BalanceSequence, KeepsBlocksInOrder) {
  BalanceSequence balance(16, 2);
  EXPECT_EQ(balance.blockTokens(), 8);
  EXPECT_EQ(BalanceSequence(4096, 4).blockTokens(), 64);
  EXPECT_EQ(BalanceSequence(3 * 100, 3).blockTokens(), 50);
  EXPECT_EQ(BalanceSequence(2 * 67, 2).blockTokens(), 1);
  // Blocks of one token: 67 of work 1 to 67 twice, so that ranks may be equal.
  BalanceSequence ones(2 * 67, 2);
  const std::vector<int32_t> positions = positionsOf({67, 67}, 134);
  const auto order = ones.order(positions);
  EXPECT_THAT(loadsOf(positions, order, 2), ElementsAre(34 * 67, 34 * 67));
  EXPECT_TRUE(std::ranges::is_sorted(order.first(67)));
  EXPECT_TRUE(std::ranges::is_sorted(order.last(67)));
}

TEST(BalanceSequence, RanksSeeEquallyMuch) {
  constexpr int64_t kLength = 4096, kRanks = 4;
  BalanceSequence balance(kLength, kRanks);
  std::vector<int32_t> all(kLength);
  std::iota(all.begin(), all.end(), 0);
  for (const Mixture &mixture : kMixtures) {
    std::mt19937 random(7);
    double worst = 0, contiguous = 0;
    for (int i = 0; i < 500; ++i) {
      const std::vector<int32_t> positions =
          positionsOf(mixture.documents(random, kLength), kLength);
      const auto order = balance.order(positions);
      std::vector<int32_t> sorted(order.begin(), order.end());
      std::ranges::sort(sorted);
      ASSERT_EQ(sorted, all);
      for (int64_t rank = 0; rank < kRanks; ++rank) {
        ASSERT_TRUE(std::ranges::is_sorted(
            order.subspan(rank * kLength / kRanks, kLength / kRanks)));
      }
      worst = std::max(worst, imbalance(loadsOf(positions, order, kRanks)));
      contiguous =
          std::max(contiguous, imbalance(loadsOf(positions, all, kRanks)));
    }
    std::printf("%-34s at most %.2f %% from the mean (contiguous: %.0f %%)\n",
                mixture.name, 100 * worst, 100 * contiguous);
    EXPECT_LE(worst, 0.1) << mixture.name;
  }
}

TEST(BalanceSequence, IsTheSameForEveryRankAndCall) {
  std::mt19937 random(3);
  const Lengths documents =
      fill(6 * 40, [&] { return logUniform(random, 100); });
  const std::vector<int32_t> positions = positionsOf(documents, 6 * 40);
  BalanceSequence one(6 * 40, 6), other(6 * 40, 6);
  const auto order = one.order(positions);
  const std::vector<int32_t> first(order.begin(), order.end());
  // What another row was before does not matter.
  (void)other.order(positionsOf({6 * 40}, 6 * 40));
  EXPECT_TRUE(std::ranges::equal(other.order(positions), first));
}

TEST(BalanceSequence, OneRankKeepsTheRow) {
  BalanceSequence balance(12, 1);
  const auto order = balance.order(positionsOf({5, 7}, 12));
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}
