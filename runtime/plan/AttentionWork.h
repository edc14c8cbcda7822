//===- AttentionWork.h - What the ranks of cp attend to ---------*- C++ -*-===//
#ifndef MEGA_RUNTIME_PLAN_ATTENTIONWORK_H
#define MEGA_RUNTIME_PLAN_ATTENTIONWORK_H

#include "runtime/plan/Plan.h"

#include <string_view>
#include <vector>

namespace mega {

/// How a plan's attention sees the keys of other ranks of cp.
enum class KeysOfOthers : uint8_t { None, Ring, Gather, AllToAll };
std::string_view name(KeysOfOthers method);

/// Of the forwards of a training step, all stages together.
struct AttentionWork {
  KeysOfOthers method = KeysOfOthers::None;
  /// By coordinate on cp: pairs of a query of the rank and a key that it sees,
  /// for every head the rank has, rows being one document. Of balanced rows the
  /// documents decide; an equal share of one document stands for it.
  std::vector<int64_t> pairs;

  /// The most of a rank, as a multiple of the mean; 1 where there is none.
  double imbalance() const;
};
AttentionWork attentionWork(const plan::Plan &plan);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_ATTENTIONWORK_H
