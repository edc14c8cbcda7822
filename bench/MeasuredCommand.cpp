#include "bench/MeasuredCommand.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace mega {

namespace {

/// A file descriptor.
class Handle {
public:
  explicit Handle(int fd = -1) : fd(fd) {}
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { close(); }

  int get() const { return fd; }
  void close() {
    if (fd >= 0) {
      ::close(fd);
    }
    fd = -1;
  }

private:
  int fd;
};

/// Counts instructions of `process` and its children in user space from its
/// exec on; -1 if there is no such counter.
int openCounter(pid_t process) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
  attributes.disabled = 1;
  attributes.enable_on_exec = 1;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return static_cast<int>(::syscall(SYS_perf_event_open, &attributes, process,
                                    -1, -1, PERF_FLAG_FD_CLOEXEC));
}

double seconds(const timeval &time) {
  return static_cast<double>(time.tv_sec) +
         1e-6 * static_cast<double>(time.tv_usec);
}

/// The child waits for a byte from the pipe before it becomes `command`.
pid_t spawn(const std::vector<std::string> &command, const Handle &start,
            Handle &release) {
  std::vector<char *> arguments;
  for (const std::string &argument : command) {
    arguments.push_back(const_cast<char *>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    release.close();
    char byte = 0;
    if (::read(start.get(), &byte, 1) == 1) {
      ::execvp(arguments[0], arguments.data());
    }
    ::_exit(127);
  }
  return child;
}

StatusOr<CommandCost> run(const std::vector<std::string> &command,
                          bool counted) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return ioError("cannot make a pipe: {}", std::strerror(errno));
  }
  const Handle start(ends[0]);
  Handle release(ends[1]);
  const pid_t child = spawn(command, start, release);
  if (child < 0) {
    return ioError("cannot start {}: {}", command[0], std::strerror(errno));
  }
  const Handle counter(counted ? openCounter(child) : -1);
  const bool released = ::write(release.get(), "", 1) == 1;
  release.close();
  int state = 0;
  rusage usage{};
  while (::wait4(child, &state, 0, &usage) < 0) {
    if (errno != EINTR) {
      return ioError("cannot wait for {}: {}", command[0],
                     std::strerror(errno));
    }
  }
  if (!released || !WIFEXITED(state) || WEXITSTATUS(state) != 0) {
    return ioError("{} ended with {} {}, expected exit code 0", command[0],
                   WIFEXITED(state) ? "exit code" : "signal",
                   WIFEXITED(state) ? WEXITSTATUS(state) : WTERMSIG(state));
  }
  CommandCost cost;
  cost.processorSeconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  cost.peakBytes = int64_t{usage.ru_maxrss} * 1024;
  if (counted) {
    uint64_t count = 0;
    if (counter.get() < 0 ||
        ::read(counter.get(), &count, sizeof count) != sizeof count) {
      return ioError("cannot count the instructions of {}: {}", command[0],
                     std::strerror(errno));
    }
    cost.instructions = count;
  }
  return cost;
}

/// The number after `I   refs:` in what cachegrind says, without its commas.
StatusOr<uint64_t> readReferences(const std::string &path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t refs = line.find("refs:");
    if (refs == std::string::npos) {
      continue;
    }
    std::string digits;
    for (const char c : line.substr(refs + 5)) {
      if (c >= '0' && c <= '9') {
        digits += c;
      }
    }
    uint64_t count = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), count);
    return count;
  }
  return ioError("{}: cachegrind counted no instructions", path);
}

StatusOr<uint64_t> countByValgrind(const std::vector<std::string> &command) {
  std::string log = std::filesystem::temp_directory_path() / "count-XXXXXX";
  const Handle file(::mkstemp(log.data()));
  if (file.get() < 0) {
    return ioError("cannot make {}: {}", log, std::strerror(errno));
  }
  std::vector<std::string> counted = {
      "valgrind", "--tool=cachegrind", "--cache-sim=no",
      "--cachegrind-out-file=/dev/null", "--log-file=" + log};
  counted.insert(counted.end(), command.begin(), command.end());
  auto ended = run(counted, false);
  auto count = ended.isOk() ? readReferences(log)
                            : StatusOr<uint64_t>(std::move(ended).takeStatus());
  std::filesystem::remove(log);
  return count;
}

} // namespace

InstructionCounter findInstructionCounter() {
  if (Handle(openCounter(0)).get() >= 0) {
    return InstructionCounter::Hardware;
  }
  return std::system("valgrind --version >/dev/null 2>&1") == 0
             ? InstructionCounter::Valgrind
             : InstructionCounter::None;
}

StatusOr<CommandCost> measure(const std::vector<std::string> &command,
                              InstructionCounter counter) {
  MEGA_ASSIGN_OR_RETURN(CommandCost cost,
                        run(command, counter == InstructionCounter::Hardware));
  if (counter == InstructionCounter::Valgrind) {
    MEGA_ASSIGN_OR_RETURN(cost.instructions, countByValgrind(command));
  }
  return cost;
}

} // namespace mega
