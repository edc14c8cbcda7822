//===- ZeroBubble.h - Schedules that split the backward ---------*- C++ -*-===//
//
// The work of a backward is halved: B, the gradient of the inputs, which the
// stage before waits for, and W, the gradient of the weights, for which nobody
// waits and which fills what would be bubbles (Qi et al., "Zero Bubble Pipeline
// Parallelism", ICLR 2024).
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_ZEROBUBBLE_H
#define MEGA_RUNTIME_PLAN_ZEROBUBBLE_H

#include "runtime/plan/PipelineSchedule.h"

namespace mega {

/// Of a checked request that splits off the weight gradients.
std::vector<std::vector<Step>> zeroBubbleOrder(const PipelineRequest &request);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_ZEROBUBBLE_H
