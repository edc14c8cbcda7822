#include "runtime/plan/Timeline.h"

#include <gtest/gtest.h>

using namespace mega;

namespace {

Timeline play(const PipelineRequest &request, const PartCost &cost,
              double transferSeconds = 0) {
  auto schedule = makeSchedule(request);
  EXPECT_TRUE(schedule.isOk()) << schedule.status().message();
  const std::vector<PartCost> costs(partCount(request), cost);
  return simulate(request, *schedule, costs, transferSeconds);
}

} // namespace

// GPipe and 1F1B idle for (P - 1) of M micro-batches, interleaved for a V-th of
// that. Waits for transfers cost nothing if transfers do not.
TEST(Timeline, BubbleFractions) {
  for (double backward : {1.0, 2.0, 3.0}) {
    const PartCost cost{1, backward, 0};
    for (int64_t stages : {1, 2, 3, 4, 8}) {
      for (int64_t m : {stages, 2 * stages, 5 * stages}) {
        const double bubble = static_cast<double>(stages - 1) / m;
        for (ScheduleKind kind :
             {ScheduleKind::GPipe, ScheduleKind::OneForwardOneBackward}) {
          EXPECT_NEAR(play({kind, stages, 1, m}, cost).bubbleFraction(), bubble,
                      1e-9)
              << stages << " stages, " << m << " micro-batches";
        }
        for (int64_t chunks : {2, 3, 4}) {
          EXPECT_NEAR(play({ScheduleKind::Interleaved, stages, chunks, m}, cost)
                          .bubbleFraction(),
                      bubble / chunks, 1e-9)
              << stages << " stages, " << chunks << " chunks, " << m
              << " micro-batches";
        }
      }
    }
  }
}

// Fewer micro-batches than stages: the chain through all of them and back.
TEST(Timeline, FewMicroBatches) {
  for (int64_t m = 1; m <= 8; ++m) {
    const PipelineRequest request{ScheduleKind::OneForwardOneBackward, 8, 1, m};
    EXPECT_EQ(play(request, {1, 2, 0}).total, 3 * (8 + m - 1));
  }
}

TEST(Timeline, SplittingOffWeightsLeavesAThirdOfTheBubble) {
  const Timeline joined =
      play({ScheduleKind::OneForwardOneBackward, 8, 1, 24}, {1, 2, 0});
  const Timeline split = play({ScheduleKind::ZeroBubble, 8, 1, 24}, {1, 1, 1});
  for (size_t stage = 0; stage < 8; ++stage) {
    EXPECT_EQ(joined.total - joined.busy(stage), 21);
    EXPECT_EQ(split.total - split.busy(stage), 7);
  }
}

// (P - 1)(F + B - W) for ZB-H1, of which F = B = W leaves P - 1.
TEST(Timeline, ZeroBubbleH1) {
  for (int64_t stages : {1, 2, 3, 4, 8, 16}) {
    for (int64_t m : {stages, stages + 1, 2 * stages + 1, 4 * stages}) {
      const Timeline timeline =
          play({ScheduleKind::ZeroBubble, stages, 1, m}, {1, 1, 1});
      EXPECT_EQ(timeline.total - timeline.busy(0), stages - 1)
          << stages << " stages, " << m << " micro-batches";
    }
  }
}

// The last stage begins P - 1 runs late: no less is possible. The heuristic
// reaches that up to 4 stages, and stays below two thirds of ZB-H1 beyond; runs
// are half as long.
TEST(Timeline, ZeroBubbleV) {
  for (int64_t stages : {1, 2, 3, 4, 8, 16}) {
    for (int64_t m : {stages, 2 * stages, 4 * stages}) {
      const Timeline timeline =
          play({ScheduleKind::ZeroBubble, stages, 2, m}, {1, 1, 1});
      const double bubble = timeline.total - timeline.busy(0);
      EXPECT_GE(bubble, stages - 1);
      EXPECT_LE(bubble, stages <= 4 ? stages - 1 : 4 * (stages - 1) / 3.0)
          << stages << " stages, " << m << " micro-batches";
    }
  }
}

TEST(Timeline, TransfersTakeTime) {
  const PipelineRequest request{ScheduleKind::OneForwardOneBackward, 2, 1, 1};
  const Timeline timeline = play(request, {1, 2, 0}, 0.5);
  // F0, transfer, F1, B1, transfer, B0.
  EXPECT_EQ(timeline.total, 1 + 0.5 + 1 + 2 + 0.5 + 2);
  ASSERT_EQ(timeline.stages[1].size(), 2);
  const TimelineRun &backward = timeline.stages[1][1];
  EXPECT_EQ(backward.work, Work::Backward);
  EXPECT_EQ(backward.part, 1);
  EXPECT_EQ(backward.begin, 2.5);
  EXPECT_EQ(backward.end, 4.5);
}

TEST(Timeline, TransfersOverlapWithRuns) {
  const PipelineRequest request{ScheduleKind::GPipe, 2, 1, 10, 0, false};
  // One fill of the pipeline, whatever the number of micro-batches.
  EXPECT_EQ(play(request, {1, 0, 0}, 0.5).total, 1 + 0.5 + 10);
}

TEST(Timeline, UnevenParts) {
  const PipelineRequest request{ScheduleKind::OneForwardOneBackward, 2, 1, 3};
  auto schedule = makeSchedule(request);
  ASSERT_TRUE(schedule.isOk());
  const std::vector<PartCost> costs = {{1, 1, 0}, {2, 3, 0}};
  const Timeline timeline = simulate(request, *schedule, costs);
  EXPECT_EQ(timeline.busy(0), 6);
  EXPECT_EQ(timeline.busy(1), 15);
  // The slower stage never stops between its first and its last run.
  EXPECT_EQ(timeline.total, 1 + 15 + 1);
  EXPECT_DOUBLE_EQ(timeline.bubbleFraction(), (2 * 17 - 21) / 21.0);
}

// A sender is at most so far ahead as the receiver has posted receives.
TEST(Timeline, WaitsForALateReceiver) {
  const PipelineRequest request{ScheduleKind::GPipe, 2, 1, 6, 0, false};
  auto schedule = makeSchedule(request);
  ASSERT_TRUE(schedule.isOk());
  const std::vector<PartCost> costs = {{1, 0, 0}, {10, 0, 0}};
  const Timeline timeline = simulate(request, *schedule, costs);
  EXPECT_EQ(timeline.stages[0][3].begin, 3);
  // The receive of micro-batch 2 is posted before the run of micro-batch 1.
  EXPECT_EQ(timeline.stages[0][4].begin, 11);
  EXPECT_EQ(timeline.total, 61);
}
