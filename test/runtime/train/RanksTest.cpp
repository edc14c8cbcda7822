//===- RanksTest.cpp - A plan on several ranks of one process -------------===//
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/cpu/CpuKernels.h"
#include "test/runtime/plan/ToyRanks.h"
#include "test/runtime/train/ToyTraining.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

using namespace mega;
using testing::HasSubstr;

namespace {

constexpr int kSteps = 6;

/// What a run left: losses and norms by step, then all tensors.
struct Outcome {
  std::vector<double> losses;
  std::vector<double> norms;
  double validation = 0;
  std::map<std::string, std::vector<float>> gradients;
  std::map<std::string, std::vector<float>> weights;
  std::map<std::string, std::vector<float>> moments;
};

class ToyRun : test::ToyTraining {
public:
  explicit ToyRun(std::unique_ptr<plan::PlanT> toy, int threads = 2)
      : ToyTraining(std::move(toy)), session_(ToyTraining::session(threads)) {}

  Outcome outcome() {
    const BatchLoader batches = loader(*session_);
    Outcome result;
    StepScalars scalars;
    scalars.lr = 0.02f;
    scalars.weightDecay = 0.1f;
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_TRUE(session_->fill(batches, step).isOk());
      scalars.step = step + 1;
      const Status status =
          session_->trainStep(scalars, batches.firstRow(step, 0, 0));
      EXPECT_TRUE(status.isOk()) << status.message();
      result.losses.push_back(executor().loss());
      result.norms.push_back(std::sqrt(executor().gradientSquareSum()));
      expectAgreement();
    }
    result.gradients = tensors(ParameterPart::Gradient);
    result.weights = tensors(ParameterPart::Weight);
    result.moments = tensors(ParameterPart::Moment);
    const BatchLoader all = loader(*session_, /*once=*/true);
    const EvalResult evaluation = session_->evaluate(all, scalars).take();
    EXPECT_EQ(evaluation.tokens, 60);
    result.validation = evaluation.loss;
    return result;
  }
  Session &session() { return *session_; }
  Executor &executor() { return session_->executor(); }
  std::string file(const std::string &name) const {
    return directory.file(name);
  }

private:
  void expectAgreement() {
    for (size_t i = 1; i < session_->ranks().size(); ++i) {
      EXPECT_EQ(session_->ranks().executor(i).loss(), executor().loss());
      EXPECT_EQ(session_->ranks().executor(i).gradientSquareSum(),
                executor().gradientSquareSum());
    }
  }
  std::map<std::string, std::vector<float>> tensors(ParameterPart part) {
    std::map<std::string, std::vector<float>> all;
    WholeTensors &whole = session_->tensors();
    for (size_t i = 0; i < whole.tensors().size(); ++i) {
      const std::span<const float> values = whole.gather(i, part).take();
      all[whole.tensors()[i].info.name].assign(values.begin(), values.end());
    }
    return all;
  }

  std::unique_ptr<Session> session_;
};

Outcome outcomeOf(std::unique_ptr<plan::PlanT> toy) {
  return ToyRun(std::move(toy)).outcome();
}

/// Sums in another order: a rounding of f32 here and there.
void expectNear(const std::map<std::string, std::vector<float>> &actual,
                const std::map<std::string, std::vector<float>> &expected,
                double relative) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto &[name, values] : expected) {
    ASSERT_EQ(actual.at(name).size(), values.size()) << name;
    float largest = 0;
    for (float value : values) {
      largest = std::max(largest, std::abs(value));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(actual.at(name)[i], values[i], relative * largest)
          << name << " " << i;
    }
  }
}

void expectNear(const Outcome &actual, const Outcome &expected) {
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(actual.losses[step], expected.losses[step],
                1e-5 * expected.losses[step]);
    EXPECT_NEAR(actual.norms[step], expected.norms[step],
                1e-4 * expected.norms[step]);
  }
  EXPECT_NEAR(actual.validation, expected.validation,
              1e-5 * expected.validation);
  expectNear(actual.gradients, expected.gradients, 1e-4);
  expectNear(actual.weights, expected.weights, 1e-4);
  expectNear(actual.moments, expected.moments, 1e-4);
}

} // namespace

TEST(Ranks, ReplicasTrainAsOneRankDoes) {
  expectNear(outcomeOf(dataParallelToy(2)), outcomeOf(toyWithMicroBatches(4)));
}

TEST(Ranks, ReplicasThatShareTheUpdateTrainAsOneRankDoes) {
  const Outcome one = outcomeOf(toyWithMicroBatches(4));
  const Outcome shared = outcomeOf(dataParallelToy(2, true));
  expectNear(shared, one);
  expectNear(outcomeOf(dataParallelToy(3, true)),
             outcomeOf(toyWithMicroBatches(6)));
  // Whoever adds, it is the same sum; the norm is in another order.
  const Outcome whole = outcomeOf(dataParallelToy(2));
  EXPECT_EQ(shared.losses[0], whole.losses[0]);
}

TEST(Ranks, ColumnsOfTheEmbeddingsTrainAsOneRankDoes) {
  const Outcome one = outcomeOf(toyPlan());
  const Outcome five = outcomeOf(tensorParallelToy());
  expectNear(five, one);
  // Nothing is summed in forward: the same bits, from the same initial values.
  EXPECT_EQ(five.losses[0], one.losses[0]);
}

TEST(Ranks, SharedStateTakesAPieceOfTheMemory) {
  ToyRun whole(dataParallelToy(2)), shared(dataParallelToy(2, true));
  // Two regions of 480 bytes, which take 512, become 240, which take 256.
  EXPECT_EQ(whole.executor().memory().bytes() -
                shared.executor().memory().bytes(),
            512u);
}

// Fewer threads than ranks, as many, and a number that does not divide.
TEST(Ranks, ThreadsDoNotChangeABit) {
  const Outcome expected = ToyRun(tensorParallelToy(), 1).outcome();
  for (int threads : {5, 12}) {
    const Outcome other = ToyRun(tensorParallelToy(), threads).outcome();
    EXPECT_EQ(other.losses, expected.losses) << threads;
    EXPECT_EQ(other.weights, expected.weights) << threads;
  }
}

// What one mesh wrote another reads, with the same bits.
TEST(Ranks, WeightsMoveBetweenMeshes) {
  ToyRun five(tensorParallelToy());
  const Outcome trained = five.outcome();
  const DumpRequest request{DumpRequest::What::Weights, kSteps, five.file("d")};
  ASSERT_TRUE(prepareDump(request).isOk());
  ASSERT_TRUE(five.session().dumpTensors(request).isOk());
  const std::string path = request.directory + "/weights.safetensors";
  for (const auto &toy : {toyPlan(), dataParallelToy(2), tensorParallelToy()}) {
    ToyRun other(std::make_unique<plan::PlanT>(*toy));
    ASSERT_TRUE(other.session().loadWeights(path).isOk());
    WholeTensors &tensors = other.session().tensors();
    for (size_t i = 0; i < tensors.tensors().size(); ++i) {
      const auto values = tensors.gather(i, ParameterPart::Weight).take();
      EXPECT_THAT(values, testing::ElementsAreArray(trained.weights.at(
                              tensors.tensors()[i].info.name)));
    }
  }
}

namespace {

/// Fails in its place on one rank, as if its device had.
std::atomic<int> countdown{-1};
void failing(const KernelContext &ctx, const KernelArguments &args) {
  if (ctx.groups->members[0].place == 1 && countdown.fetch_sub(1) == 0) {
    ctx.groups->failure = Status(Code::Failed, "the device is gone");
    return;
  }
  cpuKernel(Kernel::ClipScale)(ctx, args);
}
KernelFunction kernelsWithFailure(Kernel kernel) {
  return kernel == Kernel::ClipScale ? failing : cpuKernel(kernel);
}

} // namespace

TEST(Ranks, AFailureOfOneRankEndsAllWithItsPlace) {
  const LoadedPlan plan = loadPlan(packPlan(*dataParallelToy(2))).take();
  const auto world =
      RankWorld::ofThreads(plan.root(), std::chrono::minutes(5)).take();
  LocalRankOptions options;
  options.seats = world->takeSeats();
  options.kernels = kernelsWithFailure;
  options.fail = [&](const RankFailure &mine) { return world->fail(mine); };
  const auto ranks = LocalRanks::create(plan, std::move(options)).take();
  countdown = 2;
  const auto step = [&](int64_t number) {
    StepScalars scalars;
    scalars.step = number;
    ranks->setStep(number);
    return ranks->run(
        [&](Executor &rank) { return rank.runStep(0, scalars, 0); });
  };
  EXPECT_TRUE(step(1).isOk());
  EXPECT_TRUE(step(2).isOk());
  // The other rank waits for the sum of the losses, without a limit to speak
  // of.
  const Status status = step(3);
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_EQ(status.message(),
            "rank 1 (stage 0, step 3, action 5): program end: call 0 of "
            "step.end: launch 2, clip_scale (toy.mlir:1): the device is gone");
  EXPECT_EQ(step(4).message(), status.message());
}

TEST(Ranks, ARankThatDoesNotComeIsNamed) {
  const LoadedPlan plan = loadPlan(packPlan(*dataParallelToy(2))).take();
  const auto world =
      RankWorld::ofThreads(plan.root(), std::chrono::milliseconds(200)).take();
  LocalRankOptions options;
  options.seats = world->takeSeats();
  options.kernels = cpuKernel;
  options.fail = [&](const RankFailure &mine) { return world->fail(mine); };
  const auto ranks = LocalRanks::create(plan, std::move(options)).take();
  const StepScalars scalars;
  const Status status = ranks->run([&](Executor &rank) {
    return rank.rank() == 1 ? Status::ok() : rank.runStep(0, scalars, 0);
  });
  EXPECT_EQ(status.code(), Code::Unavailable);
  EXPECT_THAT(status.message(), HasSubstr("rank 0 (stage 0, action 0): program "
                                          "begin: call 0 of step.begin"));
  EXPECT_THAT(status.message(), HasSubstr("rank 1 has not come within 0.2 s"));
}

TEST(Ranks, AreRefusedTogetherIfTheyDoNotFit) {
  const LoadedPlan plan = loadPlan(packPlan(*toyPlan())).take();
  const int64_t stages[] = {0, 0, 0};
  EXPECT_TRUE(Memory::checkAvailable(plan.root(), stages, 3 * 5120).isOk());
  const Status status =
      Memory::checkAvailable(plan.root(), stages, 3 * 5120 - 1);
  EXPECT_EQ(status.code(), Code::Unavailable);
  EXPECT_EQ(status.message(),
            "the plan needs 5120 bytes of memory (5120 planned and 0 in "
            "reserve) on each of 3 ranks, 15359 are available");
}
