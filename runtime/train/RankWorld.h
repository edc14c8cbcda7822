//===- RankWorld.h - How the ranks of a plan come together ------*- C++ -*-===//
//
// Which ranks this process runs, and how they reach the others.
//
//   threads      all ranks are threads of this process
//   processes    this process is one rank (ProcessWorld.h)
//
// It outlives the LocalRanks that sit on its seats.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TRAIN_RANKWORLD_H
#define MEGA_RUNTIME_TRAIN_RANKWORLD_H

#include "runtime/train/LocalRanks.h"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace mega {

class RankWorld {
public:
  virtual ~RankWorld() = default;

  /// All ranks of `plan`, as threads. A communicator's call that takes longer
  /// than `timeLimit` fails.
  static StatusOr<std::unique_ptr<RankWorld>>
  ofThreads(const plan::Plan &plan, std::chrono::milliseconds timeLimit);

  /// The seats of this process, once.
  std::vector<RankSeat> takeSeats() { return std::move(seats); }
  /// Between all ranks of the plan; null if they are all here.
  virtual Communicator *everyone() { return nullptr; }
  /// Fails the communicators of all ranks. Returns the root cause, which may be
  /// an earlier failure of another rank. Any thread.
  virtual RankFailure fail(const RankFailure &mine) = 0;
  /// Where this process is, for the other ranks. An empty one lets go.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): others keep it
  virtual void setState(std::function<RankState()>) {}
  /// The end of the run, with its result: waits for the other ranks, or tells
  /// them of the error. Returns the root cause.
  virtual Status finish(Status result) { return result; }

protected:
  std::vector<RankSeat> seats;
};

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_RANKWORLD_H
