//===- StageGroup.h - Groups between the stages of a pipeline ---*- C++ -*-===//
#ifndef MEGA_RUNTIME_PLAN_STAGEGROUP_H
#define MEGA_RUNTIME_PLAN_STAGEGROUP_H

#include <cstdint>

namespace mega {

/// The groups with which the list of every pipeline's groups begins. Transfers
/// of activations and of gradients never share a communicator: with one for
/// both, two stages could wait for each other.
enum class StageGroup : int64_t {
  /// Transfers over pp: to the next part, and to the one before.
  Activations,
  Gradients,
  /// Sums over pp: what is reported, and the norm.
  Sums,
  /// Sums over the first and the last stage.
  Tie
};
inline constexpr int64_t kStageGroups = 4;

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_STAGEGROUP_H
