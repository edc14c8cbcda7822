//===- Timeline.h - When a pipeline schedule runs what ----------*- C++ -*-===//
//
// A schedule played with given costs: a stage executes its actions in order,
// a transfer begins once both sides have posted it and the one before it on its
// communicator is over, takes the same time each, and overlaps with runs. Waits
// block, also those for a receiver that is late.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_TIMELINE_H
#define MEGA_RUNTIME_PLAN_TIMELINE_H

#include "runtime/plan/PipelineSchedule.h"

#include <span>

namespace mega {

/// Of one micro-batch, in any unit of time. `backward` includes the weight
/// gradient if the schedule does not split it off; `weight` is unused then.
struct PartCost {
  double forward;
  double backward;
  double weight;
};

struct TimelineRun {
  Work work;
  int32_t part;
  int32_t chunk;
  int32_t microBatch;
  double begin;
  double end;
};

struct Timeline {
  /// Per stage, in order.
  std::vector<std::vector<TimelineRun>> stages;
  /// From the first run's begin until all actions of all stages are over.
  double total = 0;

  /// Time in which a stage runs something.
  double busy(size_t stage) const;
  /// Idle over busy time of all stages, the bubble as fraction of the ideal
  /// time: (P - 1) / M for 1F1B.
  double bubbleFraction() const;
};

/// `schedule` is makeSchedule's for `request` (or equally free of deadlock);
/// `perPart` has a cost for every part.
Timeline simulate(const PipelineRequest &request,
                  const PipelineSchedule &schedule,
                  std::span<const PartCost> perPart,
                  double transferSeconds = 0);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_TIMELINE_H
