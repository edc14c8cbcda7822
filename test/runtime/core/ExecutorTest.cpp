#include "runtime/core/Executor.h"

#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/CpuKernels.h"
#include "runtime/plan/InitialValues.h"
#include "test/runtime/plan/ToyRanks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

using namespace mega;

namespace {

struct Toy {
  explicit Toy(int threads = 1)
      : plan(loadPlan(packPlan(*toyPlan())).take()), pool(threads),
        executor(Executor::create(plan, cpuKernel, pool).take()) {
    scalars.lr = 0.02f;
    executor->initializeWeights(7);
    EXPECT_TRUE(executor->runSetup(scalars).isOk());
  }

  /// A fixed batch: the label of a token is the token's successor.
  void fill() {
    for (uint32_t m = 0; m < 2; ++m) {
      const View tokens = executor->input(0, m);
      const View labels = executor->input(1, m);
      for (int i = 0; i < 6; ++i) {
        tokens.as<int32_t>()[i] = (5 * i + static_cast<int>(m)) % 7;
        labels.as<int32_t>()[i] = (5 * i + static_cast<int>(m) + 1) % 7;
      }
    }
    executor->input(1, 1).as<int32_t>()[4] = -100;
  }
  double step(const char *entry) {
    fill();
    EXPECT_TRUE(
        executor->runStep(*executor->findEntryPoint(entry), scalars, 0).isOk());
    ++scalars.step;
    return executor->loss();
  }

  LoadedPlan plan;
  ThreadPool pool;
  std::unique_ptr<Executor> executor;
  StepScalars scalars;
};

} // namespace

TEST(Executor, TrainsTheToy) {
  Toy toy;
  const double first = toy.step("train");
  EXPECT_EQ(toy.executor->lossCount(0), 11);
  EXPECT_NEAR(first, std::log(7.0), 1.0);
  EXPECT_GT(toy.executor->gradientSquareSum(), 0);
  double last = first;
  for (int i = 0; i < 60; ++i) {
    last = toy.step("train");
  }
  EXPECT_LT(last, 0.5 * first);
}

TEST(Executor, EvalSeesTheWeightsAndLeavesThemAlone) {
  Toy toy;
  const double before = toy.step("eval");
  EXPECT_EQ(toy.step("eval"), before);
  // Forward of train comes before its update.
  EXPECT_EQ(toy.step("train"), before);
  EXPECT_NE(toy.step("eval"), before);
}

TEST(Executor, GivesTheSameBitsForAnyNumberOfThreads) {
  Toy one(1);
  Toy three(3);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(one.step("train"), three.step("train"));
  }
  for (size_t p = 0; p < one.executor->parameters().size(); ++p) {
    const ParameterState &a = one.executor->parameters()[p];
    const ParameterState &b = three.executor->parameters()[p];
    EXPECT_EQ(std::memcmp(a.weight.data, b.weight.data,
                          a.info.elements * sizeof(float)),
              0)
        << a.info.name;
  }
}

TEST(Executor, NamesLogicalParametersAndInitialisesByName) {
  Toy toy;
  std::vector<std::string> names;
  for (const ParameterState &parameter : toy.executor->parameters()) {
    names.push_back(parameter.info.name);
    std::vector<float> expected(parameter.info.elements);
    fillNormal(expected, 7, parameter.info.name, 0, 0, 0.5);
    EXPECT_EQ(std::memcmp(expected.data(), parameter.weight.data,
                          expected.size() * sizeof(float)),
              0);
    ASSERT_NE(parameter.moment.data, nullptr);
    EXPECT_EQ(*parameter.variance.as<float>(), 0);
  }
  EXPECT_THAT(names, testing::ElementsAre("wte.weight", "h.0.fc.weight",
                                          "h.1.fc.weight", "head.weight"));
}

TEST(Executor, GradientsMatchDifferencesOfTheLoss) {
  Toy toy;
  toy.scalars.lr = 0;
  toy.step("train");
  for (const ParameterState &parameter : toy.executor->parameters()) {
    for (int64_t i : {int64_t{3}, parameter.info.elements - 2}) {
      const float gradient = parameter.gradient.as<float>()[i];
      float &weight = parameter.weight.as<float>()[i];
      const float kept = weight;
      weight = kept + 1e-2f;
      const double up = toy.step("eval");
      weight = kept - 1e-2f;
      const double down = toy.step("eval");
      weight = kept;
      EXPECT_NEAR(gradient, (up - down) / 2e-2, 2e-3)
          << parameter.info.name << " " << i;
    }
  }
}

TEST(Executor, RotatesThroughTheCopiesOfInputs) {
  Toy toy;
  ASSERT_EQ(toy.executor->inputCopies(), 2u);
  const std::byte *now = toy.executor->input(0, 1).data;
  const std::byte *next = toy.executor->input(0, 1, 1).data;
  EXPECT_NE(now, next);
  toy.step("eval");
  EXPECT_EQ(toy.executor->input(0, 1).data, next);
  toy.step("eval");
  EXPECT_EQ(toy.executor->input(0, 1).data, now);
}

TEST(Executor, AllocatesWhatIsPlannedAndNoMore) {
  Toy toy;
  // 4 x 480, 40, 1024, 512, 120, 512 and 2 x 128, each to 256.
  EXPECT_EQ(toy.executor->memory().bytes(),
            4u * 512 + 256 + 1024 + 512 + 256 + 512 + 2 * 256);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(toy.executor->memory().region(3)) % 256,
            0u);
}

TEST(Executor, RefusesAPlanThatDoesNotFitTheMachine) {
  const LoadedPlan plan = loadPlan(packPlan(*toyPlan())).take();
  ThreadPool pool(1);
  const auto executor = Executor::create(plan, cpuKernel, pool, {}, 5000);
  ASSERT_FALSE(executor.isOk());
  EXPECT_EQ(executor.status().code(), Code::Unavailable);
  EXPECT_EQ(executor.status().message(),
            "the plan needs 5120 bytes of memory (5120 planned and 0 in "
            "reserve), 5000 are available");
}

namespace {

/// Of the launches of embedding: what tells them apart between ranks.
struct Seen {
  int64_t firstSample;
  int64_t integer;
  friend bool operator==(const Seen &, const Seen &) = default;
};
std::vector<Seen> seen;
void record(const KernelContext &ctx, const KernelArguments &args) {
  seen.push_back({ctx.firstSample, args.integers[0]});
}
void ignore(const KernelContext &, const KernelArguments &) {}

} // namespace

// Rank 3 of tp 2 x dp 2 has tp 1 and dp 1.
TEST(Executor, ResolvesWhatDependsOnTheRank) {
  auto toy = dataParallelToy(2);
  toy->mesh.emplace_back(static_cast<uint8_t>(Axis::Tp), 2u);
  plan::FunctionT &embed = functionNamed(*toy, "embed.forward");
  embed.integers.at(0) = 0;
  embed.terms = {plan::CoordinateTerm(0, static_cast<uint8_t>(Axis::Tp), 100),
                 plan::CoordinateTerm(0, static_cast<uint8_t>(Axis::Dp), 1000)};
  const LoadedPlan plan = loadPlan(packPlan(*toy)).take();
  ThreadPool pool(1);
  const auto kernels = [](Kernel kernel) -> KernelFunction {
    return kernel == Kernel::Embedding ? record : ignore;
  };
  const auto launches = [&](int64_t rank) {
    const auto executor =
        Executor::create(plan, kernels, pool, {rank, {}}).take();
    seen.clear();
    EXPECT_TRUE(executor->runStep(0, {}, 80).isOk());
    return seen;
  };
  // Two micro-batches of two rows on each of two replicas.
  EXPECT_THAT(launches(0), testing::ElementsAre(Seen{80, 0}, Seen{84, 0}));
  EXPECT_THAT(launches(1), testing::ElementsAre(Seen{80, 100}, Seen{84, 100}));
  EXPECT_THAT(launches(3),
              testing::ElementsAre(Seen{82, 1100}, Seen{86, 1100}));
}
