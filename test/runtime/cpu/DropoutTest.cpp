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
