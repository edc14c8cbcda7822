//===- ProcessWorld.h - One rank of several processes -----------*- C++ -*-===//
//
// This process is one rank of a plan; the others are processes on this or other
// hosts. They meet at a rendezvous (runtime/launch), which compares plan,
// version and instruction set, then connect over Gloo, and stay connected to
// the rendezvous: the first failure of any rank ends all, and a process that is
// gone is named with what it did last.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TRAIN_PROCESSWORLD_H
#define MEGA_RUNTIME_TRAIN_PROCESSWORLD_H

#include "runtime/launch/Launcher.h"
#include "runtime/launch/RendezvousServer.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/train/RankWorld.h"

namespace mega {

struct ProcessWorldOptions {
  /// Which rank this is, and where rank 0 listens; port 0: any that is free.
  LaunchInfo launch;
  /// For all ranks to come, and for one operation between them.
  std::chrono::milliseconds timeLimit = std::chrono::minutes(5);
  /// Called on rank 0 with the port it listens at.
  std::function<void(int)> onListening = [](int) {};
};

/// Joins the other ranks and connects to them. Code::Usage if there are not as
/// many as the plan has; otherwise the errors of Rendezvous.h.
StatusOr<std::unique_ptr<RankWorld>>
joinProcesses(const LoadedPlan &plan, const ProcessWorldOptions &options);

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_PROCESSWORLD_H
