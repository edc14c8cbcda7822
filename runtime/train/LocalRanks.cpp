#include "runtime/train/LocalRanks.h"

#include "runtime/core/Denormals.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/plan/PlanLayouts.h"

#include <algorithm>

namespace mega {

LocalRanks::LocalRanks(LocalRankOptions given) : options(std::move(given)) {
  for (RankSeat &seat : options.seats) {
    ranks.push_back(std::make_unique<Rank>());
    ranks.back()->seat = std::move(seat);
  }
}

LocalRanks::~LocalRanks() {
  stopping.store(true, std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_release);
  generation.notify_all();
  for (const auto &rank : ranks) {
    if (rank->thread.joinable()) {
      rank->thread.join();
    }
  }
}

StatusOr<std::unique_ptr<LocalRanks>>
LocalRanks::create(const LoadedPlan &plan, LocalRankOptions options) {
  std::vector<int64_t> stages;
  for (const RankSeat &seat : options.seats) {
    stages.push_back(meshOf(plan.root()).coordinate(seat.rank, Axis::Pp));
  }
  MEGA_RETURN_IF_ERROR(
      Memory::checkAvailable(plan.root(), stages, availableMemory()));
  std::unique_ptr<LocalRanks> ranks(new LocalRanks(std::move(options)));
  MEGA_RETURN_IF_ERROR(ranks->start(plan));
  return ranks;
}

Status LocalRanks::start(const LoadedPlan &plan) {
  const Mesh mesh = meshOf(plan.root());
  const auto groups = elements(plan.root().groups());
  for (const auto &rank : ranks) {
    for (size_t g = 0; g < groups.size(); ++g) {
      const GroupPlace place = placeIn(groups[g], mesh, rank->seat.rank);
      rank->members.push_back(
          {rank->seat.groups[g].get(), place.place, place.size});
    }
  }
  for (size_t i = 1; i < ranks.size(); ++i) {
    ranks[i]->thread = std::thread([this, i] { work(*ranks[i]); });
  }
  const int all = std::max(options.threads, static_cast<int>(ranks.size()));
  auto create = [&](Rank &rank) -> Status {
    const int count = static_cast<int>(ranks.size());
    const auto index = static_cast<int>(
        std::find_if(ranks.begin(), ranks.end(),
                     [&](const auto &each) { return each.get() == &rank; }) -
        ranks.begin());
    // The first ranks have what does not divide.
    rank.pool =
        std::make_unique<ThreadPool>(all / count + (index < all % count));
    warmUpGemm(*rank.pool);
    MEGA_ASSIGN_OR_RETURN(rank.executor,
                          Executor::create(plan, options.kernels, *rank.pool,
                                           {rank.seat.rank, rank.members},
                                           std::nullopt));
    return Status::ok();
  };
  return runOnAll(create);
}

uint64_t LocalRanks::bytes() const {
  uint64_t bytes = 0;
  for (const auto &rank : ranks) {
    bytes += rank->executor->memory().bytes();
  }
  return bytes;
}

RankState LocalRanks::state() const {
  const RankPosition position = first().position();
  return {static_cast<int>(position.stage),
          step_.load(std::memory_order_relaxed), position.action, -1, ""};
}

Status LocalRanks::runErased(void *newClosure, RankFunction newFunction) {
  if (!failure) {
    closure = newClosure;
    function = newFunction;
    pending.store(static_cast<uint32_t>(ranks.size() - 1),
                  std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
    runRank(*ranks[0]);
    for (uint32_t left = pending.load(std::memory_order_acquire); left != 0;
         left = pending.load(std::memory_order_acquire)) {
      pending.wait(left, std::memory_order_acquire);
    }
  }
  return failure ? failure->status() : Status::ok();
}

void LocalRanks::runRank(Rank &rank) {
  const Status status = function(closure, rank);
  if (status.isOk()) {
    return;
  }
  RankFailure mine;
  mine.rank = static_cast<int>(rank.seat.rank);
  if (rank.executor) {
    const RankPosition position = rank.executor->position();
    mine.stage = static_cast<int>(position.stage);
    mine.action = position.action;
  }
  mine.step = step_.load(std::memory_order_relaxed);
  mine.code = status.code();
  mine.message = status.message();
  const std::scoped_lock lock(mutex);
  if (!failure) {
    failure = options.fail(mine);
  }
}

void LocalRanks::work(Rank &rank) {
  flushDenormals();
  for (uint32_t seen = 0;;) {
    generation.wait(seen, std::memory_order_acquire);
    seen = generation.load(std::memory_order_acquire);
    if (stopping.load(std::memory_order_relaxed)) {
      return;
    }
    runRank(rank);
    if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      pending.notify_one();
    }
  }
}

} // namespace mega
