//===- Report.h - What a plan costs, for people -----------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_PLAN_REPORT_H
#define MEGA_RUNTIME_PLAN_REPORT_H

#include "runtime/plan/Plan.h"

#include <map>
#include <string>

namespace mega {

/// `1,234,567`.
std::string withThousands(uint64_t number);
/// `1.23 GiB`, three digits.
std::string humanBytes(uint64_t bytes);

/// What the regions of each part take together.
std::map<plan::Part, uint64_t> allocatedByPart(const plan::Plan &plan);

/// `pool`.
std::string partName(plan::Part part);

/// The first stage whose ranks have the most planned memory.
int64_t largestStage(const plan::Plan &plan);

/// How much of `total` the bytes are; 0 of nothing.
double percent(uint64_t bytes, uint64_t total);

/// Floating-point operations of the model in one step: three times those of the
/// forward's matrix products (the backward has two for each), of all ranks.
/// What the plan recomputes is not counted; Plan.flops_per_step counts what a
/// rank executes.
uint64_t modelFlops(const plan::Plan &plan);

/// Configuration, parameters, FLOPs, memory by part and region, communication,
/// and scratch by function; of a pipeline also what each stage holds and needs.
/// Several lines, each ending in a newline.
std::string report(const plan::Plan &plan);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_REPORT_H
