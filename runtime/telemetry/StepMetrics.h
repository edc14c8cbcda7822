//===- StepMetrics.h - What a training step reports -------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_TELEMETRY_STEPMETRICS_H
#define MEGA_RUNTIME_TELEMETRY_STEPMETRICS_H

#include <cstdint>

namespace mega {

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
