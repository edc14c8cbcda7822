#include "runtime/plan/RopeFrequencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using namespace mega;
using testing::HasSubstr;

namespace {

std::vector<double> frequencies(const RopeScaling &scaling, double base,
                                int64_t dim) {
  std::vector<double> out(dim / 2);
  ropeFrequencies(scaling, base, dim, out);
  return out;
}

TEST(RopeFrequencies, NoneAndLinear) {
  const auto plain = frequencies({}, 10000, 12);
  const auto linear =
      frequencies({.kind = RopeScalingKind::Linear, .factor = 4}, 10000, 12);
  for (int i = 0; i < 6; ++i) {
    EXPECT_NEAR(plain[i], std::pow(10000, -2.0 * i / 12), 1e-15);
    EXPECT_EQ(linear[i], plain[i] / 4);
  }
}

/// Llama 3.2: fast pairs stay, slow pairs are divided, three are blended.
TEST(RopeFrequencies, Llama3) {
  const RopeScaling scaling = {.kind = RopeScalingKind::Llama3,
                               .factor = 32,
                               .lowFrequency = 1,
                               .highFrequency = 4,
                               .originalPositions = 8192};
  const auto plain = frequencies({}, 500000, 64);
  const auto scaled = frequencies(scaling, 500000, 64);
  for (int i = 0; i < 32; ++i) {
    if (i <= 14) {
      EXPECT_EQ(scaled[i], plain[i]) << i;
    } else if (i >= 18) {
      EXPECT_EQ(scaled[i], plain[i] / 32) << i;
    }
  }
  EXPECT_NEAR(scaled[15], 0.0012905479282092638, 1e-15);
  EXPECT_NEAR(scaled[16], 0.0004295567965593682, 1e-15);
  EXPECT_NEAR(scaled[17], 9.70828780262767e-05, 1e-16);
}

void expectAt(const std::vector<double> &values,
              std::initializer_list<std::pair<int, double>> expected) {
  for (const auto &[pair, value] : expected) {
    EXPECT_NEAR(values[pair], value, 1e-13 * value) << pair;
  }
}

/// Values computed by the formulas in another language's doubles.
TEST(RopeFrequencies, Yarn) {
  const RopeScaling scaling = {.kind = RopeScalingKind::Yarn,
                               .factor = 40,
                               .originalPositions = 4096,
                               .betaFast = 32,
                               .betaSlow = 1,
                               .attentionFactor = 0.1 * std::log(40) + 1};
  expectAt(frequencies(scaling, 1e6, 64), {{0, 1.0},
                                           {6, 0.07498942093324558},
                                           {7, 0.04394881914621915},
                                           {11, 0.004438067157220334},
                                           {15, 0.0001886409994422877},
                                           {16, 2.5e-05},
                                           {31, 3.8498163151487304e-08}});
  expectAt(frequencies(scaling, 10000, 128), {{20, 0.056234132519034905},
                                              {21, 0.04687062429721433},
                                              {33, 0.004438067157220334},
                                              {45, 9.62454078787182e-05},
                                              {46, 3.33380358040831e-05},
                                              {63, 2.8869549617236457e-06}});
}

/// Without a ramp of at least one pair the cut is still a cut.
TEST(RopeFrequencies, YarnWithAnEmptyRamp) {
  const RopeScaling scaling = {.kind = RopeScalingKind::Yarn,
                               .factor = 8,
                               .originalPositions = 4,
                               .betaFast = 32,
                               .betaSlow = 1};
  const auto plain = frequencies({}, 10000, 16);
  const auto scaled = frequencies(scaling, 10000, 16);
  EXPECT_EQ(scaled[0], plain[0]);
  for (int i = 1; i < 8; ++i) {
    EXPECT_EQ(scaled[i], plain[i] / 8) << i;
  }
}

TEST(RopeFrequencies, RefusesNumbersOutOfRange) {
  const auto message = [](const RopeScaling &scaling, double base = 10000) {
    return std::string(checkRopeScaling(scaling, base).message());
  };
  const RopeScaling linear = {.kind = RopeScalingKind::Linear, .factor = 2};
  RopeScaling llama = {.kind = RopeScalingKind::Llama3, .factor = 2};
  RopeScaling yarn = {.kind = RopeScalingKind::Yarn, .factor = 2};
  for (const RopeScaling &scaling : {RopeScaling{}, linear, llama, yarn}) {
    EXPECT_TRUE(checkRopeScaling(scaling, 10000).isOk());
  }
  EXPECT_THAT(message({}, 0), HasSubstr("base is 0, expected"));
  EXPECT_THAT(message({.kind = static_cast<RopeScalingKind>(4)}),
              HasSubstr("scaling is 4, expected 0 to 3"));
  EXPECT_THAT(message({.kind = RopeScalingKind::Linear, .factor = 0.5}),
              HasSubstr("factor is 0.5, expected at least 1"));
  EXPECT_THAT(message({.attentionFactor = 1.2}),
              HasSubstr("attention_factor is 1.2, expected 1 without yarn"));
  llama.lowFrequency = 4;
  EXPECT_THAT(message(llama), HasSubstr("low_frequency is 4, expected less "
                                        "than high_frequency = 4"));
  llama.lowFrequency = 0;
  EXPECT_THAT(message(llama), HasSubstr("low_frequency is 0, expected a pos"));
  llama = {.kind = RopeScalingKind::Llama3, .originalPositions = -1};
  EXPECT_THAT(message(llama), HasSubstr("original_positions is -1, expected"));
  yarn.betaFast = 1;
  EXPECT_THAT(message(yarn),
              HasSubstr("beta_slow is 1, expected less than beta_fast = 1"));
  yarn = {.kind = RopeScalingKind::Yarn, .attentionFactor = 0};
  EXPECT_THAT(message(yarn), HasSubstr("attention_factor is 0, expected a"));
  EXPECT_THAT(message({.kind = RopeScalingKind::Yarn}, 1),
              HasSubstr("base is 1, expected more than 1 with yarn"));
}

} // namespace
