#include "runtime/data/SampleOrder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

using namespace mega;

TEST(Permutation, IsABijectionOfEverySmallSize) {
  for (int64_t size = 1; size <= 300; ++size) {
    const Permutation permutation(size, 7);
    std::vector<bool> seen(size);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t to = permutation(i);
      ASSERT_GE(to, 0);
      ASSERT_LT(to, size);
      ASSERT_FALSE(seen[to]) << size;
      seen[to] = true;
    }
  }
}

TEST(Permutation, StaysInsideHugeSizes) {
  for (int64_t size : {(int64_t{1} << 32) - 1, (int64_t{1} << 32) + 1,
                       std::numeric_limits<int64_t>::max()}) {
    const Permutation permutation(size, 7);
    for (int64_t i : {int64_t{0}, int64_t{1}, size / 2, size - 1}) {
      EXPECT_GE(permutation(i), 0);
      EXPECT_LT(permutation(i), size);
    }
  }
}

// Recomputed outside this project.
TEST(Permutation, HasTheRecordedOrder) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 10; ++i) {
    order.push_back(Permutation(10, 42)(i));
  }
  EXPECT_THAT(order, testing::ElementsAre(0, 5, 4, 9, 1, 2, 6, 3, 7, 8));
}

// Each of the 24 orders of four samples is as likely as any other.
TEST(Permutation, GivesAllOrdersAlike) {
  constexpr int kDraws = 24'000;
  std::map<std::vector<int64_t>, int> counts;
  for (int key = 0; key < kDraws; ++key) {
    const Permutation permutation(4, mixKey(3, key));
    counts[{permutation(0), permutation(1), permutation(2), permutation(3)}]++;
  }
  ASSERT_EQ(counts.size(), 24u);
  double chiSquare = 0;
  for (const auto &[order, count] : counts) {
    chiSquare += std::pow(count - kDraws / 24.0, 2) / (kDraws / 24.0);
  }
  // 23 degrees of freedom: above 49.7 with probability 0.001.
  EXPECT_LT(chiSquare, 49.7);
}

TEST(SampleCount, NeedsALabelForTheLastToken) {
  EXPECT_EQ(sampleCount(0, 4), 0);
  EXPECT_EQ(sampleCount(4, 4), 0);
  EXPECT_EQ(sampleCount(5, 4), 1);
  EXPECT_EQ(sampleCount(8, 4), 1);
  EXPECT_EQ(sampleCount(9, 4), 2);
}

TEST(SampleOrder, VisitsEverySampleOncePerEpochInAnotherOrder) {
  const SampleOrder order{100, 1234};
  std::vector<std::vector<int64_t>> epochs(3);
  for (int64_t row = 0; row < 300; ++row) {
    epochs[row / 100].push_back(order.sample(row));
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  for (auto &epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    for (int64_t i = 0; i < 100; ++i) {
      EXPECT_EQ(epoch[i], i);
    }
  }
}

TEST(SampleOrder, DependsOnTheSeed) {
  int same = 0;
  for (int64_t row = 0; row < 100; ++row) {
    same += SampleOrder{100, 1}.sample(row) == SampleOrder{100, 2}.sample(row);
  }
  EXPECT_LT(same, 10);
}

TEST(SampleOrder, WithoutShufflingIsTheOrderOfTheFile) {
  const SampleOrder order{5, 1, false};
  for (int64_t row = 0; row < 12; ++row) {
    EXPECT_EQ(order.sample(row), row % 5);
  }
}
