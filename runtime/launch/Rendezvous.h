//===- Rendezvous.h - One rank's connection to all others -------*- C++ -*-===//
//
//   rank 0   auto server = RendezvousServer::start({host, port}, hello);
//   all      auto ranks = Rendezvous::join({host, port}, hello, limits);
//            connect communicators with ranks->store(), ranks->localAddress()
//            ranks->setFailureCallback([&](const RankFailure &failure) {
//              world->abort(failure.status()); });
//            train; on an error: failure = ranks->report(mine)
//            ranks->leave();
//
// From join() to leave() the connection is the failure channel: if a rank
// reports a failure, loses its connection or falls silent, every rank's
// callback runs once, with the first failure anywhere, the root cause. A
// Rendezvous that is destroyed before leave() has returned counts as lost.
//
// All methods may be called from any thread. One background thread, which also
// runs the callback.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_LAUNCH_RENDEZVOUS_H
#define MEGA_RUNTIME_LAUNCH_RENDEZVOUS_H

#include "runtime/comm/KeyValueStore.h"
#include "runtime/launch/RendezvousServer.h"

#include <functional>
#include <memory>

namespace mega {

class Rendezvous {
public:
  /// Returns when all ranks are there. Otherwise the reason, the same on all
  /// ranks that came: who is missing, or who differs in what (Code::BadInput,
  /// Code::Usage), with both values.
  static StatusOr<std::unique_ptr<Rendezvous>>
  join(const Endpoint &endpoint, const Hello &hello,
       RendezvousLimits limits = {});
  ~Rendezvous();

  /// Between all ranks. Its calls fail with the root cause once there is one.
  KeyValueStore &store();
  /// The numeric address by which this host reaches rank 0.
  std::string localAddress() const;

  /// Called once at most, at once if the run has failed already. Once this
  /// returns, the callback before it does not run any more: an empty one lets
  /// go of what it used. Not to be called from a callback.
  void setFailureCallback(std::function<void(const RankFailure &)> callback);
  /// Where this rank is, asked about once a second and when a rank has exceeded
  /// its time limit: then the ranks' answers lead from the one that complains
  /// to the one that waits for nobody. Any thread; must not block. As with the
  /// callback, an empty one lets go.
  void setStateProvider(std::function<RankState()> provider);
  /// Tells all ranks that this one has failed, and returns the root cause,
  /// which may be an earlier failure of another. Takes a second at most.
  RankFailure report(const RankFailure &mine);

  /// This rank has finished. Returns when all have, or with the root cause.
  Status leave();

private:
  class Client;
  explicit Rendezvous(std::unique_ptr<Client> client);
  std::unique_ptr<Client> client;
};

} // namespace mega

#endif // MEGA_RUNTIME_LAUNCH_RENDEZVOUS_H
