//===- RopeFrequencies.h - Angles of rotary embeddings ----------*- C++ -*-===//
//
// Su et al., "RoFormer" (2021): pair i of a head of dimension d turns by
// f(i) = base^(-2i/d) radians from one position to the next. Models that read
// longer sequences than they were first trained on slow the pairs down:
//
//   none     f
//   linear   f / factor (Chen et al., 2023)
//   llama3   by wavelength w = 2 pi / f, relative to the original length L:
//            w < L / high        f
//            w > L / low         f / factor
//            between             blended: s f + (1 - s) f / factor with
//                                s = (L / w - low) / (high - low)
//   yarn     Peng et al., "YaRN" (2023), as Hugging Face computes it: pairs
//            that turn more than beta_fast times over L keep f, pairs that
//            turn less than beta_slow times get f / factor, and a linear ramp
//            over the pair's index, between whole indices, joins them. The
//            table is multiplied by attention_factor, by default
//            0.1 ln(factor) + 1.
//
// In double, and the same function for the compiler, devices and exporters.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_ROPEFREQUENCIES_H
#define MEGA_RUNTIME_PLAN_ROPEFREQUENCIES_H

#include "runtime/plan/Status.h"

#include <cstdint>
#include <span>

namespace mega {

/// The numeric values are part of the plan format; append only.
enum class RopeScalingKind : int64_t {
  None = 0,
  Linear = 1,
  Llama3 = 2,
  Yarn = 3,
};
inline constexpr int kRopeScalingKindCount = 4;

/// A kind reads the numbers that its formula names; the others do not matter.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::None;
  double factor = 1;
  double lowFrequency = 1;
  double highFrequency = 4;
  /// L above.
  double originalPositions = 8192;
  double betaFast = 32;
  double betaSlow = 1;
  /// Of cosines and sines; 1 unless `kind` is Yarn.
  double attentionFactor = 1;

  /// From the attributes of a rope_table launch (the base is floats[0]).
  static RopeScaling of(std::span<const int64_t> integers,
                        std::span<const double> floats);
};

/// Ranges of the numbers that `scaling` reads, and of the base.
Status checkRopeScaling(const RopeScaling &scaling, double base);

/// The frequency of one pair, 0 <= pair < dim / 2. `scaling` passes its check.
double ropeFrequency(const RopeScaling &scaling, double base, int64_t dim,
                     int64_t pair);
/// All dim / 2 of them, fastest first.
void ropeFrequencies(const RopeScaling &scaling, double base, int64_t dim,
                     std::span<double> out);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_ROPEFREQUENCIES_H
