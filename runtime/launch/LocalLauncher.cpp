#include "runtime/launch/LocalLauncher.h"

#include "runtime/launch/Sockets.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <optional>

namespace mega {
namespace {

using Clock = std::chrono::steady_clock;

Status failed(std::string_view what) {
  return makeError(Code::Unavailable, "cannot {}: {}", what,
                   std::strerror(errno));
}

class LocalLauncher {
public:
  explicit LocalLauncher(const LocalLaunch &launch)
      : launch(launch), children(static_cast<size_t>(launch.ranks)) {}
  ~LocalLauncher() {
    killAll();
    for (Child &child : children) {
      if (child.process > 0) {
        ::waitpid(child.process, nullptr, 0);
      }
    }
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
  }

  Status run() {
    MEGA_RETURN_IF_ERROR(catchSignals());
    MEGA_RETURN_IF_ERROR(startAll());
    while (std::any_of(children.begin(), children.end(),
                       [](const Child &child) { return child.isAlive(); })) {
      MEGA_RETURN_IF_ERROR(step());
    }
    return result();
  }

private:
  struct Child {
    pid_t process = -1;
    /// What it prints, until its end.
    Descriptor output;
    std::string line;
    int exitCode = 0;

    bool isAlive() const { return process > 0 || output; }
  };
  struct Pipe {
    Descriptor read, write;
  };

  static StatusOr<Pipe> makePipe() {
    int ends[2] = {};
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      return failed("make a pipe");
    }
    return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  }

  Status catchSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
      sigaddset(&set, number);
    }
    if (::sigprocmask(SIG_BLOCK, &set, &before) != 0) {
      return failed("block signals");
    }
    signals = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    return signals ? Status::ok() : failed("wait for signals");
  }

  Status startAll() {
    MEGA_ASSIGN_OR_RETURN(Pipe port, makePipe());
    MEGA_RETURN_IF_ERROR(start(0, 0, port.write.get()));
    port.write = Descriptor();
    char text[16] = {};
    ssize_t length = 0;
    do {
      length = ::read(port.read.get(), text, sizeof(text));
    } while (length < 0 && errno == EINTR);
    int number = 0;
    if (length > 0) {
      std::from_chars(text, text + length, number);
    }
    // None: rank 0 has ended, and says why.
    for (int rank = 1; rank < launch.ranks && number != 0; ++rank) {
      MEGA_RETURN_IF_ERROR(start(rank, number, -1));
    }
    return Status::ok();
  }

  Status start(int rank, int port, int portDescriptor) {
    std::vector<std::string> words = {launch.program};
    words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
    const std::string size = std::to_string(launch.ranks);
    const std::string number = std::to_string(rank);
    for (const std::string &word :
         {std::string("--rank"), number, std::string("--world-size"), size,
          std::string("--local-rank"), number, std::string("--local-size"),
          size, std::string("--rendezvous"),
          fmt::format("127.0.0.1:{}", port)}) {
      words.push_back(word);
    }
    if (portDescriptor >= 0) {
      words.insert(words.end(),
                   {"--port-descriptor", std::to_string(portDescriptor)});
    }
    std::vector<char *> arguments;
    for (std::string &word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    MEGA_ASSIGN_OR_RETURN(Pipe output, makePipe());
    const pid_t parent = ::getpid();
    const pid_t process = ::fork();
    if (process < 0) {
      return failed("start a process");
    }
    if (process == 0) {
      // Nothing but system calls until exec.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::sigprocmask(SIG_SETMASK, &before, nullptr);
      ::dup2(output.write.get(), STDOUT_FILENO);
      ::dup2(output.write.get(), STDERR_FILENO);
      if (portDescriptor >= 0) {
        ::fcntl(portDescriptor, F_SETFD, 0);
      }
      if (::getppid() == parent) {
        ::execv(launch.program.c_str(), arguments.data());
      }
      ::_exit(static_cast<int>(Code::Unavailable));
    }
    Child &child = children[static_cast<size_t>(rank)];
    child.process = process;
    child.output = std::move(output.read);
    return Status::ok();
  }

  /// Waits for something to happen and deals with it.
  Status step() {
    std::vector<pollfd> polled = {{signals.get(), POLLIN, 0}};
    for (const Child &child : children) {
      // poll() passes over negative ones.
      polled.push_back({child.output.get(), POLLIN, 0});
    }
    int wait = -1;
    if (deadline) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          *deadline - Clock::now());
      wait = std::max<int>(0, static_cast<int>(left.count()) + 1);
    }
    if (::poll(polled.data(), polled.size(), wait) < 0 && errno != EINTR) {
      return failed("wait for the ranks");
    }
    for (size_t rank = 0; rank < children.size(); ++rank) {
      if (polled[rank + 1].revents != 0) {
        read(rank);
      }
    }
    signalfd_siginfo info;
    while (::read(signals.get(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo != SIGCHLD) {
        signalAll(static_cast<int>(info.ssi_signo));
      }
    }
    reap();
    if (deadline && Clock::now() >= *deadline) {
      killAll();
      deadline.reset();
    }
    return Status::ok();
  }

  void read(size_t rank) {
    Child &child = children[rank];
    char piece[4096];
    const ssize_t count = ::read(child.output.get(), piece, sizeof(piece));
    if (count < 0 && errno == EINTR) {
      return;
    }
    if (count <= 0) {
      child.output = Descriptor();
      if (!child.line.empty()) {
        passOn(rank, child.line);
      }
      return;
    }
    child.line.append(piece, static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end = child.line.find('\n'); end != std::string::npos;
         end = child.line.find('\n', begin)) {
      passOn(rank, std::string_view(child.line).substr(begin, end - begin));
      begin = end + 1;
    }
    child.line.erase(0, begin);
  }

  void passOn(size_t rank, std::string_view line) {
    if (!launch.errorPrefix.empty() && line.starts_with(launch.errorPrefix)) {
      if (cause.empty()) {
        cause = line.substr(launch.errorPrefix.size());
        causeRank = rank;
      }
      return;
    }
    fmt::print(stderr, "[rank {}] {}\n", rank, line);
  }

  void reap() {
    for (size_t rank = 0; rank < children.size(); ++rank) {
      Child &child = children[rank];
      int status = 0;
      if (child.process <= 0 ||
          ::waitpid(child.process, &status, WNOHANG) != child.process) {
        continue;
      }
      child.process = -1;
      const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      if (!good && !deadline) {
        deadline = Clock::now() + kGrace;
      }
      if (!good && firstEnd.isOk()) {
        firstEnd = WIFSIGNALED(status)
                       ? makeError(Code::Unavailable,
                                   "rank {} was ended by signal {} "
                                   "({})",
                                   rank, WTERMSIG(status),
                                   ::strsignal(WTERMSIG(status)))
                       : makeError(Code(WEXITSTATUS(status)),
                                   "rank {} ended with exit code {}", rank,
                                   WEXITSTATUS(status));
      }
      child.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    }
  }

  Status result() {
    if (cause.empty()) {
      return std::move(firstEnd);
    }
    const int code = children[causeRank].exitCode;
    return {code == 0 ? Code::Failed : Code(code), cause};
  }

  void signalAll(int number) {
    for (const Child &child : children) {
      if (child.process > 0) {
        ::kill(child.process, number);
      }
    }
  }
  void killAll() { signalAll(SIGKILL); }

  const LocalLaunch &launch;
  std::vector<Child> children;
  sigset_t before{};
  Descriptor signals;
  /// When those left are killed.
  std::optional<Clock::time_point> deadline;
  std::string cause;
  size_t causeRank = 0;
  Status firstEnd;
};

} // namespace

Status launchLocally(const LocalLaunch &launch) {
  return LocalLauncher(launch).run();
}

void announcePort(int descriptor, int port) {
  const std::string text = std::to_string(port);
  (void)!::write(descriptor, text.data(), text.size());
  ::close(descriptor);
}

} // namespace mega
