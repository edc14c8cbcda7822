#include "runtime/launch/Rendezvous.h"

#include "runtime/launch/Sockets.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <thread>

namespace mega {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

class Rendezvous::Client final : public KeyValueStore {
public:
  Client(Descriptor socket, RendezvousLimits limits)
      : limits(limits), address(mega::localAddress(socket)),
        connection(std::move(socket)), wake(::eventfd(0, EFD_CLOEXEC)) {}
  ~Client() override {
    {
      const std::scoped_lock lock(mutex);
      stopping = true;
    }
    notifyThread();
    if (thread.joinable()) {
      thread.join();
    }
  }

  Status greet(const Hello &hello);
  Status set(const std::string &key, const std::string &value) override;
  StatusOr<std::string> get(const std::string &key,
                            std::chrono::milliseconds limit) override;
  RankFailure report(const RankFailure &mine);
  void setCallback(std::function<void(const RankFailure &)> given);
  void setProvider(std::function<RankState()> given) {
    const std::scoped_lock lock(mutex);
    provider = std::move(given);
    if (provider) {
      // Known from the start: a rank may stop before its first ping.
      sendState("ping");
      notifyThread();
    }
  }
  Status leave();

  const RendezvousLimits limits;
  const std::string address;

private:
  void run();
  void handle(const Json &message);
  void sendState(const char *type);
  void fail(const RankFailure &failure);
  /// Hands the failure to the callback, once; without the lock.
  void callBack();
  void send(const Json &message) {
    connection.send(message);
    notifyThread();
  }
  void notifyThread() {
    const uint64_t one = 1;
    (void)!::write(wake.get(), &one, sizeof(one));
  }

  std::mutex mutex;
  std::condition_variable changed;
  // All of the following is guarded by the mutex.
  Connection connection;
  std::map<std::string, std::string> values;
  std::optional<RankFailure> failure;
  std::optional<Status> refusal;
  bool welcome = false;
  bool ended = false;
  bool stopping = false;
  /// Where rank 0 was at the last answer.
  RankState root;
  std::function<RankState()> provider;

  /// Held while the callback runs; taken before the other one.
  std::mutex callbackMutex;
  std::function<void(const RankFailure &)> callback;

  Descriptor wake;
  std::thread thread;
};

Status Rendezvous::Client::greet(const Hello &hello) {
  Json message = hello;
  message["type"] = "hello";
  connection.send(message);
  thread = std::thread([this] { run(); });
  std::unique_lock lock(mutex);
  // The server gives up first, and says who is missing.
  changed.wait_for(lock, limits.join + std::chrono::seconds(5),
                   [&] { return welcome || refusal || failure; });
  // Another rank may have failed by now: that is the channel's to tell.
  if (welcome) {
    return Status::ok();
  }
  if (refusal) {
    return std::move(*refusal);
  }
  return failure ? failure->status()
                 : makeError(
                       Code::Unavailable,
                       "the rendezvous has not answered within {} s",
                       std::chrono::duration<double>(limits.join).count() + 5);
}

void Rendezvous::Client::run() {
  const auto interval = std::min<std::chrono::milliseconds>(
      limits.heartbeat / 4, std::chrono::seconds(1));
  Clock::time_point heard = Clock::now();
  Clock::time_point nextPing = heard + interval;
  while (true) {
    pollfd waits[2] = {{wake.get(), POLLIN, 0}, {0, POLLIN, 0}};
    {
      const std::scoped_lock lock(mutex);
      if (stopping) {
        return;
      }
      waits[1].fd = connection.descriptor();
      waits[1].events =
          short(connection.wantsToWrite() ? POLLIN | POLLOUT : POLLIN);
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(nextPing - Clock::now());
    const int ready =
        ::poll(waits, 2, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if ((waits[0].revents & POLLIN) != 0) {
      uint64_t count = 0;
      (void)!::read(wake.get(), &count, sizeof(count));
    }
    bool alive = true;
    {
      const std::scoped_lock lock(mutex);
      const Clock::time_point now = Clock::now();
      if (now >= nextPing) {
        sendState("ping");
        nextPing = now + interval;
      }
      alive = connection.write();
      const bool open = connection.read();
      alive = alive && open;
      Json message;
      while (connection.next(message)) {
        heard = now;
        handle(message);
      }
      if (!alive && !ended && !refusal) {
        fail({0, root.stage, root.step, root.action, Code::Unavailable,
              fmt::format("the connection to it is lost ({}): the process has "
                          "ended or its host cannot be reached",
                          connection.reason)});
      } else if (ready == 0 && now - heard > limits.heartbeat) {
        // Only if nothing waits to be read: this process may have been stopped.
        fail(
            {0, root.stage, root.step, root.action, Code::Unavailable,
             fmt::format(
                 "it has not been heard of for {} s: the process is stopped or "
                 "its host cannot be reached",
                 std::chrono::duration<double>(limits.heartbeat).count())});
      }
      changed.notify_all();
    }
    callBack();
    if (!alive) {
      return;
    }
  }
}

void Rendezvous::Client::handle(const Json &message) {
  const std::string type = textAt(message, "type");
  if (type == "welcome") {
    welcome = true;
  } else if (type == "refuse") {
    // Code and message are where a failure has them.
    const RankFailure why = failureFrom(message);
    refusal = Status(why.code, why.message);
  } else if (type == "value") {
    const Json value = message.value("value", Json());
    if (value.is_binary()) {
      values[textAt(message, "key")] =
          std::string(value.get_binary().begin(), value.get_binary().end());
    }
  } else if (type == "failure") {
    fail(failureFrom(message));
  } else if (type == "probe") {
    sendState("state");
    connection.write();
  } else if (type == "pong") {
    root = stateFrom(message);
  } else if (type == "end") {
    ended = true;
  }
}

void Rendezvous::Client::sendState(const char *type) {
  Json message = toJson(provider ? provider() : RankState());
  message["type"] = type;
  connection.send(message);
}

void Rendezvous::Client::fail(const RankFailure &given) {
  if (!failure) {
    failure = given;
  }
}

void Rendezvous::Client::callBack() {
  const std::scoped_lock calling(callbackMutex);
  RankFailure cause;
  {
    const std::scoped_lock lock(mutex);
    if (!failure || !callback) {
      return;
    }
    cause = *failure;
  }
  std::exchange(callback, nullptr)(cause);
}

void Rendezvous::Client::setCallback(
    std::function<void(const RankFailure &)> given) {
  {
    const std::scoped_lock calling(callbackMutex);
    callback = std::move(given);
  }
  callBack();
}

Status Rendezvous::Client::set(const std::string &key,
                               const std::string &value) {
  const std::scoped_lock lock(mutex);
  if (failure) {
    return failure->status();
  }
  send({{"type", "set"},
        {"key", key},
        {"value", Json::binary({value.begin(), value.end()})}});
  return Status::ok();
}

StatusOr<std::string> Rendezvous::Client::get(const std::string &key,
                                              std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex);
  if (!values.contains(key)) {
    send({{"type", "get"}, {"key", key}});
  }
  changed.wait_for(lock, limit,
                   [&] { return failure || values.contains(key); });
  if (failure) {
    return failure->status();
  }
  const auto found = values.find(key);
  if (found == values.end()) {
    return makeError(Code::Unavailable, "nobody has set \"{}\" within {} s",
                     key, std::chrono::duration<double>(limit).count());
  }
  return found->second;
}

RankFailure Rendezvous::Client::report(const RankFailure &mine) {
  std::unique_lock lock(mutex);
  if (!failure) {
    Json message = toJson(mine);
    message["type"] = "report";
    send(message);
    changed.wait_for(lock, std::chrono::seconds(1),
                     [&] { return failure.has_value(); });
  }
  return failure.value_or(mine);
}

Status Rendezvous::Client::leave() {
  std::unique_lock lock(mutex);
  send({{"type", "bye"}});
  changed.wait(lock, [&] { return ended || failure; });
  return ended ? Status::ok() : failure->status();
}

Rendezvous::Rendezvous(std::unique_ptr<Client> client)
    : client(std::move(client)) {}
Rendezvous::~Rendezvous() = default;

StatusOr<std::unique_ptr<Rendezvous>>
Rendezvous::join(const Endpoint &endpoint, const Hello &hello,
                 RendezvousLimits limits) {
  MEGA_ASSIGN_OR_RETURN(Descriptor socket, connectTo(endpoint, limits.join));
  auto client = std::make_unique<Client>(std::move(socket), limits);
  MEGA_RETURN_IF_ERROR_CONTEXT(client->greet(hello), "rendezvous at {}",
                               describe(endpoint));
  return std::unique_ptr<Rendezvous>(new Rendezvous(std::move(client)));
}

KeyValueStore &Rendezvous::store() { return *client; }
std::string Rendezvous::localAddress() const { return client->address; }
void Rendezvous::setStateProvider(std::function<RankState()> provider) {
  client->setProvider(std::move(provider));
}
void Rendezvous::setFailureCallback(
    std::function<void(const RankFailure &)> callback) {
  client->setCallback(std::move(callback));
}
RankFailure Rendezvous::report(const RankFailure &mine) {
  return client->report(mine);
}
Status Rendezvous::leave() { return client->leave(); }

} // namespace mega
