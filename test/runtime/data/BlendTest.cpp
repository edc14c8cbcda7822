#include "runtime/data/Blend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace mega;
using testing::HasSubstr;

namespace {

Blend blend(const std::vector<double> &weights) {
  auto created = Blend::create(weights);
  EXPECT_TRUE(created.isOk()) << created.status().message();
  return std::move(created).take();
}

} // namespace

TEST(Blend, FollowsMegatronsRule) {
  // The rule itself, in doubles, where the weights are exact.
  const std::vector<double> weights = {0.25, 0.5, 0.125, 0.125};
  const Blend subject = blend(weights);
  std::vector<int64_t> given(weights.size(), 0);
  for (int64_t row = 0; row < kBlendPeriod; ++row) {
    size_t best = 0;
    double bestError = -1e30;
    for (size_t d = 0; d < weights.size(); ++d) {
      const double error =
          weights[d] * static_cast<double>(std::max<int64_t>(row, 1)) -
          static_cast<double>(given[d]);
      if (error > bestError) {
        best = d;
        bestError = error;
      }
    }
    const Blend::Pick pick = subject.pick(row);
    ASSERT_EQ(pick.dataset, static_cast<int32_t>(best)) << row;
    ASSERT_EQ(pick.turn, given[best]) << row;
    ++given[best];
    // Every period is like the first.
    ASSERT_EQ(subject.pick(row + 3 * kBlendPeriod).dataset, pick.dataset);
  }
}

TEST(Blend, TurnsCountTheRowsOfEachDataset) {
  const Blend subject = blend({3, 0.7, 11, 1e-2, 5});
  std::vector<int64_t> given(5, 0);
  for (int64_t row = 0; row < 2 * kBlendPeriod + 777; ++row) {
    const Blend::Pick pick = subject.pick(row);
    ASSERT_EQ(pick.turn, given[pick.dataset]++) << row;
  }
  // Far out, without the rows before.
  const int64_t far = int64_t{1} << 45;
  EXPECT_EQ(subject.pick(far * kBlendPeriod + 5).dataset,
            subject.pick(5).dataset);
}

TEST(Blend, StaysNearTheWeightsEverywhere) {
  const std::vector<double> weights = {0.7, 0.2, 0.0999, 0.0001};
  const Blend subject = blend(weights);
  std::vector<int64_t> given(4, 0);
  for (int64_t row = 0; row < kBlendPeriod; ++row) {
    ++given[subject.pick(row).dataset];
    for (size_t d = 0; d < 4; ++d) {
      ASSERT_LT(std::abs(static_cast<double>(given[d]) -
                         subject.fraction(static_cast<int64_t>(d)) *
                             static_cast<double>(row + 1)),
                2.0)
          << row;
    }
  }
}

TEST(Blend, FractionsAreExactForThousandths) {
  const Blend subject = blend({969, 30, 1});
  EXPECT_DOUBLE_EQ(subject.fraction(0), 0.969);
  EXPECT_DOUBLE_EQ(subject.fraction(2), 0.001);
  const Blend thirds = blend({1e300, 1e300, 1e300});
  EXPECT_DOUBLE_EQ(thirds.fraction(1), 1.0 / 3);
}

TEST(Blend, RefusesWeightsItCannotKeep) {
  const auto refused = [](const std::vector<double> &weights) {
    const auto created = Blend::create(weights);
    EXPECT_EQ(created.status().code(), Code::Usage);
    return created.status().message();
  };
  EXPECT_THAT(refused({}), HasSubstr("0 datasets, 1 to"));
  EXPECT_THAT(refused({1, 0}), HasSubstr("the weight of dataset 2 is 0"));
  EXPECT_THAT(refused({-1, 1}), HasSubstr("dataset 1 is -1"));
  EXPECT_THAT(refused({1, std::numeric_limits<double>::quiet_NaN()}),
              HasSubstr("dataset 2 is nan"));
  EXPECT_THAT(refused({1, 1e-7}), HasSubstr("the smallest that can be kept is "
                                            "1/126000"));
  EXPECT_THAT(refused(std::vector<double>(2000, 1)),
              HasSubstr("2000 datasets"));
}
