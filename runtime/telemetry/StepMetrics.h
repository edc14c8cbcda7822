//===- StepMetrics.h - What a training step reports -------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_TELEMETRY_STEPMETRICS_H
#define MEGA_RUNTIME_TELEMETRY_STEPMETRICS_H

#include <cmath>
#include <cstdint>
#include <limits>

namespace mega {

/// The sign of a NaN says nothing, and processors differ in it: without it, a
/// run that diverges prints `nan` everywhere.
inline double withoutNanSign(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

/// One finished step, over all ranks.
struct StepMetrics {
  /// From 1.
  int64_t step = 1;
  /// Mean over the valid tokens of the global batch.
  double loss = 0;
  /// Global L2 norm before clipping.
  double gradientNorm = 0;
  double learningRate = 0;
  /// Tokens read in the step, padding included.
  int64_t tokens = 0;
  /// Wall-clock time of the step.
  double seconds = 0;

  double tokensPerSecond() const {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
};

} // namespace mega

#endif // MEGA_RUNTIME_TELEMETRY_STEPMETRICS_H
