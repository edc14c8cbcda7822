#include "runtime/comm/InProcessWorld.h"

#include "runtime/comm/InProcessGroup.h"

#include <sched.h>

#include <algorithm>
#include <set>

namespace mega {
namespace {

/// About 50 microseconds: longer than a small operation, shorter than what
/// another process would miss.
constexpr int kSpins = 1000;

int usableProcessors() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

class InProcessCommunicator final : public Communicator {
public:
  InProcessCommunicator(std::shared_ptr<inprocess::Group> shared, int rank)
      : Communicator(shared->info, rank), shared(std::move(shared)) {}
  ~InProcessCommunicator() override { shared->transfers.withdraw(rank()); }

  Status wait(Transfer transfer) override {
    return shared->transfers.wait(rank(), transfer);
  }
  void abort(const Status &cause) override { shared->world->fail(cause); }

private:
  Status run(const Operation &operation) override {
    return shared->run(rank(), ++operations, operation);
  }
  StatusOr<Transfer> post(const Operation &operation) override {
    return shared->transfers.post(rank(), operation);
  }

  std::shared_ptr<inprocess::Group> shared;
  uint64_t operations = 0;
};

} // namespace

InProcessWorld::InProcessWorld(std::shared_ptr<inprocess::World> world)
    : world(std::move(world)) {}
InProcessWorld::~InProcessWorld() = default;

std::unique_ptr<InProcessWorld>
InProcessWorld::create(int ranks, const CommunicatorOptions &options) {
  auto world = std::make_shared<inprocess::World>();
  world->ranks = ranks;
  world->options = options;
  world->spins = ranks <= usableProcessors() ? kSpins : 0;
  return std::unique_ptr<InProcessWorld>(new InProcessWorld(std::move(world)));
}

StatusOr<std::vector<std::unique_ptr<Communicator>>>
InProcessWorld::createGroup(std::string name, std::vector<int> ranks) {
  const std::set<int> distinct(ranks.begin(), ranks.end());
  if (ranks.empty() || distinct.size() != ranks.size() ||
      *distinct.begin() < 0 || *distinct.rbegin() >= world->ranks ||
      distinct.size() > inprocess::kMaxMembers) {
    return makeError(Code::Internal,
                     "group \"{}\": {} of a world of {}: needs 1 to {} "
                     "distinct ranks of 0 .. {}",
                     name, listRanks(ranks), world->ranks,
                     inprocess::kMaxMembers, world->ranks - 1);
  }
  auto shared = std::make_shared<inprocess::Group>(
      world, Group{std::move(name), std::move(ranks)});
  std::vector<std::unique_ptr<Communicator>> members;
  members.reserve(shared->size());
  for (int rank = 0; rank < shared->size(); ++rank) {
    members.push_back(std::make_unique<InProcessCommunicator>(shared, rank));
  }
  return members;
}

void InProcessWorld::abort(const Status &cause) { world->fail(cause); }

} // namespace mega
