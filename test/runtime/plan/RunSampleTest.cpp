#include "runtime/plan/RunSample.h"

#include "test/runtime/plan/ToyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

using namespace mega;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

namespace {

constexpr uint32_t kLayers = 20;
constexpr int64_t kWeight = 100; // bytes of a layer's
constexpr int64_t kFirst = 140;  // where those of all layers begin
constexpr uint32_t kParameters = 0, kGradients = 1, kFrames = 5;

/// The toy plan with a stack of kLayers in place of two.
std::unique_ptr<plan::PlanT> deepPlan() {
  auto p = toyPlan();
  constexpr int64_t kMore = kLayers - 2;
  const auto isState = [](const plan::Buffer &buffer) {
    return buffer.space() == static_cast<uint8_t>(plan::Space::Region) &&
           buffer.region() < 4;
  };
  const auto grow = [&](plan::Buffer &buffer) {
    if (isState(buffer) && buffer.rank() == 1) {
      buffer.mutable_dims()->Mutate(0, 120 + kMore * kWeight / 4);
      buffer.mutate_row_stride(120 + kMore * kWeight / 4);
    } else if (isState(buffer) && buffer.offset() > kFirst) {
      buffer.mutate_offset(buffer.offset() + kMore * kWeight);
    } else if (buffer.per_frame() != 0) {
      buffer.mutate_per_slot(kLayers * buffer.per_frame());
    }
  };
  for (auto &function : p->functions) {
    std::ranges::for_each(function->buffers, grow);
  }
  for (auto &program : p->programs) {
    for (plan::Call &call : program->calls) {
      if (call.count() == 2) {
        call.mutate_count(kLayers);
      } else if (call.first_application() > 0) {
        call.mutate_first_application(kLayers + 1);
      }
    }
  }
  for (auto &parameter : p->parameters) {
    if (parameter->count == 2) {
      parameter->count = kLayers;
    }
    grow(*parameter->weight);
    grow(*parameter->gradient);
  }
  for (uint32_t r = 0; r < 4; ++r) {
    p->regions[r]->bytes += kMore * kWeight;
  }
  regionNamed(*p, "saved.layer").bytes = 2 * kLayers * 256;
  p->parameter_count += kMore * kWeight / 4;
  return p;
}

LoadedPlan load(const plan::PlanT &plan) {
  auto loaded = loadPlan(packPlan(plan));
  EXPECT_TRUE(loaded.isOk()) << loaded.status().message();
  return std::move(*loaded);
}

constexpr size_t kStack = 1; // of the calls of forward and backward

std::vector<uint32_t> stackRuns(const plan::PlanT &plan, const char *program) {
  const LoadedPlan loaded = load(plan);
  const RunSample sample(loaded.root());
  const auto &programs = *loaded.root().programs();
  const auto it = std::find_if(programs.begin(), programs.end(), [&](auto *p) {
    return text(p->name()) == program;
  });
  return sample.runsOf(*it->calls()->Get(kStack), it->kind());
}

/// Gives the stack of a program to several calls. In a backward the last layers
/// come first.
void divide(plan::PlanT &plan, const char *program,
            std::initializer_list<uint32_t> counts) {
  auto &calls = programNamed(plan, program).calls;
  const plan::Call whole = calls[kStack];
  std::vector<plan::Call> parts;
  uint32_t first = 0;
  for (const uint32_t count : counts) {
    plan::Call part = whole;
    part.mutate_count(count);
    part.mutate_first_application(whole.first_application() + first);
    part.mutate_first_instance(first);
    part.mutate_first_frame(first);
    parts.push_back(part);
    first += count;
  }
  if (whole.reverse()) {
    std::ranges::reverse(parts);
  }
  calls.erase(calls.begin() + kStack);
  calls.insert(calls.begin() + kStack, parts.begin(), parts.end());
}

} // namespace

TEST(RunSample, TheEndsOfAStackStandForIt) {
  const auto p = deepPlan();
  EXPECT_TRUE(judge(*p).isOk()) << judge(*p).message();
  EXPECT_THAT(stackRuns(*p, "forward"), ElementsAre(0, 1, 2, 18, 19));
  EXPECT_THAT(stackRuns(*p, "forward.eval"), ElementsAre(0, 1, 2, 18, 19));
  EXPECT_THAT(stackRuns(*p, "backward"), ElementsAre(19, 18, 2, 1, 0));

  const LoadedPlan loaded = load(*p);
  const RunSample sample(loaded.root());
  for (const uint32_t region : {kParameters, kGradients}) {
    EXPECT_FALSE(sample.isLeftOut(region, 0));
    EXPECT_FALSE(sample.isLeftOut(region, kFirst + 2 * kWeight));
    EXPECT_TRUE(sample.isLeftOut(region, kFirst + 3 * kWeight));
    EXPECT_TRUE(sample.isLeftOut(region, kFirst + 17 * kWeight));
    EXPECT_FALSE(sample.isLeftOut(region, kFirst + 18 * kWeight));
    EXPECT_FALSE(sample.isLeftOut(region, kFirst + kLayers * kWeight));
  }
  EXPECT_TRUE(sample.isLeftOut(kFrames, 10 * 256));
}

TEST(RunSample, AnotherDivisionInOneProgramExecutesAll) {
  const auto p = deepPlan();
  divide(*p, "backward", {10, 10});
  EXPECT_THAT(stackRuns(*p, "forward"), SizeIs(kLayers));
  EXPECT_TRUE(judge(*p).isOk()) << judge(*p).message();
}

TEST(RunSample, LayersExchangedInTheMiddleAreFound) {
  const auto p = deepPlan();
  divide(*p, "backward", {9, 1, 1, 9});
  EXPECT_TRUE(judge(*p).isOk()) << judge(*p).message();
  auto &calls = programNamed(*p, "backward").calls;
  calls[kStack + 1].mutate_first_instance(9);
  calls[kStack + 2].mutate_first_instance(10);
  EXPECT_THAT(judge(*p).message(),
              HasSubstr("is not the derivative of what forward computes"));
}

// All programs agree in how they divide the stack; one layer of it stands for
// no other.
TEST(RunSample, ALayerByItselfIsExecuted) {
  const auto p = deepPlan();
  for (const char *program : {"forward", "forward.eval", "backward"}) {
    divide(*p, program, {9, 1, 10});
  }
  EXPECT_TRUE(judge(*p).isOk()) << judge(*p).message();
  EXPECT_THAT(stackRuns(*p, "forward"), ElementsAre(0, 1, 2, 7, 8));
  programNamed(*p, "backward").calls[kStack + 1].mutate_first_frame(3);
  EXPECT_THAT(stackRuns(*p, "forward"), SizeIs(9));
  EXPECT_FALSE(judge(*p).isOk());
}

// What ends inside the stack outside of micro-batches: the layers around it.
TEST(RunSample, LayersAtABoundaryAreExecuted) {
  const auto p = deepPlan();
  auto &function = functionNamed(*p, "step.begin");
  plan::Buffer &zeroed = operandOf(function, 0, 0);
  zeroed.mutable_dims()->Mutate(0, (kFirst + 10 * kWeight + 40) / 4);
  zeroed.mutate_row_stride((kFirst + 10 * kWeight + 40) / 4);
  EXPECT_THAT(stackRuns(*p, "forward"),
              ElementsAre(0, 1, 2, 9, 10, 11, 18, 19));
  EXPECT_FALSE(judge(*p).isOk());
}

TEST(RunSample, EntriesOfTheTableEndAtLayersThatAreExecuted) {
  const auto p = deepPlan();
  auto it = std::ranges::find_if(
      p->parameters, [](const auto &q) { return q->count == kLayers; });
  auto rest = std::make_unique<plan::ParameterT>(**it);
  (*it)->count = 8;
  rest->first_index = rest->first_instance = 8;
  rest->count = kLayers - 8;
  p->parameters.push_back(std::move(rest));
  EXPECT_TRUE(judge(*p).isOk()) << judge(*p).message();
  EXPECT_THAT(stackRuns(*p, "forward"), ElementsAre(0, 1, 2, 7, 8, 9, 18, 19));
}

// A stride that is smaller than what a layer touches.
TEST(RunSample, LayersThatMeetAreAllExecuted) {
  const auto p = deepPlan();
  for (plan::Buffer &buffer : functionNamed(*p, "layer.backward").buffers) {
    if (buffer.per_instance() != 0 && buffer.region() == kGradients) {
      buffer.mutate_per_instance(kWeight - 4);
    }
  }
  EXPECT_THAT(stackRuns(*p, "forward"), SizeIs(kLayers));
  EXPECT_FALSE(judge(*p).isOk());
}
