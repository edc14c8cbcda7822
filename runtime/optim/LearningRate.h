//===- LearningRate.h - Learning-rate schedules -----------------*- C++ -*-===//
//
// The learning rate of a step is a pure function of the step, so resuming needs
// no state. Steps count from 1 (StepScalars::step). With peak rate P, minimum
// rate M, W warm-up steps and T steps in total:
//
//   step <= W   P * step / W                      the first step already learns
//   step >  W   M + (P - M) * shape(x)
//   step >= T   M, except for `constant`
//
//   constant    shape = 1
//   linear      shape = 1 - x              x = (step - W) / (T - W)
//   cosine      shape = (1 + cos(pi x))/2  x = (step - W) / (T - W)
//   wsd         shape = 1 - x              x = (step - (T - D)) / D, at least
//   0:
//               warm-up, stable, and a linear decay over the last D steps
//
//   P |     ____________                        wsd
//     |    /            \                       .
//   M |   /              \____
//     +--'---------------'---'---> step
//        W             T-D   T
//
// The arithmetic is double without libm and without contraction: all hosts of a
// run compute the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_OPTIM_LEARNINGRATE_H
#define MEGA_RUNTIME_OPTIM_LEARNINGRATE_H

#include "runtime/plan/Status.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace mega {

enum class LearningRateKind : uint8_t { Constant, Linear, Cosine, Wsd };

/// `constant`, `linear`, `cosine` or `wsd`; nothing for any other name.
std::optional<LearningRateKind> findLearningRateKind(std::string_view name);

class LearningRate {
public:
  struct Options {
    LearningRateKind kind = LearningRateKind::Constant;
    double peak = 0;
    double minimum = 0;
    int64_t warmupSteps = 0;
    int64_t totalSteps = 1;
    /// wsd only, D. Default: a fifth of the total, rounded down but at least
    /// one step, and no more than warm-up leaves.
    std::optional<int64_t> decaySteps;
  };

  /// Code::Usage, named by command-line flag, for options that contradict each
  /// other.
  static StatusOr<LearningRate> create(const Options &options);

  /// The rate of `step`, from 1. Pure.
  double at(int64_t step) const;

  /// D of wsd.
  int64_t decaySteps() const { return *options.decaySteps; }

private:
  explicit LearningRate(const Options &options) : options(options) {}
  double shape(int64_t step) const;

  Options options;
};

} // namespace mega

#endif // MEGA_RUNTIME_OPTIM_LEARNINGRATE_H
