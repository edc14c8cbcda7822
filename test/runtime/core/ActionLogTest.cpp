#include "runtime/core/ActionLog.h"

#include <gtest/gtest.h>

using namespace mega;

namespace {

/// A step whose only action runs from `time` to one later.
void record(ActionLog &log, int64_t time) {
  log.beginStep()[0] = {time, time + 1};
  log.endStep();
}

} // namespace

TEST(ActionLog, KeepsTheFirstStepsAndTheLast) {
  ActionLog log(/*entryPoint=*/0, /*actions=*/1, /*steps=*/2);
  EXPECT_EQ(log.steps(), 0u);
  record(log, 10);
  EXPECT_EQ(log.steps(), 1u);
  EXPECT_EQ(log.last()[0].begin, 10);
  for (const int64_t time : {20, 30, 40}) {
    record(log, time);
  }
  EXPECT_EQ(log.steps(), 2u);
  EXPECT_EQ(log.step(0)[0].begin, 10);
  EXPECT_EQ(log.step(1)[0].begin, 20);
  EXPECT_EQ(log.last()[0].begin, 40);
  EXPECT_EQ(log.last()[0].end, 41);
}

TEST(ActionLog, AStepThatFailsDoesNotCount) {
  ActionLog log(/*entryPoint=*/0, /*actions=*/1, /*steps=*/2);
  record(log, 10);
  log.beginStep()[0] = {20, 0};
  EXPECT_EQ(log.steps(), 1u);
  EXPECT_EQ(log.last()[0].begin, 10);
}

TEST(ActionLog, KeepsOnlyTheLastStepIfNoneIsAskedFor) {
  ActionLog log(/*entryPoint=*/0, /*actions=*/1, /*steps=*/0);
  record(log, 10);
  record(log, 20);
  EXPECT_EQ(log.steps(), 0u);
  EXPECT_EQ(log.last()[0].begin, 20);
}
