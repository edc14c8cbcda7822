// Random schedules over many interleaved groups: no deadlock, and the same bits
// from every implementation.
#include "test/runtime/Exhaustive.h"
#include "test/runtime/comm/Ranks.h"

#include <random>

using namespace mega;
using namespace mega::test;

namespace {

struct Step {
  OperationKind kind;
  size_t group;
  int64_t count;
  Reduction reduction;
  DataType type;
  /// Group ranks: root, or sender and receiver.
  int from, to;
  /// Transfers: the step before which both wait.
  size_t waitAt;
};

const std::vector<Group> kGroups = {{"tp0", {0, 1}},
                                    {"tp1", {2, 3}},
                                    {"dp0", {0, 2}},
                                    {"dp1", {3, 1}},
                                    {"most", {3, 0, 1}}};
constexpr int kRanks = 4;

const std::vector<int> &ranksOf(size_t group) {
  static const std::vector<int> all = {0, 1, 2, 3};
  return group == 0 ? all : kGroups[group - 1].ranks;
}

std::vector<Step> makeSchedule(uint32_t seed, size_t steps) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  std::vector<Step> schedule;
  for (size_t i = 0; i < steps; ++i) {
    Step step = {};
    step.group = below(static_cast<int>(kGroups.size()) + 1);
    const int size = static_cast<int>(ranksOf(step.group).size());
    constexpr int64_t counts[] = {0, 1, 17, 1000, 2049, 9000, 33333};
    step.kind = static_cast<OperationKind>(below(7));
    step.count = counts[below(7)];
    step.reduction = static_cast<Reduction>(below(3));
    step.type = static_cast<DataType>(below(kDataTypeCount));
    step.from = below(size);
    step.to = (step.from + 1 + below(size - 1)) % size;
    step.waitAt = i + 1 + below(10);
    schedule.push_back(step);
  }
  return schedule;
}

/// FNV-1a over what a rank has received.
struct Digest {
  uint64_t state = 0xCBF29CE484222325u;
  void add(const std::vector<std::byte> &bytes) {
    for (const std::byte byte : bytes) {
      state = (state ^ std::to_integer<uint64_t>(byte)) * 0x100000001B3u;
    }
  }
};

std::vector<std::byte> bytesOf(DataType type, uint64_t seed, int rank,
                               int64_t count) {
  const auto copy = [&](const auto &values) {
    std::vector<std::byte> bytes(values.size() * sizeof(values[0]));
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    return bytes;
  };
  switch (type) {
  case DataType::F32:
    return copy(samples<float>(seed, rank, count));
  case DataType::BF16:
    return copy(samples<BFloat16>(seed, rank, count));
  case DataType::F64:
    return copy(samples<double>(seed, rank, count));
  case DataType::I32:
    return copy(samples<int32_t>(seed, rank, count));
  case DataType::I64:
    return copy(samples<int64_t>(seed, rank, count));
  }
  return {};
}

uint64_t runSchedule(const std::vector<Step> &schedule,
                     const RankContext &context) {
  struct Pending {
    size_t waitAt;
    Communicator *communicator;
    Transfer transfer;
    std::vector<std::byte> data;
    bool isReceive;
  };
  std::vector<Pending> pending;
  Digest digest;
  const auto waitUntil = [&](size_t step) {
    for (Pending &each : pending) {
      if (each.communicator != nullptr && each.waitAt <= step) {
        EXPECT_OK(each.communicator->wait(each.transfer));
        each.communicator = nullptr;
        if (each.isReceive) {
          digest.add(each.data);
        }
      }
    }
  };
  for (size_t i = 0; i < schedule.size(); ++i) {
    waitUntil(i);
    const Step &step = schedule[i];
    Communicator *group = context.groups[step.group].get();
    if (group == nullptr) {
      continue;
    }
    const int size = group->size();
    std::vector<std::byte> send =
        bytesOf(step.type, i, context.rank, size * step.count);
    std::vector<std::byte> receive(size * step.count * byteSize(step.type));
    switch (step.kind) {
    case OperationKind::AllReduce:
      EXPECT_OK(group->allReduce(send.data(), receive.data(), step.count,
                                 step.type, step.reduction));
      break;
    case OperationKind::ReduceScatter:
      EXPECT_OK(group->reduceScatter(send.data(), receive.data(), step.count,
                                     step.type, step.reduction));
      break;
    case OperationKind::AllGather:
      EXPECT_OK(
          group->allGather(send.data(), receive.data(), step.count, step.type));
      break;
    case OperationKind::AllToAll:
      EXPECT_OK(
          group->allToAll(send.data(), receive.data(), step.count, step.type));
      break;
    case OperationKind::Broadcast:
      receive = send;
      EXPECT_OK(
          group->broadcast(receive.data(), step.count, step.type, step.from));
      break;
    case OperationKind::Barrier:
      EXPECT_OK(group->barrier());
      break;
    default: {
      const bool sends = group->rank() == step.from;
      if (!sends && group->rank() != step.to) {
        break;
      }
      std::vector<std::byte> &data = sends ? send : receive;
      auto transfer =
          sends ? group->postSend(data.data(), step.count, step.type, step.to)
                : group->postReceive(data.data(), step.count, step.type,
                                     step.from);
      EXPECT_TRUE(transfer.isOk()) << transfer.status().message();
      if (transfer.isOk()) {
        pending.push_back(
            {step.waitAt, group, *transfer, std::move(data), !sends});
      }
      receive.clear();
      break;
    }
    }
    digest.add(receive);
  }
  waitUntil(schedule.size() + 100);
  return digest.state;
}

TEST(Schedules, RandomOnesGiveTheSameBitsEverywhere) {
  const int seeds = sweep(6, 60);
  for (int seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Step> schedule = makeSchedule(seed, sweep(60, 300));
    std::vector<std::vector<uint64_t>> digests;
    for (const Backend backend : backends()) {
      std::vector<uint64_t> digest(kRanks);
      runRanks(backend, kRanks, kGroups, {}, [&](RankContext &context) {
        digest[context.rank] = runSchedule(schedule, context);
      });
      digests.push_back(digest);
    }
    EXPECT_EQ(digests.front(), digests.back());
    EXPECT_NE(digests[0][0], digests[0][3]);
  }
}

} // namespace
