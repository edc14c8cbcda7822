// After the second step ranks allocate nothing, on any thread.
#include "test/runtime/plan/ToyRanks.h"
#include "test/runtime/telemetry/CountedNew.h"
#include "test/runtime/train/ToyTraining.h"

using namespace mega;

namespace {

class SteadyStateTest : public testing::Test, protected test::ToyTraining {
protected:
  SteadyStateTest() : ToyTraining(dataParallelToy(3, true)) {}
};

} // namespace

TEST_F(SteadyStateTest, StepsOfSeveralRanksAllocateNothing) {
  const auto ranks = session(/*threads=*/6);
  const BatchLoader batches = loader(*ranks);
  StepScalars scalars;
  int64_t before = 0;
  for (int64_t step = 0; step < 6; ++step) {
    if (step == 2) {
      before = test::allocations();
    }
    ASSERT_TRUE(ranks->fill(batches, step).isOk());
    ASSERT_TRUE(ranks->trainStep(scalars, batches.firstRow(step, 0, 0)).isOk());
  }
  EXPECT_EQ(test::allocations() - before, 0);
}
