#include "runtime/plan/Verifier.h"

#include "test/runtime/plan/ToyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>

using namespace mega;
using testing::HasSubstr;

namespace {

/// Changes the toy; it still loads, and the verifier says why it is wrong.
std::string rejection(const std::function<void(plan::PlanT &)> &change) {
  const std::unique_ptr<plan::PlanT> plan = toyPlan();
  change(*plan);
  auto loaded = loadPlan(packPlan(*plan));
  EXPECT_TRUE(loaded.isOk()) << loaded.status().message();
  if (!loaded.isOk()) {
    return "";
  }
  const Status status = verifyPlan(loaded->root());
  EXPECT_EQ(status.code(), Code::BadInput) << "accepted";
  return status.message();
}

void drop(plan::FunctionT &function, size_t launch) {
  function.launches.erase(function.launches.begin() +
                          static_cast<int64_t>(launch));
}

void eraseAt(std::vector<plan::Action> &actions, size_t index) {
  actions.erase(actions.begin() + static_cast<int64_t>(index));
}

/// Drops out of argument 1 in place, at the end.
void addDropout(plan::FunctionT &function) {
  plan::Launch launch = function.launches.back();
  launch.mutate_kernel(static_cast<uint16_t>(Kernel::Dropout));
  launch.mutate_first_operand(static_cast<uint32_t>(function.operands.size()));
  launch.mutate_first_integer(static_cast<uint32_t>(function.integers.size()));
  launch.mutate_first_float(static_cast<uint32_t>(function.floats.size()));
  function.operands.insert(function.operands.end(), {1, 1});
  function.integers.insert(function.integers.end(), {5, 0, 0});
  function.floats.push_back(0.5);
  function.launches.push_back(launch);
}

} // namespace

TEST(Verifier, AcceptsTheToy) {
  const Status status = judge(*toyPlan());
  EXPECT_TRUE(status.isOk()) << status.message();
}

//===----------------------------------------------------------------------===//
// V1 to V3: launches
//===----------------------------------------------------------------------===//

TEST(Verifier, V1ScratchIsWrittenBeforeItIsRead) {
  EXPECT_EQ(rejection([](auto &p) { drop(functionNamed(p, "layer.eval"), 0); }),
            "program forward.eval: call 1 of layer.eval: launch 0, gelu: "
            "operand x (toy.mlir:11) reads byte 0 of region scratch, which no "
            "launch of this call wrote before");
}

TEST(Verifier, V2WrittenOperandsDoNotOverlapOthers) {
  EXPECT_THAT(
      rejection([](auto &p) {
        operandOf(functionNamed(p, "head.backward"), 0, 4).mutate_offset(192);
      }),
      HasSubstr("overlaps operand grad_target, which the kernel writes "
                "too"));
  EXPECT_THAT(
      rejection([](auto &p) {
        operandOf(functionNamed(p, "head.eval"), 0, 6).mutate_offset(256);
      }),
      HasSubstr("head_stats"));
  EXPECT_THAT(rejection([](auto &p) {
                // gemm in place of its input.
                auto &f = functionNamed(p, "layer.eval");
                f.operands[f.launches[0].first_operand() + 2] =
                    f.operands[f.launches[0].first_operand()];
              }),
              HasSubstr("gemm does not work in place of it"));
}

TEST(Verifier, V2InPlaceMeansTheSameBytes) {
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "layer.backward");
                // gelu_grad writes 4 bytes beyond its own input.
                regionNamed(p, "carry").bytes = 256;
                auto &gz = operandOf(f, 0, 2);
                gz.mutate_region(7);
                gz.mutate_offset(4);
              }),
              HasSubstr("in place means the same bytes"));
}

TEST(Verifier, V3LiveBuffersDoNotOverlap) {
  // Something else is written over the second half of z before gelu reads it.
  EXPECT_THAT(
      rejection([](auto &p) {
        auto &f = functionNamed(p, "layer.eval");
        f.buffers.push_back(makeBuffer(plan::Space::Region,
                                       operandOf(f, 0, 2).region(),
                                       BufferType(DataType::F32, {20}), 60));
        f.operands.push_back(static_cast<uint16_t>(f.buffers.size() - 1));
        auto zero = f.launches[0];
        zero.mutate_kernel(static_cast<uint16_t>(Kernel::Zero));
        zero.mutate_first_operand(static_cast<uint32_t>(f.operands.size() - 1));
        f.launches.insert(f.launches.begin() + 1, zero);
      }),
      HasSubstr("reads the result of launch 0, gemm, of which launch "
                "1, zero has overwritten a part"));
}

TEST(Verifier, V3SavedValuesDoNotOverlap) {
  for (int64_t offset : {0, 64, 116}) {
    EXPECT_THAT(rejection([&](auto &p) {
                  operandOf(functionNamed(p, "layer.forward"), 1, 2)
                      .mutate_offset(offset);
                }),
                HasSubstr("overwrites what launch 0, copy saved in pool "
                          "saved.layer"));
  }
}

TEST(Verifier, V3NoResultIsLost) {
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "layer.eval");
                f.launches.insert(f.launches.begin(), f.launches[0]);
              }),
              HasSubstr("overwrites the result of launch 0, gemm before any "
                        "launch read it"));
}

TEST(Verifier, V3ElementTypesAgree) {
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "head.eval");
                auto loss = operandOf(f, 2, 0);
                loss.mutate_data_type(static_cast<uint8_t>(DataType::BF16));
                f.buffers.push_back(loss);
                f.operands[f.launches[2].first_operand()] =
                    static_cast<uint16_t>(f.buffers.size() - 1);
              }),
              HasSubstr("reads as bf16 what launch 1, head_loss wrote as f32"));
}

//===----------------------------------------------------------------------===//
// V4 and V5: actions
//===----------------------------------------------------------------------===//

TEST(Verifier, V4CarryDiesWithItsAction) {
  EXPECT_THAT(rejection([](auto &p) {
                auto &calls = programNamed(p, "forward.eval").calls;
                calls.erase(calls.begin());
              }),
              HasSubstr("reads byte 0 of region carry, which nothing wrote "
                        "before in this action"));
}

TEST(Verifier, V5InputsAreNotWritten) {
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "step.begin");
                f.buffers.push_back(p.inputs[0]->buffer ? *p.inputs[0]->buffer
                                                        : plan::Buffer());
                f.operands[f.launches[0].first_operand()] =
                    static_cast<uint16_t>(f.buffers.size() - 1);
              }),
              HasSubstr("writes input region input"));
}

TEST(Verifier, V5OneStridePerRegion) {
  EXPECT_THAT(
      rejection([](auto &p) {
        operandOf(functionNamed(p, "layer.forward"), 0, 1).mutate_per_slot(256);
      }),
      HasSubstr("has strides 512 per slot and 0 per micro-batch in "
                "region saved.layer, another buffer of the program 256"));
}

//===----------------------------------------------------------------------===//
// V6 to V8: state
//===----------------------------------------------------------------------===//

TEST(Verifier, V6StateDoesNotOverlap) {
  EXPECT_THAT(
      rejection([](auto &p) { p.parameters[2]->weight->mutate_offset(336); }),
      HasSubstr("overlaps the weight of h.1.fc.weight"));
  EXPECT_THAT(rejection([](auto &p) {
                operandOf(functionNamed(p, "step.end"), 2, 3).mutate_region(2);
              }),
              HasSubstr("step.end"));
  EXPECT_THAT(
      rejection([](auto &p) { p.inputs[1]->buffer->mutate_offset(40); }),
      HasSubstr("overlaps input tokens of micro-batch 1"));
}

TEST(Verifier, V6AdamWMatchesWeightAndGradient) {
  EXPECT_THAT(rejection([](auto &p) {
                p.parameters[0]->gradient->mutate_offset(340);
                p.parameters[2]->gradient->mutate_offset(0);
              }),
              HasSubstr("adamw takes the gradient of parameter wte.weight from "
                        "byte 0 of region gradients, it is at byte 340"));
  EXPECT_THAT(rejection([](auto &p) { p.parameters[1]->decay = false; }),
              HasSubstr("h.0.fc.weight with decay true, its own is false"));
}

TEST(Verifier, V6EveryParameterIsUpdated) {
  EXPECT_THAT(rejection([](auto &p) { drop(functionNamed(p, "step.end"), 2); }),
              HasSubstr("no adamw launch updates parameter wte.weight"));
}

TEST(Verifier, V7OnlyAdamWWritesParameters) {
  EXPECT_THAT(
      rejection([](auto &p) {
        operandOf(functionNamed(p, "layer.backward"), 1, 2).mutate_region(0);
      }),
      HasSubstr("writes parameters, which only adamw"));
}

TEST(Verifier, V7BackwardAddsToGradients) {
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "layer.backward");
                f.integers[f.launches[1].first_integer() + 2] = 0;
              }),
              HasSubstr("overwrites gradients"));
}

TEST(Verifier, V8GradientsAreZeroedOnce) {
  EXPECT_THAT(
      rejection([](auto &p) { drop(functionNamed(p, "step.begin"), 0); }),
      HasSubstr("the gradient of parameter wte.weight is not zeroed"));
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "step.begin");
                f.launches.push_back(f.launches[0]);
              }),
              HasSubstr("zeroes gradients a second time"));
}

TEST(Verifier, V8EveryGradientIsComputed) {
  EXPECT_THAT(rejection([](auto &p) {
                auto &calls = programNamed(p, "backward").calls;
                calls.pop_back();
              }),
              HasSubstr("the gradient of parameter wte.weight is not computed "
                        "by any backward"));
}

TEST(Verifier, V8TheNormSeesEveryGradientOnceAndFirst) {
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "step.end");
                f.launches.push_back(f.launches[0]);
              }),
              HasSubstr("adds to the norm gradients a second time"));
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "step.end");
                std::rotate(f.launches.begin(), f.launches.begin() + 2,
                            f.launches.end());
              }),
              HasSubstr("applies gradients that the norm does not hold yet"));
}

//===----------------------------------------------------------------------===//
// V9 to V12: the schedule
//===----------------------------------------------------------------------===//

TEST(Verifier, V9EveryMicroBatchOnce) {
  EXPECT_EQ(rejection([](auto &p) { eraseAt(actionsOf(p, "train"), 4); }),
            "train: backward does not run for micro-batch 1 of 2");
  EXPECT_EQ(rejection([](auto &p) {
              auto &actions = actionsOf(p, "train");
              actions.insert(actions.begin() + 2, actions[1]);
            }),
            "train: action 2, forward(micro-batch 0, slot 0) runs a "
            "second time");
  EXPECT_THAT(rejection([](auto &p) {
                auto &actions = actionsOf(p, "train");
                actions.push_back(actions.back());
              }),
              HasSubstr("end(micro-batch 0, slot 0) runs a second time"));
  EXPECT_THAT(rejection([](auto &p) { actionsOf(p, "eval").pop_back(); }),
              HasSubstr("eval: forward.eval does not run for"));
}

TEST(Verifier, V9PrologueFirstFinishLast) {
  EXPECT_THAT(
      rejection([](auto &p) {
        auto &actions = actionsOf(p, "train");
        std::swap(actions[0], actions[1]);
      }),
      HasSubstr("a Prologue, comes after a run or transfer of a micro-batch"));
  EXPECT_THAT(rejection([](auto &p) {
                auto &actions = actionsOf(p, "train");
                std::swap(actions[4], actions[5]);
              }),
              HasSubstr("a Backward, comes after a Finish"));
}

TEST(Verifier, V10CountersAreSetBeforeTheyAreUsed) {
  EXPECT_THAT(
      rejection([](auto &p) { drop(functionNamed(p, "step.begin"), 1); }),
      HasSubstr("operand target (toy.mlir:17): in run 0 it reads byte 0 of "
                "region counters, which nothing wrote before in this step"));
  EXPECT_THAT(
      rejection([](auto &p) { drop(functionNamed(p, "step.begin"), 3); }),
      HasSubstr("operand seed"));
}

TEST(Verifier, V10TwoPlacesForOneValueAreFound) {
  // Backward takes the labels of micro-batch 1 from beyond the inputs.
  EXPECT_THAT(
      rejection([](auto &p) {
        regionNamed(p, "input").bytes = 256;
        programNamed(p, "backward").arguments[0].mutate_per_micro_batch(48);
      }),
      HasSubstr("operand labels"));
}

TEST(Verifier, V11BackwardFollowsItsForward) {
  EXPECT_THAT(rejection([](auto &p) {
                auto &actions = actionsOf(p, "train");
                std::swap(actions[2], actions[4]);
              }),
              HasSubstr("into which nothing has saved"));
  EXPECT_THAT(rejection([](auto &p) {
                auto &actions = actionsOf(p, "train");
                actions[3].mutate_slot(1);
                actions[4].mutate_slot(0);
              }),
              HasSubstr("which holds micro-batch 1 from action 2"));
}

TEST(Verifier, V11ASlotTooFew) {
  EXPECT_THAT(rejection([](auto &p) {
                actionsOf(p, "train")[2].mutate_slot(0);
                actionsOf(p, "train")[4].mutate_slot(0);
              }),
              HasSubstr("where action 1, forward(micro-batch 0, slot 0) still "
                        "waits for its backward"));
}

TEST(Verifier, V11SlotsDoNotOverlap) {
  EXPECT_THAT(rejection([](auto &p) {
                for (const char *name : {"layer.forward", "layer.backward"}) {
                  for (auto &buffer : functionNamed(p, name).buffers) {
                    if (buffer.per_slot() != 0) {
                      buffer.mutate_per_slot(256);
                    }
                  }
                }
              }),
              HasSubstr("slots of pool saved.layer overlap: they are 256 bytes "
                        "apart, their frames take 504"));
}

TEST(Verifier, V11NoFrameIsLeftOver) {
  EXPECT_THAT(rejection([](auto &p) {
                // The second layer's backward reads the first layer's frame.
                for (auto &buffer :
                     functionNamed(p, "layer.backward").buffers) {
                  buffer.mutate_per_frame(0);
                }
              }),
              HasSubstr("it saves a frame at byte 256 of pool saved.layer that "
                        "backward does not read"));
  EXPECT_THAT(rejection([](auto &p) {
                programNamed(p, "forward").calls[1].mutate_count(1);
              }),
              HasSubstr("in run 1 it reads byte 384 of pool saved.layer, which "
                        "forward has not saved"));
}

TEST(Verifier, V12EveryMicroBatchAddsToTheLoss) {
  EXPECT_THAT(
      rejection([](auto &p) { drop(functionNamed(p, "head.eval"), 2); }),
      HasSubstr("each micro-batch adds 0 times to the sum of loss term lm"));
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "head.eval");
                f.launches.push_back(f.launches[2]);
              }),
              HasSubstr("adds 2 times"));
}

//===----------------------------------------------------------------------===//
// V8, V9: what does not train
//===----------------------------------------------------------------------===//

TEST(Verifier, V8EvaluationLeavesGradientsAlone) {
  EXPECT_THAT(rejection([](auto &p) {
                actionsOf(p, "eval")[0].mutate_program(
                    actionsOf(p, "train")[0].program());
              }),
              HasSubstr("writes gradients, in an entry point that does not "
                        "train"));
}

TEST(Verifier, V9TrainTrains) {
  EXPECT_THAT(rejection([](auto &p) {
                std::swap(p.entry_points[0]->name, p.entry_points[1]->name);
              }),
              HasSubstr("eval: it runs 1 backward programs, expected "
                        "none in an entry point but train"));
}

//===----------------------------------------------------------------------===//
// V14 to V18: values
//===----------------------------------------------------------------------===//

TEST(Verifier, V14OnlyParametersAreReadUnwritten) {
  EXPECT_THAT(rejection([](auto &p) {
                p.parameter_count -= 35;
                p.parameters.erase(p.parameters.begin());
              }),
              HasSubstr("reads byte 0 of region parameters, which belongs to "
                        "no parameter and which nothing wrote"));
}

TEST(Verifier, V14InputsAreReadWhole) {
  EXPECT_THAT(
      rejection([](auto &p) {
        programNamed(p, "forward").arguments[0].mutate_per_micro_batch(0);
      }),
      HasSubstr("reads 24 bytes at byte 0 of region input, 0 bytes on for each "
                "micro-batch: these are not the micro-batch of any input"));
}

TEST(Verifier, V14IdsStayInsideTheirTable) {
  EXPECT_THAT(
      rejection([](auto &p) { p.inputs[0]->limit = 6; }),
      HasSubstr("ids of input tokens are below 6, but the smallest table "
                "that they index has 7 rows"));
}

TEST(Verifier, V14InputsThatIndexNothingHaveNoLimit) {
  const auto withSegments = [](uint64_t limit) {
    return [limit](plan::PlanT &p) {
      regionNamed(p, "input").bytes = 256;
      auto segments = std::make_unique<plan::InputT>(*p.inputs[1]);
      segments->name = "segment_ids";
      segments->buffer->mutate_offset(128);
      segments->limit = limit;
      p.inputs.push_back(std::move(segments));
    };
  };
  auto plan = toyPlan();
  withSegments(2147483647)(*plan);
  const Status status = judge(*plan);
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_THAT(rejection(withSegments(5)),
              HasSubstr("elements of input segment_ids are below 5, but they "
                        "index no table; expected 2147483647"));
}

TEST(Verifier, V14OneLabelIsIgnored) {
  EXPECT_THAT(rejection([](auto &p) { p.ignore_label = -1; }),
              HasSubstr("ignores label -100, the plan -1"));
}

TEST(Verifier, V15RandomNumbersAreUsedOnce) {
  EXPECT_THAT(
      rejection([](auto &p) {
        addDropout(functionNamed(p, "layer.forward"));
        for (auto &call : programNamed(p, "forward").calls) {
          call.mutate_first_application(0);
        }
        addDropout(functionNamed(p, "embed.forward"));
      }),
      HasSubstr("drops out by key 5 in application 0, as another launch "
                "of this forward does"));
}

TEST(Verifier, V15EvaluationDropsNothingOut) {
  EXPECT_THAT(
      rejection([](auto &p) { addDropout(functionNamed(p, "layer.eval")); }),
      HasSubstr("drops out, in an entry point that does not train"));
}

TEST(Verifier, V16EntryPointsAgree) {
  EXPECT_THAT(rejection([](auto &p) {
                programNamed(p, "forward.eval").calls[1].mutate_count(1);
              }),
              HasSubstr("eval: the sum of loss term lm is another function of "
                        "parameters and inputs than in train; the first "
                        "difference is program forward.eval"));
}

TEST(Verifier, V17BackwardIsTheDerivative) {
  // The weights of the layer before.
  EXPECT_THAT(rejection([](auto &p) {
                auto &calls = programNamed(p, "backward").calls;
                calls[1].mutate_reverse(0);
              }),
              HasSubstr("is not the derivative of what forward computes; the "
                        "first difference is program backward: call 1"));
  // The result of another activation.
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "layer.backward");
                f.integers.push_back(1);
                f.launches[0].mutate_first_integer(
                    static_cast<uint32_t>(f.integers.size() - 1));
              }),
              HasSubstr("launch 0, gelu_grad"));
  EXPECT_THAT(
      rejection([](auto &p) { addDropout(functionNamed(p, "layer.forward")); }),
      HasSubstr("is not the derivative"));
}

TEST(Verifier, V17TheSeedIsWeightOverCount) {
  EXPECT_THAT(rejection([](auto &p) { p.loss_terms[0]->weight = 2; }),
              HasSubstr("is not the derivative"));
}

TEST(Verifier, V17TheCountIsOfTheLabels) {
  EXPECT_THAT(rejection([](auto &p) {
                // The prologues count the tokens.
                for (const char *name : {"begin", "begin.eval"}) {
                  programNamed(p, name).arguments[0].mutate_offset(0);
                }
              }),
              HasSubstr("the count of loss term lm is of other labels than its "
                        "sum"));
}

TEST(Verifier, V18TheNormIsOfThisStep) {
  EXPECT_THAT(rejection([](auto &p) {
                auto &f = functionNamed(p, "step.end");
                f.integers[f.launches[0].first_integer()] = 1;
              }),
              HasSubstr("operand total"));
}

TEST(Verifier, V18AdamWScalesByTheNorm) {
  // By the seed of the loss instead.
  EXPECT_THAT(
      rejection([](auto &p) {
        auto &f = functionNamed(p, "step.end");
        f.buffers.push_back(operandOf(functionNamed(p, "step.begin"), 3, 1));
        f.operands[f.launches[2].first_operand() + 4] =
            static_cast<uint16_t>(f.buffers.size() - 1);
      }),
      HasSubstr("adamw: operand weight (toy.mlir:1) scales by what is not the "
                "clip_scale of the norm of all gradients"));
}

//===----------------------------------------------------------------------===//

TEST(Verifier, WorkGrowsWithActionsNotWithLayersTimesActions) {
  const std::unique_ptr<plan::PlanT> plan = toyPlan();
  constexpr uint32_t kLayers = 128;
  constexpr uint32_t kBatches = 512;
  // Layers beyond the second have weights of their own, appended.
  const int64_t extra = (kLayers - 2) * 100;
  for (const char *name : {"parameters", "gradients", "moments", "variances"}) {
    regionNamed(*plan, name).bytes += extra;
  }
  plan->parameters[1]->count = kLayers;
  plan->parameter_count += extra / 4;
  for (auto *buffer : {plan->parameters[2]->weight.get(),
                       plan->parameters[2]->gradient.get()}) {
    buffer->mutate_offset(buffer->offset() + extra);
  }
  for (const char *name : {"head.forward", "head.backward", "head.eval"}) {
    for (auto &buffer : functionNamed(*plan, name).buffers) {
      if (buffer.space() == 0 && buffer.region() < 2) {
        buffer.mutate_offset(buffer.offset() + extra);
      }
    }
  }
  for (const char *name : {"step.begin", "step.end"}) {
    for (auto &buffer : functionNamed(*plan, name).buffers) {
      if (buffer.space() == 0 && buffer.region() < 4) {
        buffer.mutable_dims()->Mutate(0, 120 + extra / 4);
        buffer.mutate_row_stride(120 + extra / 4);
      }
    }
  }
  for (const char *name : {"layer.forward", "layer.backward"}) {
    for (auto &buffer : functionNamed(*plan, name).buffers) {
      if (buffer.per_slot() != 0) {
        buffer.mutate_per_slot(kLayers * 256);
      }
    }
  }
  regionNamed(*plan, "saved.layer").bytes = 2 * kLayers * 256;
  for (auto &program : plan->programs) {
    for (auto &call : program->calls) {
      if (call.count() == 2) {
        call.mutate_count(kLayers);
      }
    }
  }
  plan->global_batch_size = 2 * kBatches;
  regionNamed(*plan, "input").bytes = kBatches * 48;
  for (const char *name :
       {"begin", "forward", "backward", "begin.eval", "forward.eval"}) {
    for (auto &buffer : programNamed(*plan, name).arguments) {
      if (buffer.region() == 9) {
        buffer.mutate_offset(buffer.offset() == 0 ? 0 : kBatches * 24);
        if (buffer.dims()->Get(0) == 4) {
          buffer.mutable_dims()->Mutate(0, 2 * kBatches);
        }
      }
    }
  }
  for (const char *name : {"step.begin", "step.begin.eval"}) {
    auto &function = functionNamed(*plan, name);
    function.arguments[0].mutable_dims()->Mutate(0, 2 * kBatches);
    function.buffers[0].mutable_dims()->Mutate(0, 2 * kBatches);
  }
  plan->inputs[1]->buffer->mutate_offset(kBatches * 24);
  for (const char *entry : {"train", "eval"}) {
    auto &actions = actionsOf(*plan, entry);
    const std::vector<plan::Action> old = actions;
    actions = {old.front()};
    for (uint32_t m = 0; m < kBatches; ++m) {
      actions.emplace_back(old[1].program(), m, 0, 0);
      if (old.size() > 3) {
        actions.emplace_back(old[3].program(), m, 0, 0);
      }
    }
    if (old.size() > 3) {
      actions.push_back(old.back());
    }
  }
  plan->entry_points[0]->micro_batches = kBatches;
  plan->entry_points[1]->micro_batches = kBatches;
  const auto start = std::chrono::steady_clock::now();
  const Status status = judge(*plan);
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  EXPECT_TRUE(status.isOk()) << status.message();
  EXPECT_LT(took.count(), 1.0);
}
