#include "runtime/train/ProcessWorld.h"

#include "runtime/cpu/CpuKernels.h"
#include "runtime/launch/Rendezvous.h"
#include "runtime/plan/PlanLayouts.h"
#include "runtime/train/Seats.h"

#include <algorithm>
#include <numeric>

namespace mega {
namespace {

/// A rank whose connection breaks waits this long for the root cause before it
/// blames its peer.
constexpr auto kRootCauseWait = std::chrono::seconds(1);

class ProcessWorld final : public RankWorld {
public:
  Status open(const LoadedPlan &plan, const ProcessWorldOptions &options) {
    rank = options.launch.rank;
    Hello hello;
    hello.rank = rank;
    hello.worldSize = options.launch.worldSize;
    hello.planHash = plan.hash();
    hello.instructionSet = cpuInstructionSet();
    // Who waits no longer than that for data need not wait longer for a word:
    // a rank that is cut off from rank 0 has nobody to ask.
    RendezvousLimits limits;
    limits.join = options.timeLimit;
    limits.heartbeat = std::min(limits.heartbeat, options.timeLimit);
    Endpoint endpoint{options.launch.host, options.launch.port};
    if (rank == 0) {
      MEGA_ASSIGN_OR_RETURN(server,
                            RendezvousServer::start(endpoint, hello, limits));
      endpoint.port = server->port();
      options.onListening(endpoint.port);
    }
    MEGA_ASSIGN_OR_RETURN(ranks, Rendezvous::join(endpoint, hello, limits));
    return connect(plan.root(), options);
  }
  ~ProcessWorld() override {
    if (ranks) {
      letGo();
    }
  }

  Communicator *everyone() override { return all.get(); }
  RankFailure fail(const RankFailure &mine) override {
    return ranks->report(mine);
  }
  void setState(std::function<RankState()> position) override {
    ranks->setStateProvider([this, position = std::move(position)] {
      const RankActivity activity = world->activity();
      RankState state = position();
      state.waitsFor = activity.waitsFor;
      state.operation = activity.operation;
      return state;
    });
  }
  Status finish(Status result) override {
    result =
        result.isOk()
            ? ranks->leave()
            : ranks->report({rank, -1, -1, -1, result.code(), result.message()})
                  .status();
    letGo();
    return result;
  }

private:
  Status connect(const plan::Plan &plan, const ProcessWorldOptions &options) {
    GlooOptions gloo;
    gloo.timeLimit = options.timeLimit;
    gloo.rank = rank;
    gloo.size = options.launch.worldSize;
    gloo.address = ranks->localAddress();
    gloo.rootCauseWait = kRootCauseWait;
    MEGA_ASSIGN_OR_RETURN(world, GlooWorld::connect(gloo, ranks->store()));
    std::vector<int> numbers(static_cast<size_t>(options.launch.worldSize));
    std::iota(numbers.begin(), numbers.end(), 0);
    MEGA_ASSIGN_OR_RETURN(all, world->createGroup("all", numbers));
    ranks->setFailureCallback(
        [this](const RankFailure &failure) { world->abort(failure.status()); });
    MEGA_ASSIGN_OR_RETURN(RankSeat seat, takeSeat(plan, *world, rank));
    seats.push_back(std::move(seat));
    return Status::ok();
  }
  /// Nothing is called back any more.
  void letGo() {
    ranks->setFailureCallback({});
    ranks->setStateProvider({});
  }

  int rank = 0;
  std::unique_ptr<RendezvousServer> server;
  std::unique_ptr<Rendezvous> ranks;
  std::unique_ptr<GlooWorld> world;
  std::unique_ptr<Communicator> all;
};

} // namespace

StatusOr<std::unique_ptr<RankWorld>>
joinProcesses(const LoadedPlan &plan, const ProcessWorldOptions &options) {
  const int64_t wanted = meshOf(plan.root()).ranks();
  if (wanted != options.launch.worldSize) {
    return usageError("the plan has {} ranks, {} has started {}: start as many "
                      "processes as the plan has ranks",
                      wanted, name(options.launch.launcher),
                      options.launch.worldSize);
  }
  auto world = std::make_unique<ProcessWorld>();
  MEGA_RETURN_IF_ERROR(world->open(plan, options));
  return std::unique_ptr<RankWorld>(std::move(world));
}

} // namespace mega
