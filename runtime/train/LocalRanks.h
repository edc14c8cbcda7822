//===- LocalRanks.h - The ranks that this process runs ----------*- C++ -*-===//
//
// Either all ranks of a plan, as threads, or one of them, whose peers are other
// processes. Each rank has a thread, which computes with a pool of helpers of
// its own, planned memory of its own and an executor. The first local rank's
// thread is the one that calls.
//
//   run(body)    caller     body(first rank)   wait
//                thread 1   body(next rank)      |
//                ...                             done, or the first failure
//
// Between runs the other ranks sleep on a futex. The first rank that fails
// says so to all ranks (`fail`), which gets those out of their communicators
// that wait for it; the root cause is what run() returns, now and from then on.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TRAIN_LOCALRANKS_H
#define MEGA_RUNTIME_TRAIN_LOCALRANKS_H

#include "runtime/comm/Communicator.h"
#include "runtime/core/Executor.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/launch/RankFailure.h"

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mega {

/// A rank and its ends of the plan's groups, by number; null in groups of one.
struct RankSeat {
  int64_t rank = 0;
  std::vector<std::unique_ptr<Communicator>> groups;
};

/// Who to be, and how.
struct LocalRankOptions {
  /// In ascending order.
  std::vector<RankSeat> seats;
  /// Threads of all local ranks together; each has one at least.
  int threads = 1;
  KernelLookup kernels = nullptr;
  /// Fails the communicators of all ranks and returns the root cause; any
  /// thread.
  std::function<RankFailure(const RankFailure &)> fail =
      [](const RankFailure &mine) { return mine; };
};

class LocalRanks {
public:
  /// Starts the threads and allocates the memory of all ranks.
  /// Code::Unavailable before anything is allocated if that is not there.
  static StatusOr<std::unique_ptr<LocalRanks>> create(const LoadedPlan &plan,
                                                      LocalRankOptions options);
  ~LocalRanks();

  size_t size() const { return ranks.size(); }
  Executor &executor(size_t index) const { return *ranks[index]->executor; }
  /// Of the first rank, for what all ranks agree on.
  Executor &first() const { return executor(0); }
  const Mesh &mesh() const { return first().mesh(); }
  /// Planned bytes of all local ranks.
  uint64_t bytes() const;

  /// Calls body(executor), which returns a Status, for every rank on its
  /// thread; all at once. Allocates nothing unless a rank fails. By the thread
  /// that created the ranks.
  template <typename Body> Status run(Body &&body) {
    auto onRank = [&](Rank &rank) { return body(*rank.executor); };
    return runOnAll(onRank);
  }

  /// Of the step that is under way, from 1, for failures.
  void setStep(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  /// Where the first rank is, from any thread.
  RankState state() const;

private:
  struct Rank {
    RankSeat seat;
    std::vector<GroupMember> members;
    std::unique_ptr<ThreadPool> pool;
    std::unique_ptr<Executor> executor;
    std::thread thread;
  };
  using RankFunction = Status (*)(void *closure, Rank &rank);

  explicit LocalRanks(LocalRankOptions options);
  Status start(const LoadedPlan &plan);
  template <typename OnRank> Status runOnAll(OnRank &onRank) {
    return runErased(&onRank, [](void *closure, Rank &rank) {
      return (*static_cast<OnRank *>(closure))(rank);
    });
  }
  Status runErased(void *closure, RankFunction function);
  void runRank(Rank &rank);
  void work(Rank &rank);

  LocalRankOptions options;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::atomic<int64_t> step_{-1};

  // The run in progress. `generation` wakes the ranks' threads; `pending`
  // counts those that are not done.
  void *closure = nullptr;
  RankFunction function = nullptr;
  std::atomic<uint32_t> generation{0};
  std::atomic<uint32_t> pending{0};
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::optional<RankFailure> failure;
};

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_LOCALRANKS_H
