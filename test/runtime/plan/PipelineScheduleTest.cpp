#include "runtime/plan/PipelineSchedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace mega;

namespace {

PipelineRequest interleaved(int64_t stages, int64_t chunks,
                            int64_t microBatches, int64_t groupSize = 0) {
  return {ScheduleKind::Interleaved, stages, chunks, microBatches, groupSize};
}

std::vector<std::vector<Step>> order(const PipelineRequest &request) {
  auto orders = orderOf(request);
  EXPECT_TRUE(orders.isOk()) << orders.status().message();
  return orders.isOk() ? std::move(orders).take()
                       : std::vector<std::vector<Step>>{};
}

std::string letter(Work work) {
  return work == Work::Forward ? "F" : work == Work::Backward ? "B" : "W";
}

/// "F0.0 F0.1 B0.0": work, chunk, micro-batch.
std::string text(const std::vector<Step> &steps) {
  std::string line;
  for (const Step &step : steps) {
    line += fmt::format("{}{}{}.{}", line.empty() ? "" : " ", letter(step.work),
                        step.chunk, step.microBatch);
  }
  return line;
}

/// Forwards before the first backward, per stage, less the one that the steady
/// state begins with.
std::vector<int64_t> warmUps(const PipelineRequest &request) {
  std::vector<int64_t> counts;
  const int64_t forwards = request.chunks * request.microBatches;
  for (const std::vector<Step> &steps : order(request)) {
    int64_t count = 0;
    while (steps[count].work == Work::Forward) {
      ++count;
    }
    counts.push_back(count == forwards ? count : count - 1);
  }
  return counts;
}

PipelineSchedule make(const PipelineRequest &request) {
  auto schedule = makeSchedule(request);
  EXPECT_TRUE(schedule.isOk()) << schedule.status().message();
  return schedule.isOk() ? std::move(schedule).take() : PipelineSchedule{};
}

std::string errorOf(const PipelineRequest &request) {
  const auto orders = orderOf(request);
  EXPECT_EQ(orders.status().code(), Code::Usage);
  return orders.status().message();
}

/// "recv F0.1 in 2; F0.0 slot 0 in 1": what a stage does, slots and buffers.
std::string text(const std::vector<ScheduleAction> &actions) {
  constexpr const char *kNames[] = {"", "recv ", "wait-recv ", "send ",
                                    "wait-send "};
  std::string line;
  for (const ScheduleAction &action : actions) {
    line += fmt::format("{}{}{}", line.empty() ? "" : "; ",
                        kNames[static_cast<int>(action.op)],
                        text(std::vector<Step>{
                            {action.work, action.chunk, action.microBatch}}));
    line += action.slot < 0 ? "" : fmt::format(" slot {}", action.slot);
    line += action.buffer < 0 ? "" : fmt::format(" in {}", action.buffer);
  }
  return line;
}

/// First and last run of every frame of a stage.
using Life = std::pair<size_t, size_t>;

std::vector<Life> framesOf(const std::vector<ScheduleAction> &actions,
                           Work last) {
  std::vector<Life> lives;
  for (size_t i = 0; i < actions.size(); ++i) {
    for (size_t j = i + 1; j < actions.size(); ++j) {
      const ScheduleAction &a = actions[i], &b = actions[j];
      if (a.op == ScheduleOp::Run && a.work == Work::Forward &&
          b.op == ScheduleOp::Run && b.work == last && a.chunk == b.chunk &&
          a.microBatch == b.microBatch) {
        lives.emplace_back(i, j);
      }
    }
  }
  return lives;
}

/// Whether the lives fit `count` slots, by trying every assignment.
bool fits(const std::vector<Life> &lives, std::vector<int32_t> &slots,
          int32_t count) {
  if (slots.size() == lives.size()) {
    return true;
  }
  const Life &life = lives[slots.size()];
  for (int32_t slot = 0; slot < count; ++slot) {
    bool free = true;
    for (size_t other = 0; other < slots.size(); ++other) {
      free &= slots[other] != slot || lives[other].second < life.first ||
              life.second < lives[other].first;
    }
    slots.push_back(slot);
    if (free && fits(lives, slots, count)) {
      return true;
    }
    slots.pop_back();
  }
  return false;
}

} // namespace

TEST(PipelineSchedule, PartsOfStages) {
  for (ScheduleKind kind :
       {ScheduleKind::Interleaved, ScheduleKind::ZeroBubble}) {
    const PipelineRequest request{kind, 3, 2, 6};
    for (int64_t stage = 0; stage < 3; ++stage) {
      for (int64_t chunk = 0; chunk < 2; ++chunk) {
        const int64_t part = partOf(request, stage, chunk);
        EXPECT_EQ(stageOf(request, part), stage);
        EXPECT_EQ(chunkOf(request, part), chunk);
      }
    }
  }
  EXPECT_EQ(partOf(interleaved(3, 2, 6), 1, 1), 4);
  EXPECT_EQ(partOf({ScheduleKind::ZeroBubble, 3, 2, 6}, 0, 1), 5);
  EXPECT_EQ(partOf({ScheduleKind::ZeroBubble, 3, 2, 6}, 2, 1), 3);
}

TEST(PipelineSchedule, GPipeOrder) {
  for (const auto &steps : order({ScheduleKind::GPipe, 3, 1, 3})) {
    EXPECT_EQ(text(steps), "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2");
  }
}

TEST(PipelineSchedule, OneForwardOneBackwardOrder) {
  const PipelineRequest request{ScheduleKind::OneForwardOneBackward, 3, 1, 4};
  const auto orders = order(request);
  EXPECT_EQ(text(orders[0]), "F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3");
  EXPECT_EQ(text(orders[1]), "F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 B0.3");
  EXPECT_EQ(text(orders[2]), "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3");
  EXPECT_EQ(warmUps({ScheduleKind::OneForwardOneBackward, 4, 1, 8}),
            (std::vector<int64_t>{3, 2, 1, 0}));
}

TEST(PipelineSchedule, FewerMicroBatchesThanStages) {
  const auto orders = order({ScheduleKind::OneForwardOneBackward, 4, 1, 2});
  EXPECT_EQ(text(orders[0]), "F0.0 F0.1 B0.0 B0.1");
  EXPECT_EQ(text(orders[1]), "F0.0 F0.1 B0.0 B0.1");
  EXPECT_EQ(text(orders[2]), "F0.0 F0.1 B0.0 B0.1");
  EXPECT_EQ(text(orders[3]), "F0.0 B0.0 F0.1 B0.1");
}

TEST(PipelineSchedule, InterleavedWarmUps) {
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(warmUps(interleaved(2, 2, 4, 2)), (Counts{4, 2}));
  EXPECT_EQ(warmUps(interleaved(4, 2, 8, 4)), (Counts{10, 8, 6, 4}));
  EXPECT_EQ(warmUps(interleaved(2, 2, 5, 3)), (Counts{5, 3}));
  EXPECT_EQ(warmUps(interleaved(4, 2, 4, 4)), (Counts{8, 8, 6, 4}));
  EXPECT_EQ(warmUps(interleaved(8, 4, 32, 8)),
            (Counts{38, 36, 34, 32, 30, 28, 26, 24}));
}

TEST(PipelineSchedule, InterleavedOrderOfTwoStages) {
  const auto orders = order(interleaved(2, 2, 4, 2));
  EXPECT_EQ(text(orders[0]), "F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 "
                             "B0.0 F1.3 B0.1 B1.2 B1.3 B0.2 B0.3");
  EXPECT_EQ(text(orders[1]), "F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 F0.2 B0.0 F0.3 "
                             "B0.1 F1.2 B1.2 F1.3 B1.3 B0.2 B0.3");
}

TEST(PipelineSchedule, InterleavedTableWithAShortGroup) {
  PipelineRequest request = interleaved(2, 2, 5, 3);
  request.train = false;
  EXPECT_EQ(text(order(request)[0]),
            "F0.0 F0.1 F0.2 F1.0 F1.1 F1.2 F0.3 F0.4 F1.3 F1.4");
  request.train = true;
  std::string backwards;
  const auto orders = order(request);
  for (const Step &step : orders[1]) {
    if (step.work == Work::Backward) {
      backwards += text({step}) + " ";
    }
  }
  EXPECT_EQ(backwards, "B1.0 B1.1 B1.2 B0.0 B0.1 B0.2 B1.3 B1.4 B0.3 B0.4 ");
}

TEST(PipelineSchedule, IllegalGroups) {
  EXPECT_EQ(errorOf(interleaved(4, 2, 3)),
            "an interleaved schedule of 4 stages cannot take 3 micro-batches "
            "(legal: 4 or more)");
  EXPECT_EQ(errorOf(interleaved(4, 2, 10)),
            "10 micro-batches cannot go through 4 stages in groups of 4, the "
            "number of stages (legal: 5, 6, 10)");
  EXPECT_EQ(errorOf(interleaved(2, 2, 4, 3)),
            "4 micro-batches cannot go through 2 stages in groups of 3 (legal: "
            "2, 4)");
  EXPECT_EQ(errorOf(interleaved(4, 2, 8, 2)),
            "8 micro-batches cannot go through 4 stages in groups of 2 (legal: "
            "4, 8)");
  EXPECT_NE(errorOf(interleaved(2, 2, 4, 8)).find("(legal: 2, 4)"),
            std::string::npos);
  EXPECT_NE(errorOf(interleaved(2, 2, 512, 513)).find("..."),
            std::string::npos);
}

TEST(PipelineSchedule, IllegalCounts) {
  using enum ScheduleKind;
  EXPECT_EQ(errorOf({GPipe, 0, 1, 4}),
            "a pipeline cannot have 0 stages (legal: 1 or more)");
  EXPECT_EQ(errorOf({GPipe, 2, 1, 0}),
            "a pipeline cannot have 0 micro-batches (legal: 1 or more)");
  EXPECT_EQ(errorOf({GPipe, 2, 2, 4}),
            "a GPipe schedule cannot have 2 chunks per stage (legal: 1)");
  EXPECT_EQ(errorOf({OneForwardOneBackward, 2, 3, 4}),
            "a 1F1B schedule cannot have 3 chunks per stage (legal: 1)");
  EXPECT_EQ(
      errorOf({Interleaved, 2, 1, 4}),
      "an interleaved schedule cannot have 1 chunk per stage (legal: 2 or "
      "more)");
  EXPECT_EQ(errorOf({ZeroBubble, 2, 4, 4}),
            "a zero-bubble schedule cannot have 4 chunks per stage (legal: 1, "
            "2)");
  EXPECT_NE(errorOf({GPipe, 2, 1, 4, 2}).find("only an interleaved schedule"),
            std::string::npos);
  EXPECT_NE(errorOf({GPipe, INT64_MAX, 1, INT64_MAX}).find("more than"),
            std::string::npos);
}

TEST(PipelineSchedule, FramesInFlight) {
  for (int64_t stages : {1, 2, 4, 8}) {
    for (int64_t m : {1, 3, 8, 20}) {
      const auto slots =
          make({ScheduleKind::OneForwardOneBackward, stages, 1, m}).slots;
      for (int64_t stage = 0; stage < stages; ++stage) {
        EXPECT_EQ(slots[stage], std::min(stages - stage, m));
      }
      for (int32_t count : make({ScheduleKind::GPipe, stages, 1, m}).slots) {
        EXPECT_EQ(count, m);
      }
      // As the first stage of 1F1B, on all stages; ZB-V in halves.
      for (int64_t chunks : {1, 2}) {
        for (int32_t count :
             make({ScheduleKind::ZeroBubble, stages, chunks, m}).slots) {
          EXPECT_LE(count, chunks * std::min(stages, m));
        }
      }
      for (ScheduleKind kind :
           {ScheduleKind::GPipe, ScheduleKind::ZeroBubble}) {
        EXPECT_EQ(make({kind, stages, 1, m, 0, false}).slots,
                  std::vector<int32_t>(stages, 1));
      }
    }
  }
}

TEST(PipelineSchedule, NoFewerSlotsWouldDo) {
  using enum ScheduleKind;
  for (const PipelineRequest &request :
       std::vector<PipelineRequest>{{GPipe, 2, 1, 4},
                                    {OneForwardOneBackward, 3, 1, 5},
                                    {Interleaved, 2, 2, 4},
                                    {Interleaved, 3, 2, 3},
                                    {Interleaved, 1, 3, 2},
                                    {ZeroBubble, 3, 1, 5},
                                    {ZeroBubble, 2, 2, 4}}) {
    const PipelineSchedule schedule = make(request);
    for (size_t stage = 0; stage < schedule.stages.size(); ++stage) {
      const auto lives =
          framesOf(schedule.stages[stage],
                   splitsWeight(request) ? Work::Weight : Work::Backward);
      ASSERT_EQ(lives.size(), request.chunks * request.microBatches);
      std::vector<int32_t> slots;
      EXPECT_TRUE(fits(lives, slots, schedule.slots[stage]));
      slots.clear();
      EXPECT_FALSE(fits(lives, slots, schedule.slots[stage] - 1));
    }
  }
}

TEST(PipelineSchedule, TransfersOfTwoStages) {
  const PipelineSchedule schedule =
      make({ScheduleKind::OneForwardOneBackward, 2, 1, 2});
  EXPECT_EQ(text(schedule.stages[0]),
            "F0.0 slot 0 in 0; send F0.0 in 0; "
            "recv B0.0 in 1; F0.1 slot 1 in 2; send F0.1 in 2; "
            "wait-send F0.0 in 0; "
            "recv B0.1 in 0; wait-recv B0.0 in 1; B0.0 slot 0 in 1; "
            "wait-send F0.1 in 2; "
            "wait-recv B0.1 in 0; B0.1 slot 1 in 0");
  EXPECT_EQ(text(schedule.stages[1]),
            "recv F0.0 in 0; wait-recv F0.0 in 0; F0.0 slot 0 in 0; "
            "recv F0.1 in 0; B0.0 slot 0 in 1; send B0.0 in 1; "
            "wait-recv F0.1 in 0; F0.1 slot 0 in 0; wait-send B0.0 in 1; "
            "B0.1 slot 0 in 0; send B0.1 in 0; wait-send B0.1 in 0");
  EXPECT_EQ(schedule.buffers, (std::vector<int32_t>{3, 2}));
}

TEST(PipelineSchedule, OneStageMovesNothing) {
  const PipelineSchedule schedule =
      make({ScheduleKind::OneForwardOneBackward, 1, 1, 2});
  EXPECT_EQ(text(schedule.stages[0]),
            "F0.0 slot 0 in 0; B0.0 slot 0 in 0; F0.1 slot 0 in 0; "
            "B0.1 slot 0 in 0");
}

TEST(PipelineSchedule, TheTurnOfTheVHandsItsBufferOver) {
  const PipelineSchedule schedule = make({ScheduleKind::ZeroBubble, 2, 2, 1});
  EXPECT_EQ(text(schedule.stages[1]),
            "recv F0.0 in 0; wait-recv F0.0 in 0; F0.0 slot 0 in 0; "
            "recv B1.0 in 1; F1.0 slot 1 in 0; send F1.0 in 0; "
            "wait-recv B1.0 in 1; B1.0 slot 1 in 1; wait-send F1.0 in 0; "
            "B0.0 slot 0 in 1; send B0.0 in 1; "
            "W0.0 slot 0; wait-send B0.0 in 1; W1.0 slot 1");
}

// One run later; two where neighbours send to each other in lock step, and the
// receiver may post its Receive no earlier than that.
TEST(PipelineSchedule, SendsAreWaitedForSoon) {
  using enum ScheduleKind;
  const std::vector<std::pair<PipelineRequest, int>> cases = {
      {{GPipe, 4, 1, 8}, 1},
      {{OneForwardOneBackward, 8, 1, 16}, 1},
      {{OneForwardOneBackward, 8, 1, 3}, 1},
      {{Interleaved, 4, 2, 8}, 2},
      {{Interleaved, 4, 3, 16}, 2}};
  for (const auto &[request, later] : cases) {
    for (const auto &actions : make(request).stages) {
      int runs = 0;
      std::vector<int> sent(actions.size());
      for (size_t i = 0; i < actions.size(); ++i) {
        runs += actions[i].op == ScheduleOp::Run ? 1 : 0;
        sent[i] = actions[i].op == ScheduleOp::Send ? runs : -1;
        for (size_t j = 0; actions[i].op == ScheduleOp::WaitSend && j < i;
             ++j) {
          if (sent[j] >= 0 && actions[j].work == actions[i].work &&
              actions[j].chunk == actions[i].chunk &&
              actions[j].microBatch == actions[i].microBatch) {
            EXPECT_LE(runs, sent[j] + later);
          }
        }
      }
    }
  }
}

TEST(PipelineSchedule, SameRequestSameSchedule) {
  const PipelineRequest request{ScheduleKind::ZeroBubble, 4, 2, 9};
  const PipelineSchedule a = make(request), b = make(request);
  for (size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(text(a.stages[stage]), text(b.stages[stage]));
  }
}
