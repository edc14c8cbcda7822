#include "test/runtime/comm/Ranks.h"

#include "runtime/comm/GlooWorld.h"
#include "runtime/comm/InProcessWorld.h"

#include <barrier>
#include <mutex>
#include <thread>

namespace mega::test {
namespace {

std::vector<Group> withAll(int ranks, const std::vector<Group> &more) {
  std::vector<Group> groups = {{"all", {}}};
  for (int rank = 0; rank < ranks; ++rank) {
    groups[0].ranks.push_back(rank);
  }
  groups.insert(groups.end(), more.begin(), more.end());
  return groups;
}

void runInProcess(int ranks, const std::vector<Group> &groups,
                  const CommunicatorOptions &options,
                  const std::function<void(RankContext &)> &body) {
  const auto world = InProcessWorld::create(ranks, options);
  std::vector<RankContext> contexts(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    contexts[rank].rank = rank;
    contexts[rank].groups.resize(groups.size());
    contexts[rank].abortAll = [&](const Status &cause) { world->abort(cause); };
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    auto ends = world->createGroup(groups[i].name, groups[i].ranks);
    ASSERT_TRUE(ends.isOk()) << ends.status().message();
    for (size_t member = 0; member < groups[i].ranks.size(); ++member) {
      contexts[groups[i].ranks[member]].groups[i] = std::move((*ends)[member]);
    }
  }
  std::vector<std::jthread> threads;
  for (RankContext &context : contexts) {
    threads.emplace_back([&] { body(context); });
  }
}

void runGloo(int ranks, const std::vector<Group> &groups,
             const CommunicatorOptions &options,
             const std::function<void(RankContext &)> &body) {
  LocalStore store;
  std::barrier everyone(ranks);
  std::mutex mutex;
  std::vector<GlooWorld *> worlds(ranks);
  const auto abortAll = [&](const Status &cause) {
    const std::scoped_lock lock(mutex);
    for (GlooWorld *world : worlds) {
      if (world != nullptr) {
        world->abort(cause);
      }
    }
  };
  const auto runRank = [&](int rank) {
    GlooOptions glooOptions = {options};
    glooOptions.rank = rank;
    glooOptions.size = ranks;
    glooOptions.rootCauseWait = std::chrono::seconds(1);
    glooOptions.onFailure = abortAll;
    RankContext context = {rank, {}, abortAll};
    auto world = GlooWorld::connect(glooOptions, store);
    EXPECT_TRUE(world.isOk()) << world.status().message();
    if (world.isOk()) {
      {
        const std::scoped_lock lock(mutex);
        worlds[rank] = (*world).get();
      }
      for (const Group &group : groups) {
        auto member = (*world)->createGroup(group.name, group.ranks);
        EXPECT_TRUE(member.isOk()) << member.status().message();
        context.groups.emplace_back();
        if (member.isOk()) {
          context.groups.back() = std::move(member).take();
        }
      }
      everyone.arrive_and_wait();
      if (context.groups[0] != nullptr) {
        body(context);
      }
    } else {
      everyone.arrive_and_wait();
    }
    everyone.arrive_and_wait();
    const std::scoped_lock lock(mutex);
    worlds[rank] = nullptr;
  };
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(runRank, rank);
  }
}

} // namespace

void runRanks(Backend backend, int ranks, const std::vector<Group> &more,
              const CommunicatorOptions &options,
              const std::function<void(RankContext &)> &body) {
  const std::vector<Group> groups = withAll(ranks, more);
  if (backend == Backend::InProcess) {
    runInProcess(ranks, groups, options, body);
  } else {
    runGloo(ranks, groups, options, body);
  }
}

} // namespace mega::test
