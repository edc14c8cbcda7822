#include "runtime/plan/ByteSet.h"

#include <gtest/gtest.h>

#include <bitset>
#include <random>

using namespace mega;

namespace {

constexpr int kBytes = 96;
using Bits = std::bitset<kBytes>;

Bits bitsOf(const Box &box) {
  Bits bits;
  for (int64_t r = 0; r < box.rows; ++r) {
    for (int64_t c = 0; c < box.width; ++c) {
      bits.set(box.begin + r * box.stride + c);
    }
  }
  return bits;
}

Bits bitsOf(const ByteSet &set) {
  Bits bits;
  for (const Box &box : set.boxes()) {
    bits |= bitsOf(box);
  }
  return bits;
}

/// Strides from a small set, so that slices meet in the same grid often.
Box randomBox(std::mt19937 &random) {
  const auto below = [&random](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  const int64_t begin = below(40);
  if (below(2) == 0) {
    return Box::interval(begin, begin + 1 + below(40));
  }
  const int64_t stride = below(3) == 0 ? 5 : 6;
  const int64_t width = 1 + below(stride - 1);
  return {begin, width, stride, 2 + below(5)};
}

} // namespace

TEST(ByteSet, AgreesWithABitmap) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 3000; ++trial) {
    ByteSet set;
    Bits bits;
    for (int step = 0; step < 12; ++step) {
      const Box box = randomBox(random);
      if (random() % 3 == 0) {
        set.subtract(box);
        bits &= ~bitsOf(box);
      } else {
        set.add(box);
        bits |= bitsOf(box);
      }
      ASSERT_EQ(bitsOf(set), bits) << trial;
      ASSERT_FALSE(set.overflowed());
      const Box query = randomBox(random);
      ASSERT_EQ(set.covers(query), (bitsOf(query) & ~bits).none()) << trial;
      ASSERT_EQ(set.overlaps(query), (bitsOf(query) & bits).any()) << trial;
      ASSERT_EQ(set.empty(), bits.none());
    }
  }
}

TEST(ByteSet, BoxesOverlapExactly) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 20000; ++trial) {
    const Box a = randomBox(random);
    const Box b = randomBox(random);
    ASSERT_EQ(overlap(a, b), (bitsOf(a) & bitsOf(b)).any());
    ASSERT_EQ(contains(a, b), (bitsOf(b) & ~bitsOf(a)).none());
  }
}

TEST(ByteSet, SlicesOfAllColumnsBecomeOneInterval) {
  BufferType slice(DataType::F32, {2, 1000, 8});
  slice.rowStride = 24;
  ByteSet set;
  for (int64_t column : {16, 0, 8}) {
    set.add(Box::of(slice, 128 + column * 4));
  }
  const std::vector<Box> boxes = set.boxes();
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0], Box::interval(128, 128 + 2000 * 24 * 4));
}
