// Compiled with -ffp-contract=off (see CMakeLists.txt).
#include "runtime/optim/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mega {

namespace {

constexpr std::pair<std::string_view, LearningRateKind> kKinds[] = {
    {"constant", LearningRateKind::Constant},
    {"linear", LearningRateKind::Linear},
    {"cosine", LearningRateKind::Cosine},
    {"wsd", LearningRateKind::Wsd}};

/// (1 + cos(pi x)) / 2 = sin^2(pi (1 - x) / 2) for 0 <= x <= 1. The sine's
/// Taylor series up to y^21 is good to a few units of the last place.
double halfCosine(double x) {
  constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  const double y = kHalfPi * (1.0 - x);
  double series = 1.0;
  for (int n = 20; n >= 2; n -= 2) {
    series = 1.0 - series * (y * y) / (n * (n + 1));
  }
  const double sine = y * series;
  return sine * sine;
}

double ratio(int64_t numerator, int64_t denominator) {
  return static_cast<double>(numerator) / static_cast<double>(denominator);
}

} // namespace

std::optional<LearningRateKind> findLearningRateKind(std::string_view name) {
  const auto found = std::ranges::find(
      kKinds, name, &std::pair<std::string_view, LearningRateKind>::first);
  return found == std::end(kKinds) ? std::nullopt
                                   : std::optional(found->second);
}

StatusOr<LearningRate> LearningRate::create(const Options &options) {
  if (!std::isfinite(options.peak) || options.peak < 0) {
    return usageError("--lr is {}, expected a finite number of at least 0",
                      options.peak);
  }
  if (!(options.minimum >= 0 && options.minimum <= options.peak)) {
    return usageError("--min-lr is {}, expected 0 to --lr = {}",
                      options.minimum, options.peak);
  }
  if (options.totalSteps < 1) {
    return usageError("--steps is {}, expected at least 1", options.totalSteps);
  }
  if (options.warmupSteps < 0 || options.warmupSteps > options.totalSteps) {
    return usageError("--warmup-steps is {}, expected 0 to --steps = {}",
                      options.warmupSteps, options.totalSteps);
  }
  const int64_t rest = options.totalSteps - options.warmupSteps;
  if (options.decaySteps) {
    if (options.kind != LearningRateKind::Wsd) {
      return usageError("--decay-steps is for --lr-schedule wsd only");
    }
    if (*options.decaySteps < 0 || *options.decaySteps > rest) {
      return usageError(
          "--decay-steps is {}, expected 0 to {} = --steps {} less "
          "--warmup-steps {}",
          *options.decaySteps, rest, options.totalSteps, options.warmupSteps);
    }
  }
  Options complete = options;
  complete.decaySteps = options.decaySteps.value_or(
      std::min(rest, std::max<int64_t>(options.totalSteps / 5, 1)));
  return LearningRate(complete);
}

double LearningRate::at(int64_t step) const {
  if (step <= options.warmupSteps) {
    return options.peak * ratio(step, options.warmupSteps);
  }
  return options.minimum + (options.peak - options.minimum) * shape(step);
}

double LearningRate::shape(int64_t step) const {
  if (options.kind == LearningRateKind::Constant) {
    return 1;
  }
  if (step >= options.totalSteps) {
    return 0;
  }
  if (options.kind == LearningRateKind::Wsd) {
    const int64_t left = options.totalSteps - step;
    return left >= *options.decaySteps ? 1 : ratio(left, *options.decaySteps);
  }
  const double x = ratio(step - options.warmupSteps,
                         options.totalSteps - options.warmupSteps);
  return options.kind == LearningRateKind::Linear ? 1.0 - x : halfCosine(x);
}

} // namespace mega
