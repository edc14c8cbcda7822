// Sends and receives: preposted, out of step, in both directions at once.
#include "test/runtime/comm/Ranks.h"

using namespace mega;
using namespace mega::test;

namespace {

class Transfers : public testing::TestWithParam<Backend> {};

INSTANTIATE_TEST_SUITE_P(All, Transfers, testing::ValuesIn(backends()),
                         [](const auto &info) { return name(info.param); });

Transfer ok(StatusOr<Transfer> transfer) {
  EXPECT_TRUE(transfer.isOk()) << transfer.status().message();
  return transfer.isOk() ? *transfer : Transfer();
}

/// A pipeline: activations go up, gradients come down, receives are posted
/// before they are needed and sends waited for late.
TEST_P(Transfers, PipelineWithPrepostedReceives) {
  constexpr int kStages = 4;
  constexpr int kMicroBatches = 12;
  for (const int64_t count :
       {int64_t(0), int64_t(1), int64_t(333), int64_t(30011)}) {
    runRanks(GetParam(), kStages, [&](RankContext &context) {
      Communicator &all = context[0];
      const int stage = context.rank;
      std::vector<std::vector<float>> in(kMicroBatches), out(kMicroBatches);
      std::vector<Transfer> receives, sends;
      for (int m = 0; m < kMicroBatches; ++m) {
        in[m].resize(count);
        if (stage > 0) {
          receives.push_back(ok(
              all.postReceive(in[m].data(), count, DataType::F32, stage - 1)));
        }
      }
      for (int m = 0; m < kMicroBatches; ++m) {
        if (stage > 0) {
          EXPECT_OK(all.wait(receives[m]));
          EXPECT_EQ(in[m], samples<float>(m, stage - 1, count));
        }
        out[m] = samples<float>(m, stage, count);
        if (stage + 1 < kStages) {
          sends.push_back(
              ok(all.postSend(out[m].data(), count, DataType::F32, stage + 1)));
        }
      }
      for (const Transfer send : sends) {
        EXPECT_OK(all.wait(send));
      }
    });
  }
}

/// Both directions of a pair at once, sends posted first: no order deadlocks.
TEST_P(Transfers, ExchangeInBothDirections) {
  runRanks(GetParam(), 2, [&](RankContext &context) {
    Communicator &all = context[0];
    const int peer = 1 - context.rank;
    for (int round = 0; round < 20; ++round) {
      const int64_t count = 1 + round * 997;
      const auto out = samples<int64_t>(round, context.rank, count);
      std::vector<int64_t> in(count);
      const Transfer send =
          ok(all.postSend(out.data(), count, DataType::I64, peer));
      const Transfer receive =
          ok(all.postReceive(in.data(), count, DataType::I64, peer));
      EXPECT_OK(all.wait(round % 2 == 0 ? send : receive));
      EXPECT_OK(all.wait(round % 2 == 0 ? receive : send));
      EXPECT_EQ(in, samples<int64_t>(round, peer, count));
    }
  });
}

TEST_P(Transfers, EveryMessageMeetsItsOwnReceive) {
  constexpr int kRanks = 3;
  constexpr int kEach = 30;
  runRanks(GetParam(), kRanks, [&](RankContext &context) {
    Communicator &all = context[0];
    std::vector<Transfer> transfers;
    std::vector<int32_t> out(kRanks * kEach), in(kRanks * kEach, -1);
    for (int i = 0; i < kEach; ++i) {
      for (int peer = 0; peer < kRanks; ++peer) {
        if (peer == context.rank) {
          continue;
        }
        int32_t &value = out[peer * kEach + i];
        value = context.rank * 1000 + peer * 100 + i;
        transfers.push_back(
            ok(all.postReceive(&in[peer * kEach + i], 1, DataType::I32, peer)));
        transfers.push_back(ok(all.postSend(&value, 1, DataType::I32, peer)));
      }
    }
    // Waited for in another order than posted.
    for (auto each = transfers.rbegin(); each != transfers.rend(); ++each) {
      EXPECT_OK(all.wait(*each));
    }
    for (int peer = 0; peer < kRanks; ++peer) {
      for (int i = 0; peer != context.rank && i < kEach; ++i) {
        EXPECT_EQ(in[peer * kEach + i], peer * 1000 + context.rank * 100 + i);
      }
    }
  });
}

TEST_P(Transfers, WaitingTwiceAndTooManyAreErrors) {
  CommunicatorOptions options;
  options.maxTransfers = 4;
  runRanks(GetParam(), 2, {}, options, [&](RankContext &context) {
    Communicator &all = context[0];
    int32_t value[5] = {};
    std::vector<Transfer> transfers;
    const auto post = [&](int i) {
      return context.rank == 0
                 ? all.postSend(&value[i], 1, DataType::I32, 1)
                 : all.postReceive(&value[i], 1, DataType::I32, 0);
    };
    for (int i = 0; i < 4; ++i) {
      transfers.push_back(ok(post(i)));
    }
    const auto fifth = post(4);
    ASSERT_FALSE(fifth.isOk());
    EXPECT_EQ(fifth.status().code(), Code::Internal);
    EXPECT_NE(fifth.status().message().find("4 transfers"), std::string::npos)
        << fifth.status().message();
    for (const Transfer transfer : transfers) {
      EXPECT_OK(all.wait(transfer));
    }
    const Status twice = all.wait(transfers[0]);
    EXPECT_EQ(twice.code(), Code::Internal);
    EXPECT_NE(twice.message().find("twice"), std::string::npos);
    // Neither is a failure of the world.
    EXPECT_OK(all.wait(ok(post(0))));
    EXPECT_OK(all.barrier());
  });
}

} // namespace
