#include "runtime/plan/Kernels.h"
#include "test/runtime/plan/ToyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

using namespace mega;
using testing::HasSubstr;

namespace {

/// Changes the toy and loads it: the message of the refusal.
std::string rejection(const std::function<void(plan::PlanT &)> &change) {
  const std::unique_ptr<plan::PlanT> plan = toyPlan();
  change(*plan);
  auto loaded = loadPlan(packPlan(*plan));
  EXPECT_FALSE(loaded.isOk()) << "accepted";
  if (loaded.isOk()) {
    return "";
  }
  EXPECT_EQ(loaded.status().code(), Code::BadInput);
  return loaded.status().message();
}

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

} // namespace

TEST(PlanCheck, Names) {
  EXPECT_EQ(rejection([](auto &p) { p.regions[1]->name = "parameters"; }),
            "two regions are called parameters");
  EXPECT_EQ(rejection([](auto &p) { p.functions[1]->name = "a b"; }),
            "name of function 1 holds byte 32, expected printable ASCII");
  EXPECT_EQ(rejection([](auto &p) { p.programs[2]->name = "forward"; }),
            "two programs are called forward");
  EXPECT_EQ(rejection([](auto &p) { p.programs[2]->name.clear(); }),
            "name of program 2 has 0 characters, expected 1 to 512");
  EXPECT_EQ(rejection([](auto &p) { p.parameters[2]->name = "wte.weight"; }),
            "two parameters are called wte.weight");
  EXPECT_EQ(rejection([](auto &p) { p.entry_points[1]->name = "train"; }),
            "two entry points are called train");
}

TEST(PlanCheck, Identity) {
  EXPECT_THAT(rejection([](auto &p) { p.model.clear(); }),
              HasSubstr("the model's name has 0 characters"));
  EXPECT_THAT(rejection([](auto &p) { p.vocabulary = 0; }),
              HasSubstr("vocabulary is 0"));
  EXPECT_THAT(rejection([](auto &p) { p.mesh = {plan::Axis(9, 2)}; }),
              HasSubstr("mesh axis is 9, expected 0 to 6"));
  EXPECT_THAT(rejection([](auto &p) { p.global_batch_size = 5; }),
              HasSubstr("2 micro-batches of 2 on 1 replicas are a batch of 4, "
                        "not 5"));
}

TEST(PlanCheck, Regions) {
  EXPECT_THAT(rejection([](auto &p) { p.regions[0]->bytes = UINT64_MAX; }),
              HasSubstr("region parameters has 18446744073709551615 bytes"));
  EXPECT_THAT(rejection([](auto &p) {
                p.regions[0]->part = static_cast<plan::Part>(77);
              }),
              HasSubstr("region parameters: part is 77, expected 0 to 9"));
  EXPECT_THAT(rejection([](auto &p) { p.regions[0]->copies = 2; }),
              HasSubstr("region parameters: copies is 2, expected 1 to 1"));
  EXPECT_THAT(rejection([](auto &p) {
                for (auto &region : p.regions) {
                  region->bytes = uint64_t{1} << 46;
                }
              }),
              HasSubstr("add up to more than"));
}

TEST(PlanCheck, Addresses) {
  EXPECT_EQ(rejection([](auto &p) { regionNamed(p, "scratch").bytes = 383; }),
            "function head.forward: buffer 7: f32 ends at byte 388 of region "
            "scratch, which has 383 (instance 0, slot 0, frame 0, micro-batch "
            "0)");
  EXPECT_THAT(
      rejection([](auto &p) { regionNamed(p, "saved.layer").bytes = 503; }),
      HasSubstr("program forward: call 1 of layer.forward: buffer 2"));
  EXPECT_THAT(
      rejection([](auto &p) { actionsOf(p, "train")[2].mutate_slot(2); }),
      HasSubstr("slot 2"));
  EXPECT_THAT(rejection([](auto &p) {
                functionNamed(p, "layer.eval").buffers[2].mutate_offset(2);
              }),
              HasSubstr("offset is 2, not a multiple of the 4 bytes"));
  for (auto mutate :
       {&plan::Buffer::mutate_offset, &plan::Buffer::mutate_per_instance,
        &plan::Buffer::mutate_per_slot, &plan::Buffer::mutate_per_frame,
        &plan::Buffer::mutate_per_micro_batch}) {
    for (int64_t value : {kHuge - 7, -kHuge - 1, int64_t{-8}}) {
      EXPECT_THAT(rejection([&](auto &p) {
                    (functionNamed(p, "layer.forward").buffers[2].*
                     mutate)(value);
                  }),
                  HasSubstr("expected 0 to"));
    }
  }
  // 2^32 instances of 2^47 bytes: more than 64 bits.
  EXPECT_THAT(
      rejection([](auto &p) {
        functionNamed(p, "layer.forward")
            .buffers[2]
            .mutate_per_instance(int64_t{1} << 47);
        programNamed(p, "forward").calls[1].mutate_first_instance(UINT32_MAX);
      }),
      HasSubstr("instance 4294967296"));
}

TEST(PlanCheck, Shapes) {
  EXPECT_THAT(rejection([](auto &p) {
                functionNamed(p, "layer.eval").buffers[2].mutate_rank(5);
              }),
              HasSubstr("rank is 5, expected 0 to 4"));
  EXPECT_THAT(rejection([](auto &p) {
                functionNamed(p, "layer.eval").buffers[2].mutate_data_type(9);
              }),
              HasSubstr("element type is 9, expected 0 to 4"));
  EXPECT_THAT(rejection([](auto &p) {
                functionNamed(p, "layer.eval")
                    .buffers[2]
                    .mutable_dims()
                    ->Mutate(1, int64_t{1} << 62);
              }),
              HasSubstr("dimension 1 is"));
  EXPECT_THAT(rejection([](auto &p) {
                functionNamed(p, "layer.eval").buffers[2].mutate_row_stride(4);
              }),
              HasSubstr("row stride is 4, expected 5"));
}

TEST(PlanCheck, Launches) {
  const auto launch = [](plan::PlanT &p) -> plan::Launch & {
    return functionNamed(p, "layer.forward").launches[1];
  };
  EXPECT_THAT(rejection([&](auto &p) { launch(p).mutate_kernel(999); }),
              HasSubstr("function layer.forward: launch 1: kernel 999 of 61"));
  EXPECT_THAT(rejection([&](auto &p) {
                launch(p).mutate_kernel(static_cast<int>(Kernel::Gelu));
              }),
              HasSubstr("gelu"));
  EXPECT_THAT(rejection([&](auto &p) { launch(p).mutate_location(1000); }),
              HasSubstr("location 1000 of"));
  EXPECT_THAT(
      rejection([&](auto &p) { launch(p).mutate_first_operand(UINT32_MAX); }),
      HasSubstr("gemm: operands 4294967295 to 4294967298 of 7"));
  EXPECT_THAT(rejection([&](auto &p) { launch(p).mutate_first_integer(2); }),
              HasSubstr("gemm: integers 2 to 5 of 4"));
  EXPECT_THAT(rejection([&](auto &p) {
                functionNamed(p, "layer.forward").operands[3] = 99;
              }),
              HasSubstr("gemm: operand b is buffer 99 of 5"));
}

TEST(PlanCheck, Calls) {
  const auto call = [](plan::PlanT &p) -> plan::Call & {
    return programNamed(p, "forward").calls[1];
  };
  EXPECT_THAT(rejection([&](auto &p) { call(p).mutate_function(99); }),
              HasSubstr("program forward: call 1: function 99 of"));
  EXPECT_THAT(rejection([&](auto &p) { call(p).mutate_count(0); }),
              HasSubstr("layer.forward runs 0 times"));
  EXPECT_THAT(rejection([&](auto &p) { call(p).mutate_count(UINT32_MAX); }),
              HasSubstr("run 4294967296 functions"));
  EXPECT_THAT(rejection([&](auto &p) { call(p).mutate_reverse(2); }),
              HasSubstr("reverse is 2"));
  EXPECT_THAT(rejection([&](auto &p) { call(p).mutate_first_argument(5); }),
              HasSubstr("takes 2 arguments, the program has 6 from number 5"));
  EXPECT_THAT(rejection([&](auto &p) { call(p).mutate_first_argument(4); }),
              HasSubstr("argument 1 of layer.forward is 2x3xi32, expected "
                        "2x3x5xf32"));
}

TEST(PlanCheck, Actions) {
  EXPECT_THAT(
      rejection([](auto &p) { actionsOf(p, "train")[1].mutate_program(6); }),
      HasSubstr("entry point train: stage 0: action 1: program 6 of 6"));
  EXPECT_THAT(rejection([](auto &p) {
                actionsOf(p, "train")[1].mutate_micro_batch(2);
              }),
              HasSubstr("forward of micro-batch 2 of 2"));
  EXPECT_THAT(
      rejection([](auto &p) { p.programs[0]->kind = plan::ActionKind::Setup; }),
      HasSubstr("begin is a setup"));
  EXPECT_THAT(rejection([](auto &p) { p.entry_points[0]->stages.clear(); }),
              HasSubstr("it has 0 stages, expected 1"));
}

TEST(PlanCheck, State) {
  EXPECT_THAT(rejection([](auto &p) { p.parameters[0]->shape = {7, 4}; }),
              HasSubstr("a rank has 7x4 of"));
  EXPECT_THAT(rejection([](auto &p) { p.parameters[0]->gradient.reset(); }),
              HasSubstr("parameter 0: gradient: the buffer is missing"));
  EXPECT_THAT(rejection([](auto &p) { p.parameters[1]->count = 3; }),
              HasSubstr("parameter_count is 120, the parameters have 145"));
  EXPECT_THAT(rejection([](auto &p) { p.parameters[0]->value = NAN; }),
              HasSubstr("expected a finite standard deviation"));
  EXPECT_THAT(rejection([](auto &p) { p.parameter_count = 1; }),
              HasSubstr("parameter_count is 1"));
  EXPECT_THAT(rejection([](auto &p) { p.inputs[0]->limit = 8; }),
              HasSubstr("ids of input tokens are below 8, expected 1 to 7"));
  EXPECT_THAT(rejection([](auto &p) {
                p.inputs[1]->name = "positions";
                p.inputs[1]->limit = uint64_t{1} << 31;
              }),
              HasSubstr("ids of input positions are below 2147483648, expected "
                        "1 to 2147483647"));
  EXPECT_THAT(rejection([](auto &p) { p.sequence_length = 4; }),
              HasSubstr("input tokens is 2x3xi32, expected 2x4xi32"));
  EXPECT_THAT(rejection([](auto &p) { p.loss_terms.clear(); }),
              HasSubstr("no loss term"));
  EXPECT_THAT(
      rejection([](auto &p) { p.loss_terms[0]->sum->mutate_data_type(0); }),
      HasSubstr("it is f32, expected one f64"));
}
