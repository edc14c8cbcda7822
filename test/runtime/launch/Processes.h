//===- Processes.h - Forked ranks of a test ---------------------*- C++ -*-===//
//
// Each rank is a process that joins the rendezvous, connects over Gloo and is
// wired up as megart wires it: announced failures abort the communicators, own
// ones are reported, and the root cause is what the rank ends with.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TEST_RUNTIME_LAUNCH_PROCESSES_H
#define MEGA_TEST_RUNTIME_LAUNCH_PROCESSES_H

#include "runtime/comm/Communicator.h"
#include "runtime/launch/Rendezvous.h"

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mega::test {

struct ProcessOptions {
  RendezvousLimits limits;
  std::chrono::milliseconds timeLimit = std::chrono::minutes(1);
  std::string host = "127.0.0.1";
  /// Run in the child first; false ends it.
  std::function<bool(int rank)> enter = {};
};

class Processes {
public:
  /// Calls `underWay` once it is.
  using Body = std::function<Status(Communicator &all,
                                    const std::function<void()> &underWay)>;

  Processes(int ranks, ProcessOptions options)
      : options(std::move(options)), children(ranks) {}
  /// Kills and reaps whoever is left.
  ~Processes();

  void start(const Body &body);
  void waitUntilUnderWay();
  void signal(int rank, int number);
  /// Waits for the end of a rank: `ok`, or its exit code and root cause.
  std::string end(int rank);

private:
  struct Child {
    pid_t process = -1;
    int pipe = -1;
    std::string read;
  };
  void fork(int rank, int port, const Body &body);
  void runRank(int rank, int port, int pipe, const Body &body);
  /// The next line that a child writes; empty at its end.
  std::string line(int rank);

  ProcessOptions options;
  std::vector<Child> children;
};

/// Hosts as network namespaces, joined by a bridge in a namespace of its own.
class Network {
public:
  /// Null if this machine or user cannot.
  static std::unique_ptr<Network> create(int hosts);
  ~Network();
  std::string address(int host) const;
  /// Moves this process there.
  bool enter(int host) const;

private:
  std::string prefix;
  int hosts = 0;
};

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_LAUNCH_PROCESSES_H
