#include "runtime/plan/InitialValues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

using namespace mega;

namespace {

std::vector<float> fill(const InitialValue &value, int64_t first, size_t count,
                        uint64_t seed = 1234,
                        std::string_view name = "h.0.attn.q.weight") {
  std::vector<float> out(count);
  fillInitialValues(out, value, seed, name, first);
  return out;
}

std::vector<uint32_t> bits(const std::vector<float> &values) {
  std::vector<uint32_t> result;
  for (float value : values) {
    result.push_back(std::bit_cast<uint32_t>(value));
  }
  return result;
}

/// The standard normal distribution function, accurate in both tails.
double normalCdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

} // namespace

// Recomputed outside this project, in Python: Philox on integers, AS 241 of
// the standard library, rounded to single.
TEST(InitialValues, NormalHasTheRecordedBits) {
  const auto normal = InitialValue::normal(0.02);
  EXPECT_THAT(bits(fill(normal, 0, 6)),
              testing::ElementsAre(0xbbf96c33, 0x3cac0301, 0xbd364faa,
                                   0x3c436060, 0x3ca7eace, 0x3cae2971));
  // In the tail, and where the counter needs its second word.
  EXPECT_THAT(bits(fill(normal, 12124, 1)), testing::ElementsAre(0x3da425eb));
  EXPECT_THAT(bits(fill(normal, (int64_t{1} << 34) + 3, 2)),
              testing::ElementsAre(0xbc756954, 0x3c9478ea));
}

TEST(InitialValues, ARangeIsASliceOfTheWhole) {
  const auto whole = fill(InitialValue::normal(0.02), 0, 64);
  for (size_t first = 0; first < 9; ++first) {
    for (size_t count = 0; count < 11; ++count) {
      const std::vector<float> slice(whole.begin() + first,
                                     whole.begin() + first + count);
      EXPECT_EQ(fill(InitialValue::normal(0.02), first, count), slice);
    }
  }
}

TEST(InitialValues, SeedAndNameGiveOtherNumbers) {
  const auto normal = InitialValue::normal(1);
  EXPECT_NE(fill(normal, 0, 8, 1), fill(normal, 0, 8, 2));
  EXPECT_NE(fill(normal, 0, 8, 1, "a"), fill(normal, 0, 8, 1, "b"));
}

TEST(InitialValues, NormalHasTheMomentsOfANormal) {
  constexpr int kCount = 1'000'000;
  double moments[5] = {};
  int beyondThree = 0;
  for (float value : fill(InitialValue::normal(0.5, 3), 0, kCount)) {
    const double z = (value - 3.0) / 0.5;
    double power = 1;
    for (double &moment : moments) {
      moment += power / kCount;
      power *= z;
    }
    beyondThree += std::abs(z) > 3;
  }
  EXPECT_NEAR(moments[1], 0, 0.005);
  EXPECT_NEAR(moments[2], 1, 0.007);
  EXPECT_NEAR(moments[3], 0, 0.02);
  EXPECT_NEAR(moments[4], 3, 0.05);
  EXPECT_NEAR(beyondThree / double{kCount}, 0.0026998, 0.0003);
}

TEST(InitialValues, UniformStaysInItsBounds) {
  double sum = 0;
  for (float value : fill(InitialValue::uniform(-2, 6), 0, 100'000)) {
    ASSERT_GE(value, -2);
    ASSERT_LE(value, 6);
    sum += value;
  }
  EXPECT_NEAR(sum / 100'000, 2, 0.03);
}

TEST(InitialValues, ConstantsAreExact) {
  EXPECT_THAT(fill(InitialValue::zeros(), 3, 5), testing::Each(0.0f));
  EXPECT_THAT(fill(InitialValue::ones(), 3, 5), testing::Each(1.0f));
  EXPECT_THAT(fill(InitialValue::constant(0.1), 3, 5), testing::Each(0.1f));
}

TEST(InitialValues, NeighboursAreUncorrelated) {
  const auto values = fill(InitialValue::normal(1), 0, 200'000);
  for (size_t lag : {1, 2, 3, 4, 768}) {
    double sum = 0;
    for (size_t i = lag; i < values.size(); ++i) {
      sum += values[i] * values[i - lag];
    }
    EXPECT_NEAR(sum / static_cast<double>(values.size()), 0, 0.012) << lag;
  }
}

TEST(InverseNormal, UndoesTheDistributionFunction) {
  for (double p = 0x1p-36; p < 0.5; p *= 1.01) {
    const double z = inverseNormal(p);
    EXPECT_NEAR(normalCdf(z) / p, 1, 3e-14) << p;
    EXPECT_NEAR(normalCdf(-inverseNormal(1 - p)) / p, 1, 1e-5) << p;
  }
  EXPECT_EQ(inverseNormal(0.5), 0);
}

TEST(InverseNormal, IsMonotoneAcrossTheSeamAndOddAboutOneHalf) {
  for (double edge : {0.075, 0.925}) {
    double previous = inverseNormal(edge - 1e-9);
    for (int i = -99; i <= 100; ++i) {
      const double next = inverseNormal(edge + i * 1e-11);
      EXPECT_GT(next, previous);
      previous = next;
    }
  }
  for (int i = 1; i < 4096; ++i) {
    const double p = i / 8192.0;
    EXPECT_EQ(inverseNormal(p), -inverseNormal(1 - p));
  }
}
