#include "runtime/train/Prefetcher.h"

#include "test/runtime/train/ToyTraining.h"

using namespace mega;

namespace {

class PrefetcherTest : public testing::Test, protected test::ToyTraining {
protected:
  /// Tokens and labels of all micro-batches that the step `ahead` reads.
  static std::vector<int32_t> inputs(const Executor &executor, uint32_t ahead) {
    std::vector<int32_t> values;
    for (const char *name : {"tokens", "labels"}) {
      for (uint32_t m = 0; m < 2; ++m) {
        const View view =
            executor.input(executor.findInput(name).value(), m, ahead);
        values.insert(values.end(), view.as<int32_t>(),
                      view.as<int32_t>() + view.elements());
      }
    }
    return values;
  }
};

} // namespace

TEST_F(PrefetcherTest, GivesTheBatchesOfFill) {
  const auto ahead = session(), plain = session();
  const BatchLoader batches = loader(*ahead);
  Prefetcher prefetcher(*ahead, batches);
  const StepScalars scalars;
  ASSERT_TRUE(ahead->fill(batches, 0).isOk());
  for (int64_t step = 0; step < 30; ++step) {
    ASSERT_TRUE(plain->fill(batches, step).isOk());
    ASSERT_EQ(inputs(ahead->executor(), 0), inputs(plain->executor(), 0))
        << "step " << step;
    prefetcher.start(step + 1);
    ASSERT_TRUE(ahead->trainStep(scalars, 0).isOk());
    EXPECT_TRUE(prefetcher.wait().isOk());
    ASSERT_TRUE(plain->trainStep(scalars, 0).isOk());
    ASSERT_EQ(ahead->executor().loss(), plain->executor().loss());
  }
}

TEST_F(PrefetcherTest, WaitsForNothingIfNothingWasStarted) {
  const auto one = session();
  const BatchLoader batches = loader(*one);
  Prefetcher prefetcher(*one, batches);
  EXPECT_TRUE(prefetcher.wait().isOk());
  prefetcher.start(0);
  EXPECT_TRUE(prefetcher.wait().isOk());
  EXPECT_TRUE(prefetcher.wait().isOk());
}

// However late the thread wakes: here the step has always ended before.
TEST_F(PrefetcherTest, AStepThatEndsFirstChangesNothing) {
  const auto one = session();
  const BatchLoader batches = loader(*one);
  Executor &executor = one->executor();
  for (int64_t step = 0; step < 8; ++step) {
    const uint64_t next = executor.stepsDone() + 1;
    ASSERT_TRUE(one->trainStep({}, 0).isOk());
    EXPECT_TRUE(one->fillAt(batches, step, next).isOk());
    const std::vector<int32_t> early = inputs(executor, 0);
    ASSERT_TRUE(one->fill(batches, step).isOk());
    EXPECT_EQ(inputs(executor, 0), early) << "step " << step;
  }
}

// A batch may be on its way when an error ends the run.
TEST_F(PrefetcherTest, EndsWithABatchOnItsWay) {
  const auto one = session();
  const BatchLoader batches = loader(*one);
  for (int64_t step = 0; step < 200; ++step) {
    Prefetcher prefetcher(*one, batches);
    prefetcher.start(step);
  }
}
