//===- Communication.h - What a plan's collectives move ---------*- C++ -*-===//
#ifndef MEGA_RUNTIME_PLAN_COMMUNICATION_H
#define MEGA_RUNTIME_PLAN_COMMUNICATION_H

#include "runtime/plan/Kernels.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace mega {

/// Collectives of one kind over one group in one phase of a step.
struct CommunicationTotal {
  plan::ActionKind phase = plan::ActionKind::Prologue;
  Kernel kernel = Kernel::AllReduce;
  /// Axes of the group, `tp` or `dp x tp`, and its members.
  std::string axes;
  int64_t size = 1;
  /// Of one rank and step: how many, and the bytes of the tensors they move,
  /// whole ones for all_gather and reduce_scatter.
  uint64_t count = 0;
  uint64_t bytes = 0;

  /// What a rank has to send with the fewest bytes possible (Patarasuk and
  /// Yuan, 2009): bytes * (n - 1) / n, twice for an all_reduce.
  uint64_t sentBytes() const;
};

/// Those of the entry point's step, by phase, axes and kind.
std::vector<CommunicationTotal> communicationOf(const plan::Plan &plan,
                                                const plan::EntryPoint &entry);

/// `tp = 2, dp = 4`; empty for one rank.
std::string meshText(const plan::Plan &plan);
/// Axes of a group of the plan, major to minor: `dp x tp`.
std::string axesText(const plan::Group &group);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_COMMUNICATION_H
