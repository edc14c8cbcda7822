#include "tools/megart/LaunchArguments.h"

#include "runtime/launch/LocalLauncher.h"

#include <filesystem>

namespace mega {

void addLaunch(CLI::App &command, LaunchArguments &arguments) {
  addValue(command, "--rendezvous", arguments.rendezvous, "ADDR",
           "HOST:PORT where processes meet (the launcher's)");
  addValue(command, "--rank", arguments.rank, "N",
           "be this rank (the launcher's, or all as threads)")
      ->check(wholeNumber(0, 1 << 20));
  addValue(command, "--world-size", arguments.worldSize, "N",
           "of so many processes")
      ->check(wholeNumber(1, 1 << 20));
  addDefault(command, "--timeout", arguments.timeout, "SECONDS",
             "longest wait for a rank, to come or to act")
      ->check(wholeNumber(1, 1 << 20));
  // For --processes alone.
  for (const auto &[name, variable] :
       {std::pair("--local-rank", &arguments.localRank),
        std::pair("--local-size", &arguments.localSize),
        std::pair("--port-descriptor", &arguments.portDescriptor)}) {
    command.add_option(name, *variable)->group("");
  }
}

static StatusOr<LaunchInfo> toLaunch(const CLI::App &command,
                                     const LaunchArguments &arguments) {
  LaunchFlags flags;
  const auto take = [&](const char *name, int value, std::optional<int> &flag) {
    if (!command.get_option(name)->empty()) {
      flag = value;
    }
  };
  take("--rank", arguments.rank, flags.rank);
  take("--world-size", arguments.worldSize, flags.worldSize);
  take("--local-rank", arguments.localRank, flags.localRank);
  take("--local-size", arguments.localSize, flags.localSize);
  flags.rendezvous = arguments.rendezvous;
  return detectLauncher(currentEnvironment(), flags);
}

StatusOr<RankOptions> toRanks(const CLI::App &command,
                              const LaunchArguments &arguments, int threads) {
  RankOptions ranks;
  MEGA_ASSIGN_OR_RETURN(ranks.launch, toLaunch(command, arguments));
  ranks.threads = threads;
  ranks.timeLimit = std::chrono::seconds(arguments.timeout);
  if (ranks.launch.port == 0 && ranks.launch.worldSize > 1 &&
      arguments.portDescriptor < 0) {
    return usageError("--rendezvous {}: no other rank would know the port that "
                      "0 chooses; give one",
                      arguments.rendezvous);
  }
  if (arguments.portDescriptor >= 0) {
    ranks.onListening = [descriptor = arguments.portDescriptor](int port) {
      announcePort(descriptor, port);
    };
  }
  return ranks;
}

StatusOr<bool> startsProcesses(const LaunchArguments &arguments,
                               const LaunchInfo &launch) {
  if (!arguments.processes || launch.launcher == Launcher::Flags) {
    return false;
  }
  if (launch.launcher != Launcher::None) {
    return usageError("--processes starts the ranks, and {} has started this "
                      "one: leave one of them away",
                      name(launch.launcher));
  }
  return true;
}

Status startProcesses(int ranks, int argc, char **argv) {
  LocalLaunch launch;
  launch.ranks = ranks;
  launch.program = std::filesystem::read_symlink("/proc/self/exe");
  launch.arguments.assign(argv + 1, argv + argc);
  launch.errorPrefix = "megart: error: ";
  return launchLocally(launch);
}

} // namespace mega
