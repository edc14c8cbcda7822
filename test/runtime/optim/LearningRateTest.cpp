#include "runtime/optim/LearningRate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace mega;

namespace {

LearningRate make(const LearningRate::Options &options) {
  auto created = LearningRate::create(options);
  EXPECT_TRUE(created.isOk()) << created.status().message();
  return std::move(created).take();
}

/// Peak 8, minimum 2, 4 warm-up steps of 12.
LearningRate make(LearningRateKind kind) {
  return make({kind, 8, 2, 4, 12, std::nullopt});
}

std::string refused(const LearningRate::Options &options) {
  const auto created = LearningRate::create(options);
  EXPECT_EQ(created.status().code(), Code::Usage);
  return created.status().message();
}

} // namespace

TEST(LearningRate, WarmsUpToThePeak) {
  for (auto kind : {LearningRateKind::Constant, LearningRateKind::Linear,
                    LearningRateKind::Cosine, LearningRateKind::Wsd}) {
    const LearningRate rate = make(kind);
    EXPECT_EQ(rate.at(1), 2);
    EXPECT_EQ(rate.at(3), 6);
    EXPECT_EQ(rate.at(4), 8);
  }
}

TEST(LearningRate, ConstantStays) {
  const LearningRate rate = make(LearningRateKind::Constant);
  EXPECT_EQ(rate.at(5), 8);
  EXPECT_EQ(rate.at(100), 8);
}

TEST(LearningRate, LinearFallsToTheMinimum) {
  const LearningRate rate = make(LearningRateKind::Linear);
  EXPECT_EQ(rate.at(6), 6.5);
  EXPECT_EQ(rate.at(8), 5);
  EXPECT_EQ(rate.at(12), 2);
  EXPECT_EQ(rate.at(13), 2);
}

TEST(LearningRate, CosineFallsToTheMinimum) {
  const LearningRate rate = make(LearningRateKind::Cosine);
  EXPECT_NEAR(rate.at(6), 5 + 3 * std::sqrt(0.5), 1e-14);
  EXPECT_NEAR(rate.at(8), 5, 1e-14);
  EXPECT_NEAR(rate.at(10), 5 - 3 * std::sqrt(0.5), 1e-14);
  EXPECT_EQ(rate.at(12), 2);
  EXPECT_EQ(rate.at(1'000'000), 2);
}

TEST(LearningRate, CosineAgreesWithTheLibrary) {
  const LearningRate rate =
      make({LearningRateKind::Cosine, 1, 0, 0, 1000, std::nullopt});
  for (int step = 1; step <= 1000; ++step) {
    EXPECT_NEAR(rate.at(step), 0.5 * (1 + std::cos(M_PI * step / 1000)), 1e-15);
  }
}

TEST(LearningRate, WsdIsStableThenDecays) {
  const LearningRate rate = make({LearningRateKind::Wsd, 8, 2, 4, 12, 3});
  EXPECT_EQ(rate.at(5), 8);
  EXPECT_EQ(rate.at(9), 8);
  EXPECT_EQ(rate.at(10), 6);
  EXPECT_EQ(rate.at(11), 4);
  EXPECT_EQ(rate.at(12), 2);
}

TEST(LearningRate, WsdDecaysOverAFifthByDefault) {
  const auto decay = [](int64_t warmup, int64_t total) {
    return make({LearningRateKind::Wsd, 8, 2, warmup, total, std::nullopt})
        .decaySteps();
  };
  EXPECT_EQ(decay(0, 1000), 200);
  EXPECT_EQ(decay(0, 14), 2);
  EXPECT_EQ(decay(0, 3), 1);
  EXPECT_EQ(decay(950, 1000), 50);
  EXPECT_EQ(decay(3, 3), 0);
}

TEST(LearningRate, WarmUpMayFillTheRun) {
  const LearningRate rate =
      make({LearningRateKind::Cosine, 8, 2, 4, 4, std::nullopt});
  EXPECT_EQ(rate.at(4), 8);
  EXPECT_EQ(rate.at(5), 2);
}

TEST(LearningRate, FindsKindsByName) {
  EXPECT_EQ(findLearningRateKind("wsd"), LearningRateKind::Wsd);
  EXPECT_EQ(findLearningRateKind("constant"), LearningRateKind::Constant);
  EXPECT_FALSE(findLearningRateKind("Cosine"));
}

TEST(LearningRate, RefusesOptionsThatContradictEachOther) {
  const auto linear = LearningRateKind::Linear;
  EXPECT_EQ(refused({linear, -1, 0, 0, 1, {}}),
            "--lr is -1, expected a finite number of at least 0");
  refused({linear, std::numeric_limits<double>::infinity(), 0, 0, 1, {}});
  refused({linear, std::nan(""), 0, 0, 1, {}});
  EXPECT_EQ(refused({linear, 1, 2, 0, 1, {}}),
            "--min-lr is 2, expected 0 to --lr = 1");
  refused({linear, 1, std::nan(""), 0, 1, {}});
  EXPECT_EQ(refused({linear, 1, 0, 0, 0, {}}),
            "--steps is 0, expected at least 1");
  EXPECT_EQ(refused({linear, 1, 0, 6, 5, {}}),
            "--warmup-steps is 6, expected 0 to --steps = 5");
  EXPECT_EQ(refused({linear, 1, 0, 1, 5, 2}),
            "--decay-steps is for --lr-schedule wsd only");
  EXPECT_EQ(refused({LearningRateKind::Wsd, 1, 0, 1, 5, 5}),
            "--decay-steps is 5, expected 0 to 4 = --steps 5 less "
            "--warmup-steps 1");
}
