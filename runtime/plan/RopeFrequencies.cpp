#include "runtime/plan/RopeFrequencies.h"

#include "runtime/plan/KernelExpect.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mega {
namespace {
double llama3(const RopeScaling &s, double f) {
  const double wavelength = 2 * std::numbers::pi / f;
  if (wavelength < s.originalPositions / s.highFrequency) {
    return f;
  }
  if (wavelength > s.originalPositions / s.lowFrequency) {
    return f / s.factor;
  }
  const double kept = (s.originalPositions / wavelength - s.lowFrequency) /
                      (s.highFrequency - s.lowFrequency);
  return f * ((1 - kept) / s.factor + kept);
}

/// How far YaRN slows a pair down: 0 for fast pairs, 1 for slow ones.
double yarnRamp(const RopeScaling &s, double base, int64_t dim, int64_t pair) {
  // The pair, as a real number, that turns `turns` times over L.
  const auto pairTurning = [&](double turns) {
    return dim *
           std::log(s.originalPositions / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(base));
  };
  const double low = std::max(std::floor(pairTurning(s.betaFast)), 0.0);
  double high = std::min(std::ceil(pairTurning(s.betaSlow)),
                         static_cast<double>(dim - 1));
  if (low == high) {
    high += 0.001;
  }
  return std::clamp((pair - low) / (high - low), 0.0, 1.0);
}
} // namespace

RopeScaling RopeScaling::of(std::span<const int64_t> integers,
                            std::span<const double> floats) {
  return {.kind = static_cast<RopeScalingKind>(integers[0]),
          .factor = floats[1],
          .lowFrequency = floats[2],
          .highFrequency = floats[3],
          .originalPositions = floats[4],
          .betaFast = floats[5],
          .betaSlow = floats[6],
          .attentionFactor = floats[7]};
}

Status checkRopeScaling(const RopeScaling &s, double base) {
  MEGA_RETURN_IF_ERROR(checks::expectPositive("base", base));
  MEGA_RETURN_IF_ERROR(checks::expectRange(
      "scaling", static_cast<int64_t>(s.kind), 0, kRopeScalingKindCount - 1));
  if (s.kind != RopeScalingKind::None) {
    MEGA_RETURN_IF_ERROR(checks::expectFinite("factor", s.factor));
    if (s.factor < 1) {
      return badInput("factor is {}, expected at least 1", s.factor);
    }
  }
  if (s.kind == RopeScalingKind::Llama3) {
    MEGA_RETURN_IF_ERROR(
        checks::expectPositive("low_frequency", s.lowFrequency));
    MEGA_RETURN_IF_ERROR(
        checks::expectPositive("high_frequency", s.highFrequency));
    if (s.lowFrequency >= s.highFrequency) {
      return badInput("low_frequency is {}, expected less than "
                      "high_frequency = {}",
                      s.lowFrequency, s.highFrequency);
    }
  }
  if (s.kind == RopeScalingKind::Yarn) {
    MEGA_RETURN_IF_ERROR(checks::expectPositive("beta_slow", s.betaSlow));
    MEGA_RETURN_IF_ERROR(checks::expectPositive("beta_fast", s.betaFast));
    if (s.betaSlow >= s.betaFast) {
      return badInput("beta_slow is {}, expected less than beta_fast = {}",
                      s.betaSlow, s.betaFast);
    }
    if (base <= 1) {
      return badInput("base is {}, expected more than 1 with yarn", base);
    }
  }
  if (s.kind == RopeScalingKind::Llama3 || s.kind == RopeScalingKind::Yarn) {
    MEGA_RETURN_IF_ERROR(
        checks::expectPositive("original_positions", s.originalPositions));
  }
  MEGA_RETURN_IF_ERROR(
      checks::expectPositive("attention_factor", s.attentionFactor));
  if (s.kind != RopeScalingKind::Yarn && s.attentionFactor != 1) {
    return badInput("attention_factor is {}, expected 1 without yarn",
                    s.attentionFactor);
  }
  return Status::ok();
}

double ropeFrequency(const RopeScaling &s, double base, int64_t dim,
                     int64_t pair) {
  const int64_t half = dim / 2;
  const double f = std::pow(base, -static_cast<double>(pair) / half);
  switch (s.kind) {
  case RopeScalingKind::None:
    return f;
  case RopeScalingKind::Linear:
    return f / s.factor;
  case RopeScalingKind::Llama3:
    return llama3(s, f);
  case RopeScalingKind::Yarn: {
    const double slowed = yarnRamp(s, base, dim, pair);
    return f / s.factor * slowed + f * (1 - slowed);
  }
  }
  return f;
}

void ropeFrequencies(const RopeScaling &scaling, double base, int64_t dim,
                     std::span<double> out) {
  for (int64_t pair = 0; pair < dim / 2; ++pair) {
    out[pair] = ropeFrequency(scaling, base, dim, pair);
  }
}

} // namespace mega
