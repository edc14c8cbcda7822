#include "runtime/train/Trainer.h"

#include "test/runtime/train/ToyTraining.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace mega;
using testing::HasSubstr;

namespace {

class TrainerTest : public testing::Test, protected test::ToyTraining {
protected:
  TrainOptions options(const std::string &name) const {
    TrainOptions result;
    result.data = prefix();
    result.steps = 12;
    result.learningRate.peak = 0.02;
    result.learningRate.totalSteps = result.steps;
    result.weightDecay = 0.1f;
    result.ranks.threads = 2;
    result.dumps = {
        {DumpRequest::What::Weights, result.steps, directory.file(name)},
        {DumpRequest::What::Gradients, result.steps, directory.file(name)}};
    return result;
  }
  /// Weights and gradients that `options(name)` left behind.
  std::string dumped(const std::string &name) const {
    const std::string weights =
        test::readFile(directory.file(name) + "/weights.safetensors");
    const std::string gradients =
        test::readFile(directory.file(name) + "/gradients.safetensors");
    EXPECT_FALSE(weights.empty());
    EXPECT_FALSE(gradients.empty());
    return weights + gradients;
  }
  void run(const TrainOptions &options) const {
    const Status status = train(plan, options);
    ASSERT_TRUE(status.isOk()) << status.message();
  }
};

} // namespace

// Often, because a race shows only sometimes.
TEST_F(TrainerTest, TwiceGivesTheSameBits) {
  run(options("a"));
  for (int i = 0; i < 10; ++i) {
    run(options("b"));
    EXPECT_TRUE(dumped("a") == dumped("b"));
  }
  TrainOptions seeded = options("c");
  seeded.seed = 99;
  run(seeded);
  EXPECT_FALSE(dumped("a") == dumped("c"));
}

TEST_F(TrainerTest, ThreadsDoNotChangeABit) {
  TrainOptions one = options("a"), three = options("b");
  one.ranks.threads = 1;
  three.ranks.threads = 3;
  run(one);
  run(three);
  EXPECT_TRUE(dumped("a") == dumped("b"));
}

// Evaluation uses the input buffers that the next batch may lie in.
TEST_F(TrainerTest, EvaluationChangesNothing) {
  run(options("a"));
  for (int64_t every : {1, 5}) {
    TrainOptions evaluated = options("b");
    evaluated.valid = prefix();
    evaluated.evalEvery = every;
    run(evaluated);
    EXPECT_TRUE(dumped("a") == dumped("b")) << "every " << every;
  }
}

TEST_F(TrainerTest, LogsEveryStepAndTheLastEvaluation) {
  TrainOptions logged = options("a");
  logged.valid = prefix();
  logged.logFile = directory.file("log.jsonl");
  run(logged);
  const std::string log = test::readFile(logged.logFile);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 13);
  EXPECT_THAT(log, HasSubstr("\"valid_tokens\":60"));
}

TEST_F(TrainerTest, DumpedWeightsEvaluateAsTheRunDid) {
  run(options("a"));
  EvalOptions evaluation;
  evaluation.data = prefix();
  evaluation.ranks.threads = 2;
  const double untrained = evaluate(plan, evaluation).take().loss;
  evaluation.weights = directory.file("a") + "/weights.safetensors";
  const EvalResult trained = evaluate(plan, evaluation).take();
  EXPECT_EQ(trained.tokens, 60);
  EXPECT_LT(trained.loss, untrained);
}

TEST_F(TrainerTest, RefusesADumpAfterTheEnd) {
  TrainOptions late = options("a");
  late.dumps[0].step = 13;
  const Status status = train(plan, late);
  EXPECT_EQ(status.code(), Code::Usage);
  EXPECT_EQ(status.message(), "--dump at step 13 but --steps is 12");
}

TEST_F(TrainerTest, StopsAtALossThatIsNotFinite) {
  TrainOptions wild = options("a");
  wild.dumps.clear();
  wild.learningRate.peak = 1e30;
  const Status status = train(plan, wild);
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_THAT(status.message(), HasSubstr("are not finite"));
}
