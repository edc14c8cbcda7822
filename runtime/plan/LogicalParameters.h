//===- LogicalParameters.h - A plan's parameters, one by one ----*- C++ -*-===//
//
// A plan states the parameters of a repeated block once. Here they are expanded
// to logical parameters, each with its Hugging Face name, and joined with the
// optimizer state that the plan's AdamW launches keep for them.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_LOGICALPARAMETERS_H
#define MEGA_RUNTIME_PLAN_LOGICALPARAMETERS_H

#include "runtime/plan/CallEffects.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/Status.h"

#include <optional>
#include <string>
#include <vector>

namespace mega {

/// A place in a region.
struct Place {
  uint32_t region = 0;
  int64_t offset = 0;

  friend bool operator==(const Place &, const Place &) = default;
};

struct LogicalParameter {
  std::string name;
  std::vector<int64_t> shape;
  int64_t elements = 0;
  plan::Initializer initializer = plan::Initializer::Zeros;
  double value = 0;
  bool decay = false;
  Place weight;
  Place gradient;
  /// The bf16 copy that forward and backward read instead of the weight.
  std::optional<Place> compute;
  /// Of the AdamW launch that updates it; absent in a plan for eval only.
  std::optional<Place> moment;
  std::optional<Place> variance;
};

/// Name of the `k`-th of the parameters that `parameter` stands for.
std::string logicalName(const plan::Parameter &parameter, uint32_t k);

/// All parameters of a checked plan, in the plan's order.
std::vector<LogicalParameter> logicalParameters(const plan::Plan &plan);

/// One AdamW launch of a program: `bytes` from each place.
struct OptimizerRange {
  /// Operand 0 of the launch.
  Site site;
  Place weight;
  Place gradient;
  Place moment;
  Place variance;
  int64_t bytes = 0;
  bool decay = false;
};
/// The AdamW launches of all programs of a checked plan, runs expanded.
std::vector<OptimizerRange> optimizerRanges(const plan::Plan &plan);

/// A launch that rounds contiguous f32 to contiguous bf16 in state regions.
struct CopyRange {
  /// Operand 0 of the launch.
  Site site;
  Place source;
  Place target;
  int64_t targetBytes = 0;
};
/// Those of all programs of a checked plan, runs expanded.
std::vector<CopyRange> copyRanges(const plan::Plan &plan);

/// Address of a checked buffer, `call`'s argument if it is one, in run `run`
/// (0 <= run < call.count; the number of instance and frame), slot and
/// micro-batch 0.
Place placeOf(const plan::Program &program, const plan::Call &call,
              const plan::Buffer &buffer, uint32_t run);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_LOGICALPARAMETERS_H
