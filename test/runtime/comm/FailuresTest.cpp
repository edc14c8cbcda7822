// Mismatches, time limits, abort: named errors on every rank, and no hang.
#include "test/runtime/comm/Ranks.h"

#include <atomic>
#include <latch>
#include <thread>

using namespace mega;
using namespace mega::test;
using testing::ValuesIn;
using namespace std::chrono_literals;

namespace {

class Failures : public testing::TestWithParam<Backend> {};

INSTANTIATE_TEST_SUITE_P(All, Failures, ValuesIn(backends()),
                         [](const auto &info) { return name(info.param); });

void expectError(const Status &status, Code code,
                 const std::vector<std::string> &parts) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string &part : parts) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "\"" << part << "\" is not in: " << status.message();
  }
}

struct Buffers {
  std::vector<float> send = std::vector<float>(60000, 1);
  std::vector<float> receive = std::vector<float>(60000);
};
using Call = std::function<Status(Communicator &, Buffers &)>;

Call reduceOf(int64_t count, DataType type = DataType::F32,
              Reduction reduction = Reduction::Sum) {
  return [=](Communicator &all, Buffers &data) {
    return all.allReduce(data.send.data(), data.receive.data(), count, type,
                         reduction);
  };
}
Call broadcastOf(int root) {
  return [=](Communicator &all, Buffers &data) {
    return all.broadcast(data.send.data(), 10, DataType::F32, root);
  };
}

struct Mismatch {
  const char *name;
  Call most, one;
  std::vector<std::string> parts;
};

TEST_P(Failures, MismatchIsNamedOnAllRanks) {
  const std::vector<Mismatch> cases = {
      {"count", reduceOf(10), reduceOf(12), {"10 x f32", "12 x f32"}},
      {"small and large",
       reduceOf(10),
       reduceOf(50000),
       {"10 x f32", "50000 x f32"}},
      {"large", reduceOf(50000), reduceOf(50001), {"50000", "50001"}},
      {"type, same bytes",
       reduceOf(10),
       reduceOf(10, DataType::I32),
       {"sum of 10 x f32", "sum of 10 x i32"}},
      {"reduction",
       reduceOf(10),
       reduceOf(10, DataType::F32, Reduction::Max),
       {"sum of 10", "max of 10"}},
      {"root", broadcastOf(0), broadcastOf(1), {"from rank 0", "from rank 1"}},
      {"kind",
       [](Communicator &all, Buffers &) { return all.barrier(); },
       reduceOf(10),
       {"barrier()", "all_reduce(sum of 10 x f32)"}},
  };
  constexpr int kRanks = 3;
  for (const Mismatch &each : cases) {
    for (int odd = 0; odd < kRanks; ++odd) {
      SCOPED_TRACE(each.name);
      runRanks(GetParam(), kRanks, [&](RankContext &context) {
        Communicator &all = context[0];
        Buffers data;
        std::vector<std::string> parts = each.parts;
        parts.emplace_back("group \"all\"");
        parts.push_back(fmt::format("rank {} calls", odd));
        expectError((context.rank == odd ? each.one : each.most)(all, data),
                    Code::Internal, parts);
        // The world has failed: every later call says so at once.
        expectError(all.barrier(), Code::Internal, parts);
        EXPECT_FALSE(all.postSend(data.send.data(), 1, DataType::F32,
                                  (context.rank + 1) % kRanks)
                         .isOk());
      });
    }
  }
}

TEST_P(Failures, TransferMismatchIsNamedOnAllRanks) {
  runRanks(GetParam(), 3, [&](RankContext &context) {
    Communicator &all = context[0];
    float data[8] = {};
    Status status;
    if (context.rank == 2) {
      status = all.barrier();
    } else {
      auto transfer = context.rank == 0
                          ? all.postSend(data, 5, DataType::F32, 1)
                          : all.postReceive(data, 7, DataType::F32, 0);
      status = transfer.isOk() ? all.wait(*transfer)
                               : std::move(transfer).takeStatus();
    }
    expectError(status, Code::Internal,
                {"rank 0 calls send(5 x f32 to rank 1)",
                 "rank 1 calls receive(7 x f32 from rank 0)"});
  });
}

TEST_P(Failures, WhoDoesNotComeIsNamed) {
  CommunicatorOptions options;
  options.timeLimit = 300ms;
  for (const int64_t count : {int64_t(1), int64_t(50000)}) {
    std::latch over(2);
    runRanks(GetParam(), 4, {}, options, [&](RankContext &context) {
      if (context.rank == 1 || context.rank == 3) {
        over.wait();
        return;
      }
      Buffers data;
      const auto start = std::chrono::steady_clock::now();
      const Status status = reduceOf(count)(context[0], data);
      const auto elapsed = std::chrono::steady_clock::now() - start;
      expectError(status, Code::Unavailable,
                  {"all_reduce", "ranks 1 and 3 have not come within 0.3 s"});
      EXPECT_LT(elapsed, 300ms + 2s);
      over.count_down();
    });
  }
}

TEST_P(Failures, ATransferThatNobodyMeetsIsNamed) {
  CommunicatorOptions options;
  options.timeLimit = 300ms;
  for (const bool sends : {true, false}) {
    std::latch over(1);
    runRanks(GetParam(), 2, {}, options, [&](RankContext &context) {
      if (context.rank == 1) {
        over.wait();
        return;
      }
      float value = 0;
      auto transfer = sends
                          ? context[0].postSend(&value, 1, DataType::F32, 1)
                          : context[0].postReceive(&value, 1, DataType::F32, 1);
      ASSERT_TRUE(transfer.isOk());
      expectError(context[0].wait(*transfer), Code::Unavailable,
                  {sends ? "rank 1 has not received within 0.3 s"
                         : "rank 1 has not sent within 0.3 s"});
      over.count_down();
    });
  }
}

/// One rank blocked in each kind of call, of two groups; then abort.
TEST_P(Failures, AbortWakesEveryoneAndStays) {
  const std::vector<Group> groups = {{"pair", {2, 3}}};
  runRanks(GetParam(), 5, groups, {}, [&](RankContext &context) {
    Communicator &all = context[0];
    float value = 1;
    Status status;
    switch (context.rank) {
    case 0:
      context.abortAll(Status(Code::Unavailable, "rank 4 has died"));
      status = all.barrier();
      break;
    case 1:
      status = all.barrier();
      break;
    case 2: {
      auto transfer = context[1].postReceive(&value, 1, DataType::F32, 1);
      status = transfer.isOk() ? context[1].wait(*transfer)
                               : std::move(transfer).takeStatus();
      break;
    }
    case 3: {
      auto transfer = all.postSend(&value, 1, DataType::F32, 1);
      status = transfer.isOk() ? all.wait(*transfer)
                               : std::move(transfer).takeStatus();
      break;
    }
    default:
      status = all.allReduce(&value, &value, 1, DataType::F32);
      break;
    }
    expectError(status, Code::Unavailable, {"rank 4 has died"});
    for (int i = 0; i < 3; ++i) {
      expectError(all.barrier(), Code::Unavailable, {"rank 4 has died"});
    }
    // The first cause stays.
    all.abort(Status(Code::Failed, "something else"));
    expectError(all.barrier(), Code::Unavailable, {"rank 4 has died"});
  });
}

/// abort() against operations in full swing, in memory that is freed right
/// after: what the address and thread sanitizers are for.
TEST_P(Failures, AbortInTheMiddleIsSafe) {
  const int rounds = GetParam() == Backend::InProcess ? 60 : 5;
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> operations{0};
    runRanks(GetParam(), 4, [&](RankContext &context) {
      while (true) {
        auto data = std::make_unique<Buffers>();
        const Status status =
            context[0].allReduce(data->send.data(), data->receive.data(),
                                 round % 2 == 0 ? 50000 : 100, DataType::F32);
        if (!status.isOk()) {
          expectError(status, Code::Failed, {"stop"});
          return;
        }
        if (++operations == 3 + round) {
          context.abortAll(Status(Code::Failed, "stop"));
        }
      }
    });
  }
}

TEST_P(Failures, WrongArgumentsAreRefused) {
  runRanks(GetParam(), 2, [&](RankContext &context) {
    Communicator &all = context[0];
    float value = 0;
    expectError(all.allReduce(&value, &value, -1, DataType::F32),
                Code::Internal, {"count -1"});
    expectError(all.allReduce(&value, &value, 1, DataType::F32, Reduction::Or),
                Code::Internal, {"f32 has no `or`"});
    expectError(all.broadcast(&value, 1, DataType::F32, 2), Code::Internal,
                {"group rank 2 is not in 0 .. 1"});
    expectError(all.postSend(&value, 1, DataType::F32, context.rank).status(),
                Code::Internal, {"with itself"});
    // None of them counted as an operation.
    EXPECT_OK(all.barrier());
  });
}

} // namespace
