#include "runtime/train/Session.h"

#include "runtime/checkpoint/Safetensors.h"
#include "test/runtime/train/ToyTraining.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace mega;
using testing::HasSubstr;

namespace {

class SessionTest : public testing::Test, protected test::ToyTraining {
protected:
  /// Writes float tensors of zeros.
  std::string writeTensors(std::vector<TensorInfo> tensors) const {
    const std::string path = directory.file("weights.safetensors");
    SafetensorsWriter writer =
        SafetensorsWriter::create(path, std::move(tensors)).take();
    const std::vector<TensorInfo> order = writer.tensors();
    for (const TensorInfo &info : order) {
      const std::vector<std::byte> zeros(tensorBytes(info).take());
      EXPECT_TRUE(writer.append(info.name, zeros).isOk());
    }
    EXPECT_TRUE(writer.finish().isOk());
    return path;
  }
  /// What the plan's weights are called and look like.
  static std::vector<TensorInfo> tensorsOf(const Executor &executor) {
    std::vector<TensorInfo> tensors;
    for (const ParameterState &parameter : executor.parameters()) {
      tensors.push_back(
          {parameter.info.name, parameter.weight.type, parameter.info.shape});
    }
    return tensors;
  }
  std::string rejection(const std::string &path) {
    const auto one = session();
    const Status status = one->loadWeights(path);
    EXPECT_EQ(status.code(), Code::BadInput);
    return status.message();
  }
};

std::vector<float> weightsOf(const Executor &executor) {
  std::vector<float> values;
  for (const ParameterState &parameter : executor.parameters()) {
    const float *data = parameter.weight.as<float>();
    values.insert(values.end(), data, data + parameter.info.elements);
  }
  return values;
}

} // namespace

TEST_F(SessionTest, NamesWhatThePlanLacks) {
  const auto rejected = [](std::unique_ptr<plan::PlanT> changed) {
    const LoadedPlan plan = loadPlan(packPlan(*changed)).take();
    const auto world =
        RankWorld::ofThreads(plan.root(), std::chrono::seconds(1)).take();
    const auto created = Session::create(plan, *world, 1, 7);
    EXPECT_EQ(created.status().code(), Code::BadInput);
    return created.status().message();
  };
  auto changed = toyPlan();
  changed->entry_points.at(1)->name = "score";
  EXPECT_EQ(rejected(std::move(changed)),
            "the plan has no entry point eval; compile it with this megac");
  changed = toyPlan();
  changed->inputs.at(1)->name = "targets";
  EXPECT_EQ(rejected(std::move(changed)),
            "the plan has no input labels; compile it with this megac");
  const auto withInput = [](const char *name, uint64_t limit) {
    auto plan = toyPlan();
    plan->regions[plan->inputs[1]->buffer->region()]->bytes = 256;
    plan->inputs.push_back(std::make_unique<plan::InputT>(*plan->inputs[1]));
    plan->inputs[2]->name = name;
    plan->inputs[2]->buffer->mutate_offset(128);
    plan->inputs[2]->limit = limit;
    return plan;
  };
  EXPECT_EQ(rejected(withInput("mask", 7)),
            "the plan has an input mask, and the data loader has none");
  EXPECT_EQ(rejected(withInput("positions", 2)),
            "elements of input positions are below 2, and those of a sequence "
            "of 3 tokens may be up to 2; compile the plan with this megac");
}

TEST_F(SessionTest, EvaluatesEverySampleOnce) {
  const auto one = session();
  const BatchLoader batches = loader(*one, /*once=*/true);
  ASSERT_EQ(batches.samples(), 20);
  StepScalars scalars;
  const EvalResult result = one->evaluate(batches, scalars).take();
  EXPECT_EQ(result.tokens, 60);
  EXPECT_NEAR(result.loss, std::log(7.0), 1.0);
  EXPECT_EQ(one->evaluate(batches, scalars).take().loss, result.loss);
}

TEST_F(SessionTest, LoadsWhatItDumped) {
  const auto one = session();
  const BatchLoader batches = loader(*one);
  StepScalars scalars;
  scalars.lr = 0.02f;
  for (int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(one->fill(batches, step).isOk());
    scalars.step = step + 1;
    ASSERT_TRUE(one->trainStep(scalars, 0).isOk());
  }
  const DumpRequest request{DumpRequest::What::Weights, 3,
                            directory.file("a/b")};
  ASSERT_TRUE(prepareDump(request).isOk());
  ASSERT_TRUE(one->dumpTensors(request).isOk());

  const auto other = session();
  EXPECT_NE(weightsOf(other->executor()), weightsOf(one->executor()));
  const Status loaded =
      other->loadWeights(request.directory + "/weights.safetensors");
  ASSERT_TRUE(loaded.isOk()) << loaded.message();
  EXPECT_EQ(weightsOf(other->executor()), weightsOf(one->executor()));
}

TEST_F(SessionTest, RefusesWeightsWithATensorMissing) {
  auto tensors = tensorsOf(session()->executor());
  tensors.pop_back();
  EXPECT_THAT(rejection(writeTensors(tensors)),
              HasSubstr("has no tensor head.weight"));
}

TEST_F(SessionTest, RefusesWeightsOfOtherShapes) {
  auto tensors = tensorsOf(session()->executor());
  ASSERT_EQ(tensors[0].name, "wte.weight");
  ASSERT_EQ(tensors[0].shape, (std::vector<int64_t>{7, 5}));
  tensors[0].shape = {7, 6};
  EXPECT_THAT(rejection(writeTensors(tensors)),
              HasSubstr("tensor wte.weight is f32 [7, 6], the plan wants f32 "
                        "[7, 5]"));
  // As many bytes in another order.
  tensors[0].shape = {5, 7};
  EXPECT_THAT(rejection(writeTensors(tensors)),
              HasSubstr("tensor wte.weight is f32 [5, 7], the plan wants f32 "
                        "[7, 5]"));
}

TEST_F(SessionTest, RefusesWeightsOfOtherTypes) {
  auto tensors = tensorsOf(session()->executor());
  tensors[0].type = DataType::I32;
  EXPECT_THAT(rejection(writeTensors(tensors)),
              HasSubstr("tensor wte.weight is i32 [7, 5], the plan wants f32"));
}

TEST_F(SessionTest, RefusedWeightsChangeNothing) {
  const auto one = session();
  const std::vector<float> before = weightsOf(one->executor());
  auto tensors = tensorsOf(one->executor());
  tensors.back().shape = {1};
  EXPECT_FALSE(one->loadWeights(writeTensors(tensors)).isOk());
  EXPECT_EQ(weightsOf(one->executor()), before);
}

TEST_F(SessionTest, MissingWeightsAreAnInputOutputError) {
  EXPECT_EQ(session()->loadWeights(directory.file("none")).code(), Code::Io);
}
