//===- Inspect.h - Plans for people and scripts -----------------*- C++ -*-===//
//
// Prints a checked plan: identity, mesh, memory by part and region,
// parameters, functions launch by launch, programs, schedules, loss terms. The
// text and the JSON state the same facts; JSON numbers are exact, sizes in
// bytes.
//
// A launch is printed as the call of its kernel, a buffer as its region with
// the numbers that move it, or as the argument it is:
//
//   gemm(%0, parameters[140 + 100i], saved.layer[128 + 512s + 256f]; 0 1 0)
//
// i, s, f and m: instance, slot, frame, micro-batch.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_INSPECT_H
#define MEGA_RUNTIME_PLAN_INSPECT_H

#include "runtime/plan/PlanFile.h"

#include <string>

namespace mega {

std::string inspectText(const LoadedPlan &plan);
std::string inspectJson(const LoadedPlan &plan);

/// `124.4 M`, `512`.
std::string humanCount(uint64_t count);

/// One launch, as above.
std::string launchText(const plan::Plan &plan, const plan::Function &function,
                       const plan::Launch &launch);
/// Actions with equal neighbours joined: `forward x4, backward x4, end`.
std::string scheduleText(const plan::Plan &plan, const plan::Stage &stage);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_INSPECT_H
