#include "test/runtime/launch/Processes.h"

#include "runtime/comm/GlooWorld.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace mega::test {
namespace {

void writeLine(int pipe, const std::string &text) {
  const std::string line = text + "\n";
  (void)!::write(pipe, line.data(), line.size());
}

} // namespace

Processes::~Processes() {
  for (Child &child : children) {
    if (child.process > 0) {
      ::kill(child.process, SIGKILL);
      ::waitpid(child.process, nullptr, 0);
    }
    if (child.pipe >= 0) {
      ::close(child.pipe);
    }
  }
}

void Processes::start(const Body &body) {
  // Rank 0 chooses a port and tells us; the others are told it.
  fork(0, 0, body);
  const int port = std::atoi(line(0).c_str());
  ASSERT_GT(port, 0);
  for (size_t rank = 1; rank < children.size(); ++rank) {
    fork(static_cast<int>(rank), port, body);
  }
}

void Processes::fork(int rank, int port, const Body &body) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t process = ::fork();
  ASSERT_GE(process, 0);
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    runRank(rank, port, ends[1], body);
    ::_exit(0);
  }
  ::close(ends[1]);
  children[rank] = {process, ends[0], ""};
}

void Processes::runRank(int rank, int port, int pipe, const Body &body) {
  const auto finish = [&](const Status &status) {
    writeLine(pipe, status.isOk() ? "ok"
                                  : fmt::format("{} {}", int(status.code()),
                                                status.message()));
  };
  if (options.enter && !options.enter(rank)) {
    return finish(Status(Code::Internal, "cannot enter the host"));
  }
  Hello hello;
  hello.rank = rank;
  hello.worldSize = static_cast<int>(children.size());
  hello.planHash = "plan";
  std::unique_ptr<RendezvousServer> server;
  if (rank == 0) {
    auto started =
        RendezvousServer::start({options.host, 0}, hello, options.limits);
    if (!started.isOk()) {
      return finish(started.status());
    }
    server = std::move(started).take();
    port = server->port();
    writeLine(pipe, std::to_string(port));
  }
  auto joined = Rendezvous::join({options.host, port}, hello, options.limits);
  if (!joined.isOk()) {
    return finish(joined.status());
  }
  const std::unique_ptr<Rendezvous> ranks = std::move(joined).take();
  const auto run = [&]() -> Status {
    GlooOptions gloo;
    gloo.timeLimit = options.timeLimit;
    gloo.rank = rank;
    gloo.size = hello.worldSize;
    gloo.address = ranks->localAddress();
    gloo.rootCauseWait = std::chrono::seconds(1);
    MEGA_ASSIGN_OR_RETURN(const std::unique_ptr<GlooWorld> world,
                          GlooWorld::connect(gloo, ranks->store()));
    std::vector<int> all;
    for (int each = 0; each < hello.worldSize; ++each) {
      all.push_back(each);
    }
    MEGA_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator,
                          world->createGroup("all", all));
    ranks->setFailureCallback(
        [&](const RankFailure &failure) { world->abort(failure.status()); });
    ranks->setStateProvider([&] {
      const RankActivity activity = world->activity();
      return RankState{rank / 2, 7, -1, activity.waitsFor, activity.operation};
    });
    Status status = body(*communicator, [&] { writeLine(pipe, "under way"); });
    // The world goes only after everyone is done with it.
    status =
        status.isOk()
            ? ranks->leave()
            : ranks->report({rank, -1, -1, -1, status.code(), status.message()})
                  .status();
    ranks->setFailureCallback({});
    ranks->setStateProvider({});
    return status;
  };
  finish(run());
}

std::string Processes::line(int rank) {
  Child &child = children[rank];
  while (true) {
    const size_t end = child.read.find('\n');
    if (end != std::string::npos) {
      const std::string result = child.read.substr(0, end);
      child.read.erase(0, end + 1);
      return result;
    }
    char piece[4096];
    const ssize_t count = ::read(child.pipe, piece, sizeof(piece));
    if (count <= 0) {
      return "";
    }
    child.read.append(piece, static_cast<size_t>(count));
  }
}

void Processes::waitUntilUnderWay() {
  for (size_t rank = 0; rank < children.size(); ++rank) {
    ASSERT_EQ(line(static_cast<int>(rank)), "under way");
  }
}

void Processes::signal(int rank, int number) {
  ::kill(children[rank].process, number);
}

std::string Processes::end(int rank) {
  std::string last;
  std::string text = line(rank);
  while (!text.empty()) {
    last = text;
    text = line(rank);
  }
  ::waitpid(children[rank].process, nullptr, 0);
  children[rank].process = -1;
  return last;
}

static bool ip(const std::string &arguments) {
  return std::system(("ip " + arguments + " >/dev/null 2>&1").c_str()) == 0;
}

std::unique_ptr<Network> Network::create(int hosts) {
  if (::geteuid() != 0) {
    return nullptr;
  }
  auto network = std::make_unique<Network>();
  network->prefix = fmt::format("mega{}-", ::getpid());
  network->hosts = hosts;
  const std::string hub = network->prefix + "hub";
  bool good = ip("netns add " + hub) &&
              ip("-n " + hub + " link add br0 type bridge") &&
              ip("-n " + hub + " link set br0 up");
  for (int host = 0; host < hosts && good; ++host) {
    const std::string name = network->prefix + std::to_string(host);
    good =
        ip("netns add " + name) && ip("-n " + name + " link set lo up") &&
        ip(fmt::format("-n {} link add eth0 type veth peer name p{} netns {}",
                       name, host, hub)) &&
        ip(fmt::format("-n {} link set p{} master br0 up", hub, host)) &&
        ip(fmt::format("-n {} addr add {}/24 dev eth0", name,
                       network->address(host))) &&
        ip("-n " + name + " link set eth0 up");
  }
  return good ? std::move(network) : nullptr;
}

Network::~Network() {
  for (int host = 0; host < hosts; ++host) {
    ip("netns del " + prefix + std::to_string(host));
  }
  ip("netns del " + prefix + "hub");
}

std::string Network::address(int host) const {
  return fmt::format("10.203.7.{}", host + 1);
}

bool Network::enter(int host) const {
  const int space = ::open(
      ("/var/run/netns/" + prefix + std::to_string(host)).c_str(), O_RDONLY);
  const bool good = space >= 0 && ::setns(space, CLONE_NEWNET) == 0;
  ::close(space);
  return good;
}

} // namespace mega::test
