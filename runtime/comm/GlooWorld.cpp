#include "runtime/comm/GlooWorld.h"

#include "runtime/comm/GlooCommunicator.h"

#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <stdexcept>

namespace mega {
namespace {

/// Gloo's store is ours; errors become exceptions on the way through it.
class StoreAdapter final : public gloo::rendezvous::Store {
public:
  StoreAdapter(KeyValueStore &store, std::chrono::milliseconds limit)
      : store(store), limit(limit) {}

  void set(const std::string &key, const std::vector<char> &data) override {
    const Status status =
        store.set(prefixed(key), std::string(data.begin(), data.end()));
    if (!status.isOk()) {
      throw std::runtime_error(status.message());
    }
  }
  std::vector<char> get(const std::string &key) override {
    StatusOr<std::string> value = store.get(prefixed(key), limit);
    if (!value.isOk()) {
      throw std::runtime_error(value.status().message());
    }
    return {(*value).begin(), (*value).end()};
  }
  void wait(const std::vector<std::string> &keys) override {
    for (const std::string &key : keys) {
      get(key);
    }
  }
  void wait(const std::vector<std::string> &keys,
            const std::chrono::milliseconds &) override {
    wait(keys);
  }

private:
  static std::string prefixed(const std::string &key) { return "gloo/" + key; }
  KeyValueStore &store;
  std::chrono::milliseconds limit;
};

void ignoreBrokenPipes() {
  struct sigaction now = {};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    now.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &now, nullptr);
  }
}

} // namespace

GlooWorld::GlooWorld(std::shared_ptr<gloocomm::World> world)
    : world(std::move(world)) {}
GlooWorld::~GlooWorld() = default;

StatusOr<std::unique_ptr<GlooWorld>> GlooWorld::connect(GlooOptions options,
                                                        KeyValueStore &store) {
  ignoreBrokenPipes();
  auto world = std::make_shared<gloocomm::World>();
  world->options = std::move(options);
  const GlooOptions &given = world->options;
  try {
    auto context =
        std::make_shared<gloo::rendezvous::Context>(given.rank, given.size);
    context->setTimeout(given.timeLimit);
    if (given.size > 1) {
      gloo::transport::tcp::attr attributes;
      attributes.hostname = given.address;
      auto device = gloo::transport::tcp::CreateDevice(attributes);
      StoreAdapter adapter(store, given.timeLimit);
      context->connectFullMesh(adapter, device);
    }
    world->context = std::move(context);
  } catch (const std::exception &error) {
    return makeError(Code::Unavailable,
                     "rank {}: cannot connect to the other {} ranks from {}: "
                     "{}",
                     given.rank, given.size - 1, given.address, error.what());
  }
  return std::unique_ptr<GlooWorld>(new GlooWorld(std::move(world)));
}

StatusOr<std::unique_ptr<Communicator>>
GlooWorld::createGroup(std::string name, std::vector<int> ranks) {
  const std::set<int> distinct(ranks.begin(), ranks.end());
  if (ranks.empty() || distinct.size() != ranks.size() ||
      *distinct.begin() < 0 || *distinct.rbegin() >= world->options.size) {
    return makeError(
        Code::Internal,
        "group \"{}\": {} of a world of {}: needs distinct ranks of 0 .. {}",
        name, listRanks(ranks), world->options.size, world->options.size - 1);
  }
  const int id = groups++;
  if (id >= 1 << gloocomm::kGroupBits) {
    return makeError(Code::Internal,
                     "group \"{}\": there may be {} groups at most", name,
                     1 << gloocomm::kGroupBits);
  }
  const auto place = std::find(ranks.begin(), ranks.end(), world->options.rank);
  if (place == ranks.end()) {
    return std::unique_ptr<Communicator>();
  }
  const int rank = static_cast<int>(place - ranks.begin());
  auto communicator = std::make_unique<gloocomm::GlooCommunicator>(
      world, Group{std::move(name), std::move(ranks)}, rank, id);
  MEGA_RETURN_IF_ERROR(communicator->meet());
  return std::unique_ptr<Communicator>(std::move(communicator));
}

RankActivity GlooWorld::activity() const { return world->activity(); }

void GlooWorld::abort(const Status &cause) { (void)world->fail(cause, false); }

} // namespace mega
