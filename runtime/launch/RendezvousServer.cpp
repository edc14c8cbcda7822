#include "runtime/launch/RendezvousServer.h"

#include "runtime/comm/Operation.h"
#include "runtime/launch/Sockets.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <thread>

namespace mega {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

/// For the answers to a probe: live ranks need a round trip.
static constexpr std::chrono::milliseconds kAnswerTime{300};

class RendezvousServer::Loop {
public:
  Loop(Endpoint endpoint, Descriptor listener, Hello expected,
       RendezvousLimits limits)
      : endpoint(std::move(endpoint)), listener(std::move(listener)),
        expected(std::move(expected)), limits(limits),
        wake(::eventfd(0, EFD_CLOEXEC)), started(Clock::now()),
        thread([this] { run(); }) {}

  ~Loop() {
    const uint64_t one = 1;
    (void)!::write(wake.get(), &one, sizeof(one));
    thread.join();
  }

  int port() const { return portOf(listener); }

private:
  struct Client {
    explicit Client(Descriptor socket) : connection(std::move(socket)) {}
    Connection connection;
    /// -1 until its hello.
    int rank = -1;
    bool left = false;
    bool lost = false;
    Clock::time_point heard = Clock::now();
    std::set<std::string> awaited;
    /// The last it has said, and whether since the last probe.
    RankState state;
    bool answered = false;
  };

  void run();
  void accept();
  void handle(Client &client, const Json &message);
  void handleHello(Client &client, const Json &message);
  void lose(Client &client);
  void checkTime();
  void announce(const RankFailure &failure);
  /// A rank blames others, who may be victims as well: asks all where they are.
  void investigate(const RankFailure &failure);
  /// With the answers.
  void conclude();
  Client *find(int rank);
  void refuse(Code code, const std::string &message);
  /// The difference of two ranks that have to agree, or nothing.
  std::optional<std::string> difference(const Hello &hello) const;
  void sendAll(const Json &message);
  bool isOver() const { return over; }

  Endpoint endpoint;
  Descriptor listener;
  Hello expected;
  RendezvousLimits limits;
  Descriptor wake;
  Clock::time_point started;
  std::list<Client> clients;
  std::map<std::string, Json> values;
  bool complete = false;
  /// Nothing will happen any more: a failure, a refusal, or all have left.
  bool over = false;
  /// What a rank has reported, and until when the others may answer.
  std::optional<RankFailure> complaint;
  Clock::time_point answersDue;
  /// What ranks that come too late are told.
  std::optional<Json> refusal;
  std::thread thread;
};

void RendezvousServer::Loop::run() {
  bool stopping = false;
  Clock::time_point stopAt = Clock::time_point::max();
  while (true) {
    std::vector<pollfd> waits = {
        {wake.get(), stopping ? short(0) : short(POLLIN), 0},
        {listener.get(), POLLIN, 0}};
    for (const Client &client : clients) {
      waits.push_back(
          {client.connection.descriptor(),
           short(client.connection.wantsToWrite() ? POLLIN | POLLOUT : POLLIN),
           0});
    }
    ::poll(waits.data(), waits.size(), 50);
    if ((waits[0].revents & POLLIN) != 0) {
      stopping = true;
      stopAt = Clock::now() + std::chrono::seconds(1);
      // All have been told; a close with unread data would cut that off.
      for (Client &client : clients) {
        client.connection.write();
        client.connection.finish();
      }
    }
    if (stopping && (clients.empty() || !over || Clock::now() >= stopAt)) {
      return;
    }
    for (Client &client : clients) {
      bool alive = client.connection.read();
      Json message;
      while (client.connection.next(message)) {
        client.heard = Clock::now();
        handle(client, message);
      }
      alive = alive && client.connection.write();
      if (!alive) {
        lose(client);
      }
    }
    clients.remove_if([](const Client &client) { return client.lost; });
    if ((waits[1].revents & POLLIN) != 0) {
      accept();
    }
    checkTime();
  }
}

void RendezvousServer::Loop::accept() {
  Descriptor socket(::accept4(listener.get(), nullptr, nullptr,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) {
    clients.emplace_back(std::move(socket));
  }
}

void RendezvousServer::Loop::handle(Client &client, const Json &message) {
  const std::string type = textAt(message, "type");
  if (client.rank < 0) {
    if (type == "hello") {
      handleHello(client, message);
    } else {
      client.lost = true;
    }
  } else if (type == "ping") {
    client.state = stateFrom(message);
    const Client *root = find(0);
    Json pong = toJson(root == nullptr ? RankState() : root->state);
    pong["type"] = "pong";
    client.connection.send(pong);
  } else if (type == "state") {
    client.state = stateFrom(message);
    client.answered = true;
  } else if (type == "set") {
    const std::string key = textAt(message, "key");
    const Json answer = {{"type", "value"},
                         {"key", key},
                         {"value", message.value("value", Json())}};
    values[key] = answer;
    for (Client &other : clients) {
      if (other.awaited.erase(key) > 0) {
        other.connection.send(answer);
      }
    }
  } else if (type == "get") {
    const std::string key = textAt(message, "key");
    const auto found = values.find(key);
    if (found != values.end()) {
      client.connection.send(found->second);
    } else {
      client.awaited.insert(key);
    }
  } else if (type == "report") {
    const RankFailure failure = failureFrom(message);
    if (failure.code == Code::Unavailable) {
      investigate(failure);
    } else {
      announce(failure);
    }
  } else if (type == "bye") {
    client.left = true;
    const bool all =
        complete && !over &&
        std::all_of(clients.begin(), clients.end(), [](const Client &each) {
          return each.rank < 0 || each.left;
        });
    if (all) {
      sendAll({{"type", "end"}});
      over = true;
    }
  }
}

void RendezvousServer::Loop::handleHello(Client &client, const Json &message) {
  Hello hello;
  try {
    hello = message.get<Hello>();
  } catch (const Json::exception &) {
    client.lost = true;
    return;
  }
  const std::string from = peerAddress(client.connection.owner());
  client.rank = hello.rank;
  if (refusal) {
    client.connection.send(*refusal);
    return;
  }
  if (const auto what = difference(hello)) {
    return refuse(Code::BadInput, *what);
  }
  if (hello.rank < 0 || hello.rank >= expected.worldSize) {
    return refuse(Code::Usage,
                  fmt::format("rank {} (from {}) is not in 0 .. {}", hello.rank,
                              from, expected.worldSize - 1));
  }
  for (const Client &other : clients) {
    if (&other != &client && other.rank == hello.rank) {
      return refuse(
          Code::Usage,
          fmt::format("two processes are rank {}: one on {}, one on {}; every "
                      "rank has to be started once",
                      hello.rank, peerAddress(other.connection.owner()), from));
    }
  }
  const auto joined =
      std::count_if(clients.begin(), clients.end(), [](const Client &each) {
        return each.rank >= 0 && !each.lost;
      });
  if (joined == expected.worldSize) {
    complete = true;
    sendAll({{"type", "welcome"}});
  }
}

std::optional<std::string>
RendezvousServer::Loop::difference(const Hello &hello) const {
  const auto differs = [&](std::string_view what, const auto &theirs,
                           const auto &ours,
                           std::string_view fix) -> std::optional<std::string> {
    if (theirs == ours) {
      return std::nullopt;
    }
    return fmt::format("rank {} has {} {}, rank {} has {}: {}", hello.rank,
                       what, theirs, expected.rank, ours, fix);
  };
  constexpr std::string_view sameMegart = "run the same megart on all hosts";
  for (const auto &each :
       {differs("protocol", hello.protocol, expected.protocol, sameMegart),
        differs("megart", hello.version, expected.version, sameMegart),
        differs("a world of", hello.worldSize, expected.worldSize,
                "start all ranks with one number of them"),
        differs("the plan", hello.planHash, expected.planHash,
                "give all ranks the same plan file"),
        differs("instruction set", hello.instructionSet,
                expected.instructionSet,
                "ranks of one run need processors of one kind, or their "
                "results differ")}) {
    if (each) {
      return each;
    }
  }
  return std::nullopt;
}

void RendezvousServer::Loop::lose(Client &client) {
  client.lost = true;
  if (client.rank >= 0 && complete && !over) {
    // Where it was when it last said so.
    const RankState &state = client.state;
    announce({client.rank, state.stage, state.step, state.action,
              Code::Unavailable,
              fmt::format("its connection is lost ({}): the process has ended "
                          "or its host cannot be reached",
                          client.connection.reason)});
  }
}

void RendezvousServer::Loop::checkTime() {
  if (over) {
    return;
  }
  const Clock::time_point now = Clock::now();
  if (!complete) {
    if (now - started < limits.join) {
      return;
    }
    std::set<int> absent;
    for (int rank = 0; rank < expected.worldSize; ++rank) {
      absent.insert(rank);
    }
    for (const Client &client : clients) {
      absent.erase(client.rank);
    }
    const std::vector<int> ranks(absent.begin(), absent.end());
    return refuse(
        Code::Unavailable,
        fmt::format("{} of {} {} not joined at {} within {} s",
                    listRanks(ranks), expected.worldSize,
                    ranks.size() == 1 ? "has" : "have", describe(endpoint),
                    std::chrono::duration<double>(limits.join).count()));
  }
  if (complaint && now >= answersDue) {
    return conclude();
  }
  for (const Client &client : clients) {
    if (client.rank >= 0 && now - client.heard > limits.heartbeat) {
      const RankState &state = client.state;
      return announce(
          {client.rank, state.stage, state.step, state.action,
           Code::Unavailable,
           fmt::format(
               "it has not been heard of for {} s: the process is "
               "stopped or its host cannot be reached",
               std::chrono::duration<double>(limits.heartbeat).count())});
    }
  }
}

void RendezvousServer::Loop::investigate(const RankFailure &failure) {
  if (complaint || over) {
    return;
  }
  complaint = failure;
  answersDue = Clock::now() + kAnswerTime;
  for (Client &client : clients) {
    client.answered = false;
  }
  sendAll({{"type", "probe"}});
}

RendezvousServer::Loop::Client *RendezvousServer::Loop::find(int rank) {
  const auto found =
      std::find_if(clients.begin(), clients.end(),
                   [&](const Client &each) { return each.rank == rank; });
  return found == clients.end() ? nullptr : &*found;
}

void RendezvousServer::Loop::conclude() {
  // From the one that complains to whom it waits for, and on, to the one that
  // waits for nobody. A circle has no culprit.
  std::set<int> seen;
  const Client *at = find(complaint->rank);
  while (at != nullptr && at->answered && at->state.waitsFor >= 0 &&
         seen.insert(at->rank).second) {
    at = find(at->state.waitsFor);
  }
  if (at == nullptr || at->rank == complaint->rank || seen.contains(at->rank)) {
    return announce(*complaint);
  }
  const RankState &state = at->state;
  std::string what =
      at->answered ? "it waits for nobody and has not come"
                   : "it does not answer: the process is stopped or its host "
                     "cannot be reached";
  if (!at->answered && !state.operation.empty()) {
    what += fmt::format("; it was last in {}", state.operation);
  }
  announce({at->rank, state.stage, state.step, state.action, Code::Unavailable,
            fmt::format("{}; reported by {}", what, complaint->describe())});
}

void RendezvousServer::Loop::announce(const RankFailure &failure) {
  if (over) {
    return;
  }
  over = true;
  Json message = toJson(failure);
  message["type"] = "failure";
  sendAll(message);
}

void RendezvousServer::Loop::refuse(Code code, const std::string &message) {
  over = true;
  refusal = Json{{"type", "refuse"}, {"code", int(code)}, {"message", message}};
  sendAll(*refusal);
}

void RendezvousServer::Loop::sendAll(const Json &message) {
  for (Client &client : clients) {
    if (client.rank >= 0) {
      client.connection.send(message);
      client.connection.write();
    }
  }
}

RendezvousServer::RendezvousServer(std::unique_ptr<Loop> loop)
    : loop(std::move(loop)) {}
RendezvousServer::~RendezvousServer() = default;

StatusOr<std::unique_ptr<RendezvousServer>>
RendezvousServer::start(const Endpoint &endpoint, Hello expected,
                        RendezvousLimits limits) {
  MEGA_ASSIGN_OR_RETURN(Descriptor listener, listenOn(endpoint));
  const Endpoint actual = {endpoint.host, portOf(listener)};
  return std::unique_ptr<RendezvousServer>(
      new RendezvousServer(std::make_unique<Loop>(
          actual, std::move(listener), std::move(expected), limits)));
}

int RendezvousServer::port() const { return loop->port(); }

} // namespace mega
