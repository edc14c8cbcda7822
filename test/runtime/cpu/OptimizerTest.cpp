#include "runtime/plan/BFloat16.h"
#include "test/runtime/cpu/Conformance.h"

#include <cmath>

using namespace mega;
using reference::Values;

namespace {

class OptimizerTest : public Conformance {};
class BufferTest : public Conformance {};
MEGA_FOR_EVERY_DEVICE(OptimizerTest);
MEGA_FOR_EVERY_DEVICE(BufferTest);

TEST_P(OptimizerTest, SumOfSquaresIsExactToDouble) {
  // Several blocks, the last one partial.
  Buffer x = Buffer::random({333333}, 1), total(DataType::F64, {});
  double expected = 0;
  for (double value : x.values()) {
    expected += value * value;
  }
  launch(Kernel::SumSquares, {&x, &total}, {0});
  EXPECT_NEAR(total.values()[0], expected, 1e-11 * expected);
  launch(Kernel::SumSquares, {&x, &total}, {1});
  EXPECT_NEAR(total.values()[0], 2 * expected, 1e-11 * expected);
}

TEST_P(OptimizerTest, ClipsOnlyLargeGradients) {
  Buffer total(DataType::F64, {}), scale = Buffer::zeros({});
  total.set({16.0});
  launch(Kernel::ClipScale, {&total, &scale});
  EXPECT_NEAR(scale.values()[0], 0.25, 1e-6);
  total.set({0.25});
  launch(Kernel::ClipScale, {&total, &scale});
  EXPECT_EQ(scale.values()[0], 1.0);
  scalars.clip = 0;
  total.set({1e6});
  launch(Kernel::ClipScale, {&total, &scale});
  EXPECT_EQ(scale.values()[0], 1.0);
}

TEST_P(OptimizerTest, AdamWMatchesOverManySteps) {
  scalars.lr = 1e-2f;
  scalars.weightDecay = 0.1f;
  for (int64_t decay : {0, 1}) {
    Buffer weight = Buffer::random({37, 73}, 1);
    Buffer moment = Buffer::zeros({37, 73}), variance = moment;
    Buffer scale = Buffer::zeros({});
    scale.set({0.375});
    std::vector<reference::AdamWState> states;
    for (double value : weight.values()) {
      states.push_back({value, 0, 0});
    }
    for (scalars.step = 1; scalars.step <= 5; ++scalars.step) {
      Buffer grad =
          Buffer::random({37, 73}, static_cast<unsigned>(10 + scalars.step));
      const Values g = grad.values();
      launch(Kernel::AdamW, {&weight, &grad, &moment, &variance, &scale},
             {decay});
      for (size_t i = 0; i < states.size(); ++i) {
        states[i] = reference::adamW(states[i], g[i], 0.375, decay, scalars);
      }
    }
    Values w, m, v;
    for (const reference::AdamWState &state : states) {
      w.push_back(state.weight);
      m.push_back(state.moment);
      v.push_back(state.variance);
    }
    // A handful of roundings a step.
    expectClose(weight, w, 25);
    expectClose(moment, m, 25);
    expectClose(variance, v, 25);
  }
}

TEST_P(BufferTest, ZeroClearsEveryType) {
  Buffer a = Buffer::random({3, 5, 20001}, 1), count(DataType::I64, {7});
  count.set(Values(7, 9.0));
  launch(Kernel::Zero, {&a});
  launch(Kernel::Zero, {&count});
  EXPECT_EQ(a.values(), Values(3 * 5 * 20001, 0.0));
  EXPECT_EQ(count.values(), Values(7, 0.0));
}

TEST_P(BufferTest, CopyMovesBetweenStrides) {
  Buffer source = Buffer::random({3, 37, 72}, 1, 5);
  Buffer target = Buffer::zeros({3, 37, 72}, 9);
  launch(Kernel::Copy, {&source, &target});
  EXPECT_EQ(target.values(), source.values());
  Buffer ids = Buffer::ids({2, 3}, {1, -2, 3, -4, 5, -6});
  Buffer copied(DataType::I32, {2, 3});
  launch(Kernel::Copy, {&ids, &copied});
  EXPECT_EQ(copied.values(), ids.values());
}

TEST_P(BufferTest, AccumulateKnowsEveryPairOfFloats) {
  for (DataType from : {DataType::F32, DataType::BF16, DataType::F64}) {
    for (DataType to : {DataType::F32, DataType::BF16, DataType::F64}) {
      Buffer source = Buffer::random({3, 37, 72}, 1, 5, 1, from);
      Buffer target = Buffer::random({3, 37, 72}, 2, 9, 1, to);
      Values expected = target.values();
      const Values added = source.values();
      for (size_t i = 0; i < added.size(); ++i) {
        expected[i] += added[i];
      }
      launch(Kernel::Accumulate, {&source, &target});
      expectClose(target, expected, 1);
    }
  }
}

TEST_P(BufferTest, CastRoundsToNearestEven) {
  Buffer wide = Buffer::zeros({3, 5, 7}, 2);
  Buffer narrow(DataType::BF16, {3, 5, 7}, 9);
  Values values(3 * 5 * 7, 0.0), expected = values;
  const double step = 0x1p-7, huge = 0x1.FEp127, infinity = INFINITY;
  const std::pair<double, double> cases[] = {
      {1, 1},
      {-1.5, -1.5},
      // Half-way: to the even neighbour, on either side.
      {1 + step / 2, 1},
      {1 + 3 * step / 2, 1 + 2 * step},
      {-1 - step / 2, -1},
      {1 + step / 2 + 0x1p-23, 1 + step},
      {1 + step / 2 - 0x1p-23, 1},
      // Into the next power of two, and past the largest number.
      {2 - 0x1p-23, 2},
      {huge, huge},
      {0x1.FFp127, infinity},
      {infinity, infinity},
      {-infinity, -infinity},
      {0x1p-126, 0x1p-126},
  };
  size_t i = 0;
  for (const auto &[value, rounded] : cases) {
    // Far enough apart for whole vectors and tails.
    values[i] = values[i + 50] = value;
    expected[i] = expected[i + 50] = rounded;
    ++i;
  }
  wide.set(values);
  launch(Kernel::Cast, {&wide, &narrow});
  EXPECT_EQ(narrow.values(), expected);
  launch(Kernel::Cast, {&narrow, &wide});
  EXPECT_EQ(wide.values(), expected);
}

TEST_P(BufferTest, CastKeepsEveryBFloat16) {
  Buffer narrow(DataType::BF16, {256, 256}), back = narrow;
  Buffer wide = Buffer::zeros({256, 256}, 3);
  auto *bits = narrow.view().as<BFloat16>();
  for (int i = 0; i < 65536; ++i) {
    bits[i].bits = static_cast<uint16_t>(i);
  }
  launch(Kernel::Cast, {&narrow, &wide});
  launch(Kernel::Cast, {&wide, &back});
  for (int i = 0; i < 65536; ++i) {
    const BFloat16 before = bits[i], after = back.view().as<BFloat16>()[i];
    if (std::isnan(static_cast<float>(before))) {
      ASSERT_TRUE(std::isnan(static_cast<float>(after))) << i;
    } else {
      ASSERT_EQ(before.bits, after.bits) << i;
    }
  }
}

TEST_P(BufferTest, CastAgreesWithTheScalarType) {
  Buffer wide = Buffer::random({37, 73}, 1, 5, 1e3);
  Buffer narrow(DataType::BF16, {37, 73});
  Values expected;
  for (double value : wide.values()) {
    expected.push_back(BFloat16(static_cast<float>(value)));
  }
  launch(Kernel::Cast, {&wide, &narrow});
  EXPECT_EQ(narrow.values(), expected);
}

TEST_P(BufferTest, AccumulateAddsAndWidens) {
  Buffer source = Buffer::random({3, 37, 72}, 1, 5);
  Buffer target = Buffer::random({3, 37, 72}, 2, 9);
  Buffer wide(DataType::F64, {3, 37, 72}, 2);
  Values expected = target.values();
  const Values added = source.values();
  wide.set(expected);
  for (size_t i = 0; i < added.size(); ++i) {
    expected[i] += added[i];
  }
  launch(Kernel::Accumulate, {&source, &target});
  expectClose(target, expected, 1);
  launch(Kernel::Accumulate, {&source, &wide});
  EXPECT_EQ(wide.values(), expected);
}

} // namespace
