// Ranks that are processes: killed, stopped, and on hosts of their own.
#include "test/runtime/launch/Processes.h"

#include <gmock/gmock.h>

#include <thread>

using namespace mega;
using namespace mega::test;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

/// Everybody sums until someone fails.
Status sumForever(Communicator &all, const std::function<void()> &underWay) {
  std::vector<float> data(50000, 1);
  for (int step = 0;; ++step) {
    MEGA_RETURN_IF_ERROR(
        all.allReduce(data.data(), data.data(), 50000, DataType::F32));
    std::fill(data.begin(), data.end(), 1.0f);
    if (step == 3) {
      underWay();
    }
  }
}

Status sumOnce(Communicator &all, const std::function<void()> &) {
  for (const int64_t count : {int64_t(1), int64_t(100001)}) {
    std::vector<float> data(count, 1.5f + float(all.rank()));
    MEGA_RETURN_IF_ERROR(
        all.allReduce(data.data(), data.data(), count, DataType::F32));
    float wanted = 1.5f;
    for (int rank = 1; rank < all.size(); ++rank) {
      wanted += 1.5f + float(rank);
    }
    if (data.front() != wanted || data.back() != wanted) {
      return makeError(Code::Internal, "{} instead of {}", data.front(),
                       wanted);
    }
  }
  return Status::ok();
}

TEST(Processes, SumAndLeave) {
  Processes processes(4, {});
  processes.start(sumOnce);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(processes.end(rank), "ok") << rank;
  }
}

class Killed : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Rank, Killed, testing::Values(0, 2));

TEST_P(Killed, TheOthersNameItWithinTwoSeconds) {
  const int victim = GetParam();
  Processes processes(4, {});
  processes.start(sumForever);
  processes.waitUntilUnderWay();
  // Pings, which say where rank 0 is, are a second apart.
  std::this_thread::sleep_for(1500ms);
  const auto killed = std::chrono::steady_clock::now();
  processes.signal(victim, SIGKILL);
  for (int rank = 0; rank < 4; ++rank) {
    if (rank != victim) {
      EXPECT_THAT(
          processes.end(rank),
          AllOf(StartsWith(fmt::format(
                    "69 rank {} (stage {}, step 7): ", victim, victim / 2)),
                HasSubstr("connection"), HasSubstr("lost")))
          << "rank " << rank;
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - killed, 2s);
}

TEST(Stopped, HeartbeatNamesIt) {
  ProcessOptions options;
  options.limits.heartbeat = 1s;
  options.timeLimit = 1min;
  Processes processes(4, options);
  processes.start(sumForever);
  processes.waitUntilUnderWay();
  // Where a rank is, it says four times in this limit.
  std::this_thread::sleep_for(600ms);
  const auto stopped = std::chrono::steady_clock::now();
  processes.signal(2, SIGSTOP);
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(processes.end(rank),
                AllOf(StartsWith("69 rank 2 (stage 1, step 7): "),
                      HasSubstr("has not been heard of for 1 s")))
        << "rank " << rank;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, 1s + 2s);
}

TEST(Stopped, TheTimeLimitNamesIt) {
  ProcessOptions options;
  options.limits.heartbeat = 1min;
  options.timeLimit = 1s;
  Processes processes(4, options);
  processes.start(sumForever);
  processes.waitUntilUnderWay();
  const auto stopped = std::chrono::steady_clock::now();
  processes.signal(2, SIGSTOP);
  for (const int rank : {0, 1, 3}) {
    // Whoever finds it may be ahead of, and so blame, another victim.
    EXPECT_THAT(processes.end(rank),
                AllOf(StartsWith("69 rank 2 (stage 1, step 7): it does not "
                                 "answer: the process is stopped"),
                      HasSubstr("not come within 1 s")))
        << "rank " << rank;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, 1s + 2s);
}

/// A pipeline in which the last stage waits longest, and only for a victim.
TEST(Stopped, TheCulpritIsNamedAcrossVictims) {
  ProcessOptions options;
  options.timeLimit = 1s;
  Processes processes(3, options);
  processes.start([](Communicator &all, const std::function<void()> &ready) {
    float value = 0;
    const int stage = all.rank();
    ready();
    if (stage == 0) { // Alive, but it never sends.
      std::this_thread::sleep_for(1min);
    }
    MEGA_ASSIGN_OR_RETURN(const Transfer transfer,
                          all.postReceive(&value, 1, DataType::F32, stage - 1));
    return all.wait(transfer);
  });
  processes.waitUntilUnderWay();
  for (const int rank : {1, 2}) {
    EXPECT_THAT(processes.end(rank),
                AllOf(StartsWith("69 rank 0 (stage 0, step 7): it waits for "
                                 "nobody and has not come"),
                      HasSubstr("has not sent within 1 s")))
        << "rank " << rank;
  }
}

TEST(Processes, AFailureOfOneIsReportedByAll) {
  Processes processes(3, {});
  processes.start([](Communicator &all, const std::function<void()> &ready) {
    return all.rank() == 1 ? Status(Code::BadInput, "cannot read data")
                           : sumForever(all, ready);
  });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(processes.end(rank), "65 rank 1: cannot read data");
  }
}

/// Four hosts of two ranks each, as network namespaces on one bridge.
TEST(Hosts, SumOverABridge) {
  const auto network = Network::create(4);
  if (network == nullptr) {
    GTEST_SKIP() << "needs root and iproute2 for network namespaces";
  }
  ProcessOptions options;
  options.host = network->address(0);
  options.enter = [&](int rank) { return network->enter(rank / 2); };
  Processes processes(8, options);
  processes.start(sumOnce);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(processes.end(rank), "ok") << rank;
  }
}

} // namespace
