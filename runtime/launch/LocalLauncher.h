//===- LocalLauncher.h - Starts all ranks on this machine -------*- C++ -*-===//
//
// A process per rank, each this program again:
//
//   PROGRAM ARGUMENTS... --rank R --world-size N --local-rank R --local-size N
//                        --rendezvous 127.0.0.1:PORT [--port-descriptor FD]
//
// Rank 0 is started first, with port 0, and writes the port it listens at to
// the descriptor. What ranks print is passed on line by line, with the rank in
// front. SIGINT, SIGTERM and SIGHUP are passed on to them. They are killed if
// this process ends, and kGrace after the first of them has failed: by then the
// others have heard of it (Rendezvous.h) and have ended by themselves.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_LAUNCH_LOCALLAUNCHER_H
#define MEGA_RUNTIME_LAUNCH_LOCALLAUNCHER_H

#include "runtime/plan/Status.h"

#include <chrono>
#include <string>
#include <vector>

namespace mega {

/// From the first failure of a rank until the others are killed.
inline constexpr std::chrono::milliseconds kGrace{1500};

struct LocalLaunch {
  int ranks = 1;
  std::string program;
  std::vector<std::string> arguments;
  /// What a rank's line begins with when it says why it ends: those lines are
  /// not printed but, being the same for all, returned once.
  std::string errorPrefix;
};

/// Runs all ranks to their end. An error is the root cause that a rank has
/// given, or which of them ended how, with its exit code.
Status launchLocally(const LocalLaunch &launch);

/// What rank 0 does with --port-descriptor: tells its starter the port.
void announcePort(int descriptor, int port);

} // namespace mega

#endif // MEGA_RUNTIME_LAUNCH_LOCALLAUNCHER_H
