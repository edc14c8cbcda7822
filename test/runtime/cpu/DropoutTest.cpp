#include "test/runtime/cpu/Conformance.h"

#include <cmath>

using namespace mega;
using reference::Values;

namespace {

class DropoutTest : public Conformance {};
MEGA_FOR_EVERY_DEVICE_AND_TYPE(DropoutTest);

TEST_P(DropoutTest, MaskIsTheCountersOwn) {
  scalars.seed = 7;
  scalars.step = 11;
  application = 3;
  firstSample = int64_t{1} << 33;
  const uint64_t key = dropoutKey(7, 11, 99, 3);
  Buffer x = random({3, 37, 73}, 1, 5), y = zeros({3, 37, 73}, 2);
  launch(Kernel::Dropout, {&x, &y}, {99, 0, 0}, {0.3});
  Values expected = x.values();
  for (int64_t i = 0; i < 3 * 37 * 73; ++i) {
    const bool keep = reference::keepsActivation(
        key, 0.3, firstSample + i / (37 * 73), i / 73 % 37, i % 73);
    expected[i] = keep ? expected[i] / 0.7 : 0;
  }
  expectClose(y, expected, 2);
  const Values separate = y.values();
  launch(Kernel::Dropout, {&x, &x}, {99, 0, 0}, {0.3});
  EXPECT_EQ(x.values(), separate);
}

// Rows in another order, with the places that they had.
TEST_P(DropoutTest, MaskGoesWithThePlace) {
  application = 3;
  Buffer x = random({2, 37, 73}, 1, 5), y = zeros({2, 37, 73}, 2);
  launch(Kernel::Dropout, {&x, &y}, {99, 0, 0}, {0.3});
  // Documents of ten tokens.
  std::vector<int> positions, segments;
  const Values before = x.values(), after = y.values();
  Values moved = before, expected = after;
  for (int row = 0; row < 2 * 37; ++row) {
    const int from = row % 37 * 16 % 37;
    positions.push_back(from % 10);
    segments.push_back(from / 10 * 10);
    for (int i = 0; i < 73; ++i) {
      const int source = (row / 37 * 37 + from) * 73 + i;
      moved[row * 73 + i] = before[source];
      expected[row * 73 + i] = after[source];
    }
  }
  x.set(moved);
  Buffer p = Buffer::ids({2, 37}, positions);
  Buffer s = Buffer::ids({2, 37}, segments);
  launch(Kernel::DropoutAt, {&x, &p, &s, &y}, {99, 0}, {0.3});
  EXPECT_EQ(y.values(), expected);
  // Features from the third on.
  Buffer part = zeros({2, 37, 70}), into = part;
  Values features, wanted;
  for (int i = 0; i < 2 * 37 * 73; ++i) {
    if (i % 73 >= 3) {
      features.push_back(moved[i]);
      wanted.push_back(expected[i]);
    }
  }
  part.set(features);
  launch(Kernel::DropoutAt, {&part, &p, &s, &into}, {99, 3}, {0.3});
  EXPECT_EQ(into.values(), wanted);
  launch(Kernel::DropoutAt, {&part, &p, &s, &part}, {99, 3}, {0.0});
  EXPECT_EQ(part.values(), features);
}

TEST_P(DropoutTest, KeepsTheExpectation) {
  Buffer x = zeros({4, 64, 256}), y = x;
  x.set(Values(4 * 64 * 256, 1.0));
  launch(Kernel::Dropout, {&x, &y}, {1, 0, 0}, {0.1});
  double mean = 0;
  for (double value : y.values()) {
    mean += value / (4 * 64 * 256);
  }
  // Five standard deviations of the mean of 65536 draws.
  EXPECT_NEAR(mean, 1, 5 * std::sqrt(0.1 / 0.9 / 65536));
}

TEST_P(DropoutTest, ProbabilityZeroCopies) {
  Buffer x = random({3, 37, 73}, 1, 5), y = zeros({3, 37, 73});
  launch(Kernel::Dropout, {&x, &y}, {1, 0, 0}, {0.0});
  EXPECT_EQ(y.values(), x.values());
  const Values before = x.values();
  launch(Kernel::Dropout, {&x, &x}, {1, 0, 0}, {0.0});
  EXPECT_EQ(x.values(), before);
}

TEST_P(DropoutTest, DroppedInfinitiesAreZero) {
  Buffer x = zeros({1, 1, 64}), y = x;
  x.set(Values(64, INFINITY));
  launch(Kernel::Dropout, {&x, &y}, {1, 0, 0}, {0.5});
  for (double value : y.values()) {
    EXPECT_TRUE(value == 0 || value == INFINITY) << value;
  }
}

} // namespace
