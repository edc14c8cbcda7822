//===- InProcessWorld.h - Ranks that are threads ----------------*- C++ -*-===//
//
// Communicators between threads of one process:
//
//   auto world = InProcessWorld::create(4, options);
//   auto tp = world->createGroup("tp0", {0, 1}).take();   // one per member
//   auto all = world->createGroup("all", {0, 1, 2, 3}).take();
//   start thread r with all[r], and tp[r] where there is one
//
// Groups are created before the threads start, by one thread. From then on an
// operation allocates nothing and makes no system call but those that wait.
// Communicators keep alive what they share, so they may outlive the world. A
// member is destroyed after its last operation; what it posted and did not wait
// for is withdrawn.
//
// Waiting ranks spin for some microseconds if every rank of the world can have
// a processor, then give theirs to others a few times, then sleep.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_INPROCESSWORLD_H
#define MEGA_RUNTIME_COMM_INPROCESSWORLD_H

#include "runtime/comm/Communicator.h"

namespace mega {

namespace inprocess {
struct World;
}

class InProcessWorld {
public:
  static std::unique_ptr<InProcessWorld>
  create(int ranks, const CommunicatorOptions &options = {});
  ~InProcessWorld();

  /// The ends of a new group, in the order of `ranks`, which are distinct and
  /// of 0 .. ranks - 1. Code::Internal otherwise.
  StatusOr<std::vector<std::unique_ptr<Communicator>>>
  createGroup(std::string name, std::vector<int> ranks);

  /// As Communicator::abort, for all groups of this world.
  void abort(const Status &cause);

private:
  explicit InProcessWorld(std::shared_ptr<inprocess::World> world);
  std::shared_ptr<inprocess::World> world;
};

} // namespace mega

#endif // MEGA_RUNTIME_COMM_INPROCESSWORLD_H
