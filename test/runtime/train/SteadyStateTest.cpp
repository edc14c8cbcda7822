// After the second step ranks allocate nothing, on any thread.
#include "runtime/train/StepTrace.h"
#include "test/runtime/plan/ToyRanks.h"
#include "test/runtime/telemetry/CountedNew.h"
#include "test/runtime/train/ToyTraining.h"

using namespace mega;

namespace {

class SteadyStateTest : public testing::Test, protected test::ToyTraining {
protected:
  SteadyStateTest() : ToyTraining(dataParallelToy(3, true)) {}

  /// Of steps after the second.
  int64_t allocationsOfSteps(Session &ranks) const {
    const BatchLoader batches = loader(ranks);
    StepScalars scalars;
    int64_t before = 0;
    for (int64_t step = 0; step < 6; ++step) {
      if (step == 2) {
        before = test::allocations();
      }
      EXPECT_TRUE(ranks.fill(batches, step).isOk());
      EXPECT_TRUE(
          ranks.trainStep(scalars, batches.firstRow(step, 0, 0)).isOk());
    }
    return test::allocations() - before;
  }
};

} // namespace

TEST_F(SteadyStateTest, StepsOfSeveralRanksAllocateNothing) {
  const auto ranks = session(/*threads=*/6);
  EXPECT_EQ(allocationsOfSteps(*ranks), 0);
}

TEST_F(SteadyStateTest, StepsThatAreRecordedAllocateNothing) {
  const auto ranks = session(/*threads=*/6);
  // Within what a trace keeps, and beyond.
  const StepTrace trace(ranks->ranks(),
                        *ranks->executor().findEntryPoint("train"),
                        /*steps=*/4);
  EXPECT_EQ(allocationsOfSteps(*ranks), 0);
  EXPECT_GT(trace.lastStep().total, 0);
}
