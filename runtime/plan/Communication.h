//===- Communication.h - What a plan's kernels move -------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_PLAN_COMMUNICATION_H
#define MEGA_RUNTIME_PLAN_COMMUNICATION_H

#include "runtime/plan/Kernels.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace mega {

/// What a rank does of one kind over one group in one phase of a step.
/// Transfers between stages belong to the phase that makes what they send, or
/// needs what they receive.
struct CommunicationTotal {
  plan::ActionKind phase = plan::ActionKind::Prologue;
  /// A collective, a ring, SendStart, ReceiveStart or SumStages.
  Kernel kernel = Kernel::AllReduce;
  /// Axes of the group, `tp` or `dp x tp`, and its members.
  std::string axes;
  int64_t size = 1;
  /// Of one rank and step: how many, and the bytes of the tensors they move,
  /// whole ones for all_gather and reduce_scatter, pieces for all_to_all. Of a
  /// ring, the keys and values of all its ranks, and with a gradient its sums
  /// in f32.
  uint64_t count = 0;
  uint64_t bytes = 0;
  /// What the rank of a ring that sends most sends, without what nobody sees.
  uint64_t ringBytes = 0;

  /// What a rank has to send with the fewest bytes possible (Patarasuk and
  /// Yuan, 2009): bytes * (n - 1) / n, twice for a sum on all. An all_to_all
  /// keeps one n-th of the rank's piece. Of transfers, what is sent.
  uint64_t sentBytes() const;
  /// `all_reduce`, `send`, `ring`.
  std::string_view name() const;
  /// `forward`.
  std::string phaseName() const;

  friend bool operator==(const CommunicationTotal &,
                         const CommunicationTotal &) = default;
};

/// Those of the entry point's step, by phase, axes and kind. `plan` is that of
/// a stage.
std::vector<CommunicationTotal> communicationOf(const plan::Plan &plan,
                                                const plan::EntryPoint &entry);

/// Neighbouring stages that move the same.
struct StageCommunication {
  int64_t first = 0;
  int64_t last = 0;
  std::vector<CommunicationTotal> totals;
};
/// Of an entry point of a whole plan, in order of stages.
std::vector<StageCommunication> communicationByStage(const plan::Plan &plan,
                                                     uint32_t entryPoint);

/// `stage 3`, `stages 1-6`.
std::string stagesText(int64_t first, int64_t last);

/// `tp = 2, dp = 4`; empty for one rank.
std::string meshText(const plan::Plan &plan);
/// Axes of a group of the plan, major to minor: `dp x tp`.
std::string axesText(const plan::Group &group);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_COMMUNICATION_H
