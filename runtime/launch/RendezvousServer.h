//===- RendezvousServer.h - Where all ranks meet ----------------*- C++ -*-===//
//
// Runs beside rank 0, in a thread of its own, from before the ranks join until
// all have left or the run has failed. It lets the run start when all ranks are
// there and agree, keeps the keys and values, and announces the first failure
// of any rank to all (Protocol.h has the messages).
//
// Destroyed before its end, it takes the run down: the ranks see rank 0 go.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_LAUNCH_RENDEZVOUSSERVER_H
#define MEGA_RUNTIME_LAUNCH_RENDEZVOUSSERVER_H

#include "runtime/launch/Launcher.h"
#include "runtime/launch/Protocol.h"

#include <memory>

namespace mega {

struct RendezvousLimits {
  /// For all ranks to come.
  std::chrono::milliseconds join = std::chrono::minutes(2);
  /// Without a word from a rank, or from the server.
  std::chrono::milliseconds heartbeat = std::chrono::seconds(10);
};

class RendezvousServer {
public:
  /// Listens at `endpoint`; port 0 takes any. `expected` is what rank 0 has:
  /// the others are compared with it. Code::Unavailable with host, port and
  /// advice if the port is busy.
  static StatusOr<std::unique_ptr<RendezvousServer>>
  start(const Endpoint &endpoint, Hello expected, RendezvousLimits limits = {});
  /// Lets what has been announced reach the ranks, for a second at most.
  ~RendezvousServer();

  int port() const;

private:
  class Loop;
  explicit RendezvousServer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop;
};

} // namespace mega

#endif // MEGA_RUNTIME_LAUNCH_RENDEZVOUSSERVER_H
