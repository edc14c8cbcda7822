//===- Launcher.h - Who started this process, and as which rank -*- C++ -*-===//
//
// One rank of many learns its place from flags or from the environment that its
// launcher sets. detectLauncher() is a pure function of both. The first that
// applies decides:
//
//   flags        --rank, --world-size, --rendezvous given
//   torchrun     TORCHELASTIC_RUN_ID, or RANK together with LOCAL_RANK
//   Slurm        SLURM_PROCID inside a job step (SLURM_STEP_ID) of more than
//   one
//                task; not in the script of sbatch, where it is 0 as well
//   Open MPI     OMPI_COMM_WORLD_RANK
//   PMI          PMI_RANK (MPICH, Intel MPI)
//   PyTorchJob   MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK without
//                LOCAL_RANK: one process per pod, so RANK counts pods
//   none         this process runs all ranks of the plan
//
// What is there in part or contradicts itself is Code::Usage, naming the
// variables and their values: nothing is guessed.
//
// The rendezvous. HOST:PORT of --rendezvous, if given, decides. Otherwise the
// host is the launcher's (MASTER_ADDR, the first node of the step), and the
// port
//
//   torchrun, PyTorchJob   1024 + (MASTER_PORT - 1024 + 1 + restarts) mod 64512
//                          as MASTER_PORT itself belongs to torchrun's agent
//   Slurm                  32768 + (job * 31 + step * 7 + restarts) mod 16384
//   Open MPI, PMI          none: --rendezvous is required, unless all ranks are
//                          on one host; then as for Slurm, with PMIX_NAMESPACE
//                          or the parent's process number in place of the job
//
// `restarts` is the launcher's count, so that a new attempt does not meet what
// is left of the last one.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_LAUNCH_LAUNCHER_H
#define MEGA_RUNTIME_LAUNCH_LAUNCHER_H

#include "runtime/plan/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mega {

using Environment = std::map<std::string, std::string, std::less<>>;
/// The environment of this process.
Environment currentEnvironment();

enum class Launcher : uint8_t {
  None,
  Flags,
  Torchrun,
  Slurm,
  OpenMpi,
  Pmi,
  PyTorchJob,
};
std::string_view name(Launcher launcher);

/// What the command line says; empty where it says nothing.
struct LaunchFlags {
  std::optional<int> rank;
  std::optional<int> worldSize;
  std::optional<int> localRank;
  std::optional<int> localSize;
  /// HOST:PORT; [HOST]:PORT for a numeric IPv6 address.
  std::string rendezvous;
};

struct LaunchInfo {
  Launcher launcher = Launcher::None;
  int rank = 0;
  int worldSize = 1;
  /// Among the ranks of this host.
  int localRank = 0;
  int localSize = 1;
  /// Where rank 0 listens. Empty and 0 for Launcher::None.
  std::string host;
  int port = 0;
  /// How often the launcher has started this job again.
  int restartCount = 0;

  friend bool operator==(const LaunchInfo &, const LaunchInfo &) = default;
};

StatusOr<LaunchInfo> detectLauncher(const Environment &environment,
                                    const LaunchFlags &flags = {});

/// `node[001-003,7],login` -> node001 node002 node003 node7 login. Several
/// brackets in one name multiply. Code::Usage with the list if it is malformed
/// or has more than 65,536 names.
StatusOr<std::vector<std::string>> expandNodeList(std::string_view list);

struct Endpoint {
  std::string host;
  int port = 0;
};
/// Code::Usage unless `text` is HOST:PORT with a port of 0 .. 65535.
StatusOr<Endpoint> parseEndpoint(std::string_view text);
/// HOST:PORT, with brackets around an IPv6 address.
std::string describe(const Endpoint &endpoint);

} // namespace mega

#endif // MEGA_RUNTIME_LAUNCH_LAUNCHER_H
