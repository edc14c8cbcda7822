//===- Placement.h - Every application is on one stage ----------*- C++ -*-===//
#ifndef MEGA_PASSES_PLACEMENT_H
#define MEGA_PASSES_PLACEMENT_H

#include "runtime/plan/Plan.h"
#include "runtime/plan/Status.h"

#include <span>
#include <string>

namespace mega {

/// Proves that the parts of `whole`, in order, run every application of the
/// model once and in order, forward and in evaluation, and once and from the
/// last to the first backward: application i is one of `blocks[i]`.
/// Code::Internal names the first that is not.
Status verifyPlacement(const plan::PlanT &whole,
                       std::span<const std::string> blocks);

} // namespace mega

#endif // MEGA_PASSES_PLACEMENT_H
