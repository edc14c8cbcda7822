//===- LaunchArguments.h - Options about several ranks ----------*- C++ -*-===//
#ifndef MEGA_TOOLS_MEGART_LAUNCHARGUMENTS_H
#define MEGA_TOOLS_MEGART_LAUNCHARGUMENTS_H

#include "runtime/train/Trainer.h"
#include "tools/support/CommandLine.h"

#include <string>

namespace mega {

/// Which rank this process is, and how to reach the others, as it is written.
struct LaunchArguments {
  int rank = 0;
  int worldSize = 1;
  int localRank = 0;
  int localSize = 1;
  std::string rendezvous;
  int portDescriptor = -1;
  int64_t timeout = 300;
  bool processes = false;
};

void addLaunch(CLI::App &command, LaunchArguments &arguments);

/// The arguments of a parsed command, together with what a launcher has set.
StatusOr<RankOptions> toRanks(const CLI::App &command,
                              const LaunchArguments &arguments, int threads);

/// Whether this process starts the ranks as processes (--processes), and is
/// none of them itself.
StatusOr<bool> startsProcesses(const LaunchArguments &arguments,
                               const LaunchInfo &launch);
/// Runs this command line once for every rank of a plan with several.
Status startProcesses(int ranks, int argc, char **argv);

} // namespace mega

#endif // MEGA_TOOLS_MEGART_LAUNCHARGUMENTS_H
