#include "runtime/launch/Launcher.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace mega {
namespace {

/// Reads variables, and remembers the first that cannot be read.
class Variables {
public:
  explicit Variables(const Environment &environment)
      : environment(environment) {}

  bool has(std::string_view name) const {
    const auto found = environment.find(name);
    return found != environment.end() && !found->second.empty();
  }
  std::string text(std::string_view name) const {
    const auto found = environment.find(name);
    return found != environment.end() ? found->second : std::string();
  }
  /// A number of 0 .. most, which has to be there.
  int64_t number(std::string_view name, int64_t most = INT32_MAX) {
    if (!has(name)) {
      fail(usageError("{}: {} is set, {} is not: set both or neither", who,
                      because, name));
      return 0;
    }
    const std::string value = text(name);
    int64_t result = 0;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size() ||
        result < 0 || result > most) {
      fail(usageError("{}: {}=\"{}\" is not a number of 0 to {}", who, name,
                      value, most));
      return 0;
    }
    return result;
  }
  int64_t number(std::string_view name, int64_t most, int64_t otherwise) {
    return has(name) ? number(name, most) : otherwise;
  }
  void fail(Status status) {
    if (error.isOk()) {
      error = std::move(status);
    }
  }

  /// For messages: the launcher, and the variable that gave it away.
  std::string who, because;
  Status error;

private:
  const Environment &environment;
};

/// "NAME=value" and so on of two things that contradict each other.
Status contradiction(const Variables &variables, std::string_view small,
                     int64_t smallValue, std::string_view large,
                     int64_t largeValue) {
  return usageError("{}: {}={} is not below {}={}", variables.who, small,
                    smallValue, large, largeValue);
}

int derivedPort(int64_t masterPort, int64_t restarts) {
  return static_cast<int>(1024 + (masterPort - 1024 + 1 + restarts) % 64512);
}
int jobPort(int64_t job, int64_t step, int64_t restarts) {
  return static_cast<int>(32768 + (job * 31 + step * 7 + restarts) % 16384);
}

struct Names {
  const char *rank, *worldSize, *localRank, *localSize;
};

/// The four numbers, where the local ones default to one rank per host.
void readRanks(Variables &variables, const Names &names, LaunchInfo &info) {
  info.rank = static_cast<int>(variables.number(names.rank));
  info.worldSize = static_cast<int>(variables.number(names.worldSize));
  info.localRank =
      static_cast<int>(variables.number(names.localRank, INT32_MAX, 0));
  info.localSize = static_cast<int>(
      variables.number(names.localSize, INT32_MAX, info.localRank + 1));
  if (info.rank >= info.worldSize) {
    variables.fail(contradiction(variables, names.rank, info.rank,
                                 names.worldSize, info.worldSize));
  } else if (info.localRank >= info.localSize) {
    variables.fail(contradiction(variables, names.localRank, info.localRank,
                                 names.localSize, info.localSize));
  } else if (info.localSize > info.worldSize) {
    variables.fail(usageError("{}: {}={} is more than {}={}", variables.who,
                              names.localSize, info.localSize, names.worldSize,
                              info.worldSize));
  }
}

void readMaster(Variables &variables, LaunchInfo &info) {
  if (!variables.has("MASTER_ADDR")) {
    variables.fail(usageError("{}: {} is set, MASTER_ADDR is not: set it, or "
                              "give --rendezvous HOST:PORT",
                              variables.who, variables.because));
  }
  info.host = variables.text("MASTER_ADDR");
  const int64_t port = variables.number("MASTER_PORT", 65535);
  if (variables.error.isOk() && port < 1024) {
    variables.fail(usageError("{}: MASTER_PORT={} is not a port of 1024 to "
                              "65535",
                              variables.who, port));
  }
  info.port = derivedPort(port, info.restartCount);
}

void readTorchrun(Variables &variables, LaunchInfo &info, bool needsMaster) {
  info.restartCount = static_cast<int>(
      variables.number("TORCHELASTIC_RESTART_COUNT", INT32_MAX, 0));
  readRanks(variables, {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
            info);
  if (needsMaster) {
    readMaster(variables, info);
  }
}

/// `2(x3),1` -> 2 2 2 1; empty if it is anything else.
std::vector<int> tasksPerNode(std::string_view text) {
  std::vector<int> result;
  while (!text.empty()) {
    const std::string part(text.substr(0, text.find(',')));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    int tasks = 0;
    int nodes = 1;
    const char *end = part.data() + part.size();
    auto read = std::from_chars(part.data(), end, tasks);
    if (std::string_view(read.ptr, end).starts_with("(x") && end[-1] == ')') {
      read = std::from_chars(read.ptr + 2, --end, nodes);
    }
    if (read.ec != std::errc() || read.ptr != end || nodes < 1 ||
        nodes > 65536) {
      return {};
    }
    result.insert(result.end(), nodes, tasks);
  }
  return result;
}

void readSlurm(Variables &variables, LaunchInfo &info, bool needsHost) {
  info.restartCount =
      static_cast<int>(variables.number("SLURM_RESTART_COUNT", INT32_MAX, 0));
  // SLURM_STEP_NUM_TASKS counts the step; NTASKS may be the whole job's.
  const bool ofStep = variables.has("SLURM_STEP_NUM_TASKS");
  readRanks(variables,
            {"SLURM_PROCID", ofStep ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
             "SLURM_LOCALID", ""},
            info);
  const std::vector<int> tasks =
      tasksPerNode(variables.text("SLURM_STEP_TASKS_PER_NODE"));
  const auto node =
      static_cast<size_t>(variables.number("SLURM_NODEID", INT32_MAX, 0));
  if (node < tasks.size() && tasks[node] > info.localRank) {
    info.localSize = tasks[node];
  }
  if (!needsHost || !variables.error.isOk()) {
    return;
  }
  const char *list = variables.has("SLURM_STEP_NODELIST")
                         ? "SLURM_STEP_NODELIST"
                         : "SLURM_NODELIST";
  auto nodes = expandNodeList(variables.text(list));
  if (!nodes.isOk()) {
    variables.fail(
        std::move(nodes).takeStatus().withContext(variables.who + ": " + list));
    return;
  }
  info.host = (*nodes).front();
  info.port =
      jobPort(variables.number("SLURM_JOB_ID", INT64_MAX / 64),
              variables.number("SLURM_STEP_ID", UINT32_MAX), info.restartCount);
}

/// mpirun tells no host: only with all ranks on one.
void readMpi(Variables &variables, const Names &names, LaunchInfo &info,
             bool needsHost) {
  readRanks(variables, names, info);
  if (!needsHost || !variables.error.isOk()) {
    return;
  }
  if (variables.has("MASTER_ADDR") && variables.has("MASTER_PORT")) {
    readMaster(variables, info);
    return;
  }
  if (info.localSize != info.worldSize) {
    variables.fail(usageError(
        "{}: {}={} of {}={} ranks are on this host, and the launcher does not "
        "say where rank 0 is: give --rendezvous HOST:PORT",
        variables.who, names.localSize,
        variables.has(names.localSize) ? variables.text(names.localSize)
                                       : "(not set)",
        names.worldSize, info.worldSize));
    return;
  }
  info.host = "127.0.0.1";
  // The same for all ranks of one mpirun, another one for the next.
  const std::string space = variables.text("PMIX_NAMESPACE");
  int64_t job = 0;
  for (const char c : space) {
    job = (job * 131 + static_cast<uint8_t>(c)) % 1000003;
  }
  info.port = jobPort(space.empty() ? ::getppid() : job, 0, 0);
}

StatusOr<LaunchInfo> readFlags(const LaunchFlags &flags) {
  LaunchInfo info;
  info.launcher = Launcher::Flags;
  if (!flags.rank || !flags.worldSize || flags.rendezvous.empty()) {
    return usageError(
        "--rank{}, --world-size{} and --rendezvous{} go together: give all "
        "three",
        flags.rank ? "" : " (missing)", flags.worldSize ? "" : " (missing)",
        flags.rendezvous.empty() ? " (missing)" : "");
  }
  info.rank = *flags.rank;
  info.worldSize = *flags.worldSize;
  info.localRank = flags.localRank.value_or(0);
  info.localSize = flags.localSize.value_or(info.localRank + 1);
  if (info.rank < 0 || info.rank >= info.worldSize) {
    return usageError("--rank {} is not in 0 .. --world-size {} - 1", info.rank,
                      info.worldSize);
  }
  if (info.localRank < 0 || info.localRank >= info.localSize ||
      info.localSize > info.worldSize) {
    return usageError("--local-rank {} and --local-size {} do not fit "
                      "--world-size {}",
                      info.localRank, info.localSize, info.worldSize);
  }
  return info;
}

Launcher recognise(Variables &variables) {
  const auto by = [&](Launcher launcher, const char *because) {
    variables.who = name(launcher);
    variables.because = because;
    return launcher;
  };
  if (variables.has("TORCHELASTIC_RUN_ID")) {
    return by(Launcher::Torchrun, "TORCHELASTIC_RUN_ID");
  }
  if (variables.has("RANK") && variables.has("LOCAL_RANK")) {
    return by(Launcher::Torchrun, "LOCAL_RANK");
  }
  // A step of one task is a shell (srun --pty) or a run on one node.
  if (variables.has("SLURM_PROCID") && variables.has("SLURM_STEP_ID") &&
      variables.text(variables.has("SLURM_STEP_NUM_TASKS")
                         ? "SLURM_STEP_NUM_TASKS"
                         : "SLURM_NTASKS") != "1") {
    return by(Launcher::Slurm, "SLURM_PROCID");
  }
  if (variables.has("OMPI_COMM_WORLD_RANK")) {
    return by(Launcher::OpenMpi, "OMPI_COMM_WORLD_RANK");
  }
  if (variables.has("PMI_RANK")) {
    return by(Launcher::Pmi, "PMI_RANK");
  }
  for (const char *each : {"RANK", "WORLD_SIZE"}) {
    if (variables.has(each)) {
      return by(Launcher::PyTorchJob, each);
    }
  }
  return Launcher::None;
}

} // namespace

std::string_view name(Launcher launcher) {
  constexpr std::string_view names[] = {
      "none", "flags", "torchrun", "Slurm", "Open MPI", "PMI", "PyTorchJob"};
  return names[static_cast<int>(launcher)];
}

Environment currentEnvironment() {
  Environment result;
  for (char **each = ::environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view pair = *each;
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos) {
      result.emplace(pair.substr(0, equals), pair.substr(equals + 1));
    }
  }
  return result;
}

StatusOr<LaunchInfo> detectLauncher(const Environment &environment,
                                    const LaunchFlags &flags) {
  LaunchInfo info;
  Variables variables(environment);
  const bool needsHost = flags.rendezvous.empty();
  if (flags.rank || flags.worldSize) {
    MEGA_ASSIGN_OR_RETURN(info, readFlags(flags));
  } else {
    info.launcher = recognise(variables);
    switch (info.launcher) {
    case Launcher::None:
    case Launcher::Flags:
      break;
    case Launcher::Torchrun:
      readTorchrun(variables, info, needsHost);
      break;
    case Launcher::Slurm:
      readSlurm(variables, info, needsHost);
      break;
    case Launcher::OpenMpi:
      readMpi(variables,
              {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
               "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
              info, needsHost);
      break;
    case Launcher::Pmi:
      readMpi(variables,
              {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
              info, needsHost);
      break;
    case Launcher::PyTorchJob:
      // Several processes in a pod would need a launcher inside it, which
      // would set LOCAL_RANK.
      if (variables.number("PET_NPROC_PER_NODE", INT32_MAX, 1) > 1) {
        variables.fail(usageError(
            "PyTorchJob: PET_NPROC_PER_NODE={}, but LOCAL_RANK is not set: "
            "RANK={} counts pods. Start the ranks of a pod with torchrun",
            variables.text("PET_NPROC_PER_NODE"), variables.text("RANK")));
      }
      readRanks(variables,
                {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}, info);
      if (needsHost) {
        readMaster(variables, info);
      }
      break;
    }
  }
  MEGA_RETURN_IF_ERROR(std::move(variables.error));
  if (!needsHost) {
    MEGA_ASSIGN_OR_RETURN(const Endpoint endpoint,
                          parseEndpoint(flags.rendezvous));
    info.host = endpoint.host;
    info.port = endpoint.port;
    if (info.launcher == Launcher::None) {
      return usageError("--rendezvous {} needs --rank and --world-size, or a "
                        "launcher that sets them",
                        flags.rendezvous);
    }
  }
  return info;
}

StatusOr<Endpoint> parseEndpoint(std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string_view host =
      text.substr(0, colon == std::string_view::npos ? 0 : colon);
  const std::string_view digits =
      colon == std::string_view::npos ? "" : text.substr(colon + 1);
  int port = -1;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool bracketed =
      host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (error != std::errc() || end != digits.data() + digits.size() ||
      port < 0 || port > 65535 || host.empty() ||
      (!bracketed && host.find_first_of(":[]") != std::string_view::npos)) {
    return usageError("\"{}\" is not HOST:PORT with a port of 0 to 65535 "
                      "(IPv6: [ADDRESS]:PORT)",
                      text);
  }
  return Endpoint{
      std::string(bracketed ? host.substr(1, host.size() - 2) : host), port};
}

std::string describe(const Endpoint &endpoint) {
  return endpoint.host.find(':') != std::string::npos
             ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
             : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

} // namespace mega
