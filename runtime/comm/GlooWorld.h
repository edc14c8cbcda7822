//===- GlooWorld.h - Ranks that are processes -------------------*- C++ -*-===//
//
// Communicators between processes, on one host or many, over TCP. Gloo carries
// the messages; algorithms, checks and sums are ours, because Gloo's have no
// bf16 and no fixed order, and end the process when sizes differ.
//
//   auto world = GlooWorld::connect(options, store).take();  // on every rank
//   auto dp = world->createGroup("dp0", {0, 2}).take();      // on every rank
//
// One connection per pair of ranks serves all groups. Every rank of the world
// creates all groups, also those it is not in, in one order.
//
// A lost connection is rarely the root cause: before a call reports it, it
// waits `rootCauseWait` for someone to abort() with a better one.
//
// A world and its communicators are destroyed after *every* rank has finished
// its operations (Rendezvous::leave), or after a failure: what is still in a
// closed connection may be lost. One background thread per world. SIGPIPE is
// ignored from connect() on if it was at its default.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_GLOOWORLD_H
#define MEGA_RUNTIME_COMM_GLOOWORLD_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/KeyValueStore.h"

#include <functional>

namespace mega {

namespace gloocomm {
struct World;
}

struct GlooOptions : CommunicatorOptions {
  int rank = 0;
  int size = 1;
  /// A numeric address of this host that the other ranks can reach.
  std::string address = "127.0.0.1";
  std::chrono::milliseconds rootCauseWait{0};
  /// Called once, with the first failure, if this rank found it itself: not
  /// after abort(). On the thread whose call fails, before it returns.
  std::function<void(const Status &)> onFailure = {};
};

/// What a rank does right now, for whoever looks for the culprit of a hang.
struct RankActivity {
  /// The rank of the world whose message is missing; -1: it waits for nobody.
  int waitsFor = -1;
  /// The operation it is in, or has failed in; empty outside.
  std::string operation;
};

class GlooWorld {
public:
  /// Connects all ranks; waits for them within the time limit.
  static StatusOr<std::unique_ptr<GlooWorld>> connect(GlooOptions options,
                                                      KeyValueStore &store);
  ~GlooWorld();

  /// This rank's end of a new group; null if it is not in `ranks`. Waits for
  /// the other members and checks that they mean the same group.
  StatusOr<std::unique_ptr<Communicator>> createGroup(std::string name,
                                                      std::vector<int> ranks);

  /// As Communicator::abort, for all groups of this rank.
  void abort(const Status &cause);

  /// From any thread, at any time.
  RankActivity activity() const;

private:
  explicit GlooWorld(std::shared_ptr<gloocomm::World> world);
  std::shared_ptr<gloocomm::World> world;
  int groups = 0;
};

} // namespace mega

#endif // MEGA_RUNTIME_COMM_GLOOWORLD_H
