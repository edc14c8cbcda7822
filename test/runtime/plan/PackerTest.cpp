#include "runtime/plan/Packer.h"

#include "test/runtime/Exhaustive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace mega;

namespace {

bool together(const PackItem &a, const PackItem &b) {
  return a.first <= b.last && b.first <= a.last;
}

int64_t aligned(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// The largest sum alive at one time: no packing is smaller.
int64_t lowerBound(const std::vector<PackItem> &items, int64_t alignment) {
  int64_t bound = 0;
  for (const PackItem &at : items) {
    int64_t alive = 0;
    for (const PackItem &item : items) {
      if (item.first <= at.first && at.first <= item.last) {
        alive += aligned(item.bytes, alignment);
      }
    }
    bound = std::max(bound, alive);
  }
  return bound;
}

/// Every rule of a packing, whatever its quality.
void expectLegal(const std::vector<PackItem> &items, const Packing &packing,
                 int64_t alignment) {
  ASSERT_EQ(packing.offsets.size(), items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    ASSERT_GE(packing.offsets[i], 0);
    ASSERT_EQ(packing.offsets[i] % alignment, 0) << "item " << i;
    ASSERT_LE(packing.offsets[i] + items[i].bytes, packing.bytes);
    for (size_t j = 0; j < i; ++j) {
      if (together(items[i], items[j])) {
        ASSERT_TRUE(packing.offsets[i] + items[i].bytes <= packing.offsets[j] ||
                    packing.offsets[j] + items[j].bytes <= packing.offsets[i])
            << "items " << j << " and " << i << " share a byte";
      }
    }
  }
  ASSERT_GE(packing.bytes, lowerBound(items, alignment));
}

/// The smallest packing: first fit over all orders, one of which is optimal
/// (sort an optimal packing by offset, and first fit only moves items down).
int64_t smallest(const std::vector<PackItem> &items, int64_t alignment) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offsets(items.size());
    int64_t bytes = 0;
    for (size_t n = 0; n < order.size(); ++n) {
      const size_t item = order[n];
      // On top of everything below it that lives at the same time.
      int64_t offset = 0;
      for (size_t below = 0; below < n; ++below) {
        const size_t other = order[below];
        if (together(items[item], items[other])) {
          offset = std::max(offset, offsets[other] +
                                        aligned(items[other].bytes, alignment));
        }
      }
      offsets[item] = offset;
      bytes = std::max(bytes, offset + aligned(items[item].bytes, alignment));
    }
    best = std::min(best, bytes);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::vector<PackItem> randomItems(std::mt19937_64 &engine, int count,
                                  int64_t times, int64_t largest) {
  std::uniform_int_distribution<int64_t> time(0, times - 1);
  std::uniform_int_distribution<int64_t> bytes(0, largest);
  std::vector<PackItem> items;
  for (int i = 0; i < count; ++i) {
    const int64_t a = time(engine), b = time(engine);
    items.push_back({bytes(engine), std::min(a, b), std::max(a, b)});
  }
  return items;
}

} // namespace

TEST(Packer, NothingTakesNothing) {
  EXPECT_EQ(pack({}, 256).bytes, 0);
  const Packing packing = pack({{0, 0, 5}, {0, 0, 5}}, 256);
  EXPECT_EQ(packing.bytes, 0);
}

TEST(Packer, TouchingLivesDoNotShare) {
  // Both ends are included: launch 3 reads the first and writes the second.
  EXPECT_EQ(pack({{100, 0, 3}, {100, 3, 7}}, 1).bytes, 200);
  EXPECT_EQ(pack({{100, 0, 3}, {100, 4, 7}}, 1).bytes, 100);
}

TEST(Packer, OffsetsAreAligned) {
  const Packing packing = pack({{1, 0, 9}, {1, 0, 9}, {257, 0, 9}}, 256);
  expectLegal({{1, 0, 9}, {1, 0, 9}, {257, 0, 9}}, packing, 256);
  EXPECT_EQ(packing.bytes, 1024);
}

TEST(Packer, FillsHoles) {
  // The third fits under the second once the first has ended.
  EXPECT_EQ(pack({{60, 0, 1}, {40, 0, 4}, {60, 2, 4}}, 1).bytes, 100);
}

TEST(Packer, RandomItemsNeverShareAByte) {
  std::mt19937_64 engine(7);
  for (int round = 0; round < test::sweep(300, 20000); ++round) {
    const int64_t alignment = round % 3 == 0 ? 1 : round % 3 == 1 ? 64 : 256;
    const auto items = randomItems(engine, 1 + round % 61, 40, 5000);
    expectLegal(items, pack(items, alignment), alignment);
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
  }
}

TEST(Packer, EqualItemsGiveEqualOffsets) {
  std::mt19937_64 engine(8);
  const auto items = randomItems(engine, 50, 30, 300);
  EXPECT_EQ(pack(items, 16).offsets, pack(items, 16).offsets);
}

// The exhaustive optimum of small problems: never more than 1.5 times it, and
// 5 % above it on average.
TEST(Packer, CloseToTheOptimum) {
  std::mt19937_64 engine(9);
  double sum = 0;
  const int rounds = test::sweep(200, 5000);
  for (int round = 0; round < rounds; ++round) {
    const auto items = randomItems(engine, 3 + round % 5, 8, 100);
    const int64_t best = smallest(items, 4);
    const Packing packing = pack(items, 4);
    expectLegal(items, packing, 4);
    ASSERT_GE(packing.bytes, best);
    ASSERT_LE(2 * packing.bytes, 3 * best) << "round " << round;
    sum += best == 0 ? 1 : static_cast<double>(packing.bytes) / best;
  }
  EXPECT_LT(sum / rounds, 1.05);
}
