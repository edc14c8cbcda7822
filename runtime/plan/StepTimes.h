//===- StepTimes.h - When the actions of a step run -------------*- C++ -*-===//
//
// The training step of a plan on one rank of each stage: when each action
// begins and ends. Planned times come from the plan's own actions, played with
// costs by floating-point operations; measured ones have the same form.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_STEPTIMES_H
#define MEGA_RUNTIME_PLAN_STEPTIMES_H

#include "runtime/plan/Plan.h"

#include <span>
#include <vector>

namespace mega {

struct ActionTime {
  double begin = 0;
  double end = 0;
};

struct StepTimes {
  /// By stage, and number of the action in the entry point.
  std::vector<std::vector<ActionTime>> stages;
  /// From 0 until all stages are done.
  double total = 0;
};

/// The actions of the training step of a stage.
std::span<const plan::Action> trainActions(const plan::Plan &stage);

/// A run takes as long as its floating-point operations, the longest forward
/// being 1; all else takes no time. A wait ends when both sides
/// have started the transfer. The plan is free of deadlock.
StepTimes plannedTimes(const plan::Plan &plan);

/// Time in which a stage runs parts of the model.
double busyTime(const plan::Plan &plan, const StepTimes &times, int64_t stage);

/// The part of the time of all stages in which they run none: (P - 1) /
/// (M + P - 1) for 1F1B with equal stages.
double idleFraction(const plan::Plan &plan, const StepTimes &times);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_STEPTIMES_H
