//===- LatticeTest.cpp - Layouts, launch by launch and read by read -------===//
#include "runtime/plan/Kernels.h"
#include "runtime/plan/Layout.h"
#include "test/runtime/plan/ToyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

using namespace mega;
using testing::HasSubstr;

namespace {

enum LayoutNumber : uint8_t { kWhole, kRows, kTokens, kSum };

plan::Layout cutOverDp(uint8_t rank) {
  plan::Layout layout;
  layout.mutate_rank(rank);
  plan::LayoutDimension &dim = *layout.mutable_dims()->GetMutablePointer(0);
  dim.mutate_count(1);
  dim.mutable_axes()->Mutate(0, static_cast<uint8_t>(Axis::Dp));
  return layout;
}

/// Regions of toy.json.
enum Region : uint32_t { kGradients = 1, kCounters = 4, kScratch = 8 };
constexpr int64_t kLossSum = 0, kCount = 8;

/// What every buffer of a data-parallel toy is: batches are cut, what sums over
/// them is a sum, the rest is whole.
uint8_t layoutIn(const plan::Buffer &buffer) {
  const bool tokens = buffer.rank() == 2 && buffer.dims()->Get(1) == 3;
  if (buffer.rank() == 3 || tokens) {
    return buffer.rank() == 3 ? kRows : kTokens;
  }
  if (buffer.space() == 0 && buffer.region() == kGradients) {
    return kSum;
  }
  return kWhole;
}

void allReduce(plan::FunctionT &function, size_t at, plan::Buffer buffer) {
  const plan::Launch launch(static_cast<uint16_t>(Kernel::AllReduce), 0, 7,
                            static_cast<uint32_t>(function.operands.size()),
                            static_cast<uint32_t>(function.integers.size()), 0);
  function.launches.insert(
      function.launches.begin() + static_cast<std::ptrdiff_t>(at), launch);
  for (const uint8_t layout : {kSum, kWhole}) {
    buffer.mutate_layout(layout);
    function.operands.push_back(static_cast<uint16_t>(function.buffers.size()));
    function.buffers.push_back(buffer);
  }
  function.integers.insert(function.integers.end(), {0, 0});
}

/// Gives an operand a buffer of its own, with this layout.
void setLayout(plan::FunctionT &function, size_t launch, size_t operand,
               uint8_t layout) {
  plan::Buffer buffer = operandOf(function, launch, operand);
  buffer.mutate_layout(layout);
  function.operands[function.launches[launch].first_operand() + operand] =
      static_cast<uint16_t>(function.buffers.size());
  function.buffers.push_back(buffer);
}

/// A function of one reduction; its number.
uint32_t addReduction(plan::PlanT &plan, std::string name,
                      const plan::Buffer &buffer) {
  auto function = std::make_unique<plan::FunctionT>();
  function->name = std::move(name);
  allReduce(*function, 0, buffer);
  plan.functions.push_back(std::move(function));
  return static_cast<uint32_t>(plan.functions.size() - 1);
}

size_t launchOf(const plan::FunctionT &function, Kernel kernel) {
  size_t at = 0;
  while (function.launches.at(at).kernel() != static_cast<uint16_t>(kernel)) {
    ++at;
  }
  return at;
}

/// The toy on two replicas.
std::unique_ptr<plan::PlanT> replicas() {
  std::unique_ptr<plan::PlanT> plan = toyPlan();
  plan->mesh = {plan::Axis(static_cast<uint8_t>(Axis::Dp), 2)};
  plan->global_batch_size = 8;
  plan::Group group;
  group.mutate_count(1);
  group.mutable_axes()->Mutate(0, static_cast<uint8_t>(Axis::Dp));
  plan->groups = {group};
  plan::Layout sum;
  sum.mutate_partial(1u << static_cast<int>(Axis::Dp));
  plan->layouts = {plan::Layout(), cutOverDp(3), cutOverDp(2), sum};
  const auto set = [](plan::Buffer &buffer) {
    buffer.mutate_layout(layoutIn(buffer));
  };
  for (auto &function : plan->functions) {
    std::ranges::for_each(function->arguments, set);
    std::ranges::for_each(function->buffers, set);
    for (size_t l = 0; l < function->launches.size(); ++l) {
      switch (static_cast<Kernel>(function->launches[l].kernel())) {
      case Kernel::HeadLoss:
        setLayout(*function, l, 4, kSum);
        break;
      case Kernel::Accumulate:
        setLayout(*function, l, 0, kSum);
        setLayout(*function, l, 1, kSum);
        break;
      case Kernel::CountValid:
        setLayout(*function, l, 1, kSum);
        break;
      case Kernel::SumSquares:
        setLayout(*function, l, 0, kWhole);
        break;
      case Kernel::AdamW:
        setLayout(*function, l, 1, kWhole);
        break;
      default:
        break;
      }
    }
  }
  for (auto &program : plan->programs) {
    std::ranges::for_each(program->arguments, set);
  }
  for (auto &input : plan->inputs) {
    set(*input->buffer);
  }
  for (auto &parameter : plan->parameters) {
    parameter->gradient->mutate_layout(kSum);
  }
  // Counts in the prologue; gradients and the loss at the end of a step.
  for (const char *name : {"step.begin", "step.begin.eval"}) {
    plan::FunctionT &begin = functionNamed(*plan, name);
    allReduce(begin, launchOf(begin, Kernel::CountValid) + 1,
              makeBuffer(plan::Space::Region, kCounters,
                         BufferType(DataType::I64, {}), kCount));
  }
  const plan::Buffer bucket = operandOf(functionNamed(*plan, "step.end"), 0, 0);
  const plan::Buffer loss = makeBuffer(plan::Space::Region, kCounters,
                                       BufferType(DataType::F64, {}), kLossSum);
  const plan::Call ofGradients(addReduction(*plan, "reduce", bucket), 1, 0, 0,
                               0, 0, 0);
  const plan::Call ofLosses(addReduction(*plan, "losses", loss), 1, 0, 0, 0, 0,
                            0);
  const uint32_t last = actionsOf(*plan, "train").back().program();
  auto &calls = plan->programs[last]->calls;
  calls.insert(calls.begin(), ofGradients);
  calls.push_back(ofLosses);
  auto program = std::make_unique<plan::ProgramT>();
  program->name = "end.eval";
  program->kind = plan::ActionKind::Finish;
  program->calls = {ofLosses};
  actionsOf(*plan, "eval")
      .emplace_back(static_cast<uint32_t>(plan->programs.size()), 0, 0, 0);
  plan->programs.push_back(std::move(program));
  return plan;
}

std::string refusal(const std::function<void(plan::PlanT &)> &change) {
  const std::unique_ptr<plan::PlanT> plan = replicas();
  change(*plan);
  const Status status = judge(*plan);
  return status.isOk() ? "" : status.message();
}

void drop(plan::FunctionT &function, size_t launch) {
  function.launches.erase(function.launches.begin() +
                          static_cast<std::ptrdiff_t>(launch));
}

TEST(Lattice, AcceptsReplicas) {
  EXPECT_EQ(refusal([](auto &) {}), "");
}

TEST(Lattice, EveryReductionIsNeeded) {
  EXPECT_THAT(
      refusal([](auto &p) { drop(functionNamed(p, "reduce"), 0); }),
      HasSubstr("over dp partial does not become replicated without a launch"));
  EXPECT_THAT(refusal([](auto &p) {
                plan::FunctionT &begin = functionNamed(p, "step.begin");
                drop(begin, launchOf(begin, Kernel::AllReduce));
              }),
              HasSubstr("without a launch"));
  EXPECT_THAT(refusal([](auto &p) { drop(functionNamed(p, "losses"), 0); }),
              HasSubstr("the sum of loss term lm: it ends up with layout "
                        "[partial = {dp}]"));
}

TEST(Lattice, NothingIsReducedTwice) {
  EXPECT_THAT(refusal([](auto &p) {
                plan::FunctionT &reduce = functionNamed(p, "reduce");
                reduce.launches.push_back(reduce.launches[0]);
              }),
              HasSubstr("over dp replicated does not become partial"));
}

TEST(Lattice, AMicroBatchAddsToWhatWasNotReduced) {
  // In the backward, after the first micro-batch already.
  EXPECT_THAT(refusal([](auto &p) {
                plan::FunctionT &reduce = functionNamed(p, "reduce");
                const plan::Buffer bucket = operandOf(reduce, 0, 0);
                drop(reduce, 0);
                plan::FunctionT &last = functionNamed(p, "embed.backward");
                allReduce(last, last.launches.size(), bucket);
              }),
              testing::Not(""));
}

TEST(Lattice, RulesHoldForEveryLaunch) {
  EXPECT_THAT(refusal([](auto &p) {
                plan::FunctionT &f = functionNamed(p, "layer.backward");
                operandOf(f, 1, 2).mutate_layout(kWhole);
              }),
              HasSubstr("launch 1, gemm"));
  EXPECT_THAT(refusal([](auto &p) {
                operandOf(functionNamed(p, "embed.forward"), 0, 0)
                    .mutate_layout(kWhole);
              }),
              testing::Not(""));
}

TEST(Lattice, PlansStateTheirLayoutsWell) {
  EXPECT_THAT(
      refusal([](auto &p) { p.layouts[1].mutable_reserved()->Mutate(0, 1); }),
      HasSubstr("layout 1: reserved byte is 1"));
  EXPECT_THAT(refusal([](auto &p) { p.layouts[0] = p.layouts[3]; }),
              HasSubstr("layout 0 is [partial = {dp}], expected invariant"));
  EXPECT_THAT(refusal([](auto &p) { p.layouts[3].mutate_partial(1); }),
              HasSubstr("partial: tp has one rank in the plan's mesh"));
  EXPECT_THAT(refusal([](auto &p) { p.groups[0].mutate_count(0); }),
              HasSubstr("group 0: count of axes is 0, expected 1 to 7"));
  EXPECT_THAT(refusal([](auto &p) { p.groups.clear(); }),
              HasSubstr("all_reduce: group 0 of 0"));
  EXPECT_THAT(refusal([](auto &p) {
                functionNamed(p, "embed.forward").buffers[2].mutate_layout(1);
              }),
              HasSubstr("layout 1: the layout has 3 dimensions but the tensor "
                        "2"));
}

TEST(Lattice, IntegersDependOnTheRankAsThePieceDoes) {
  plan::CoordinateTerm term;
  term.mutate_axis(static_cast<uint8_t>(Axis::Dp));
  term.mutate_coefficient(7);
  EXPECT_THAT(refusal([&](auto &p) {
                functionNamed(p, "embed.forward").terms = {term};
              }),
              HasSubstr("first_row is 0 + 7 dp, its operand's piece demands "
                        "0"));
  term.mutate_integer(1);
  EXPECT_THAT(refusal([&](auto &p) {
                functionNamed(p, "embed.forward").terms = {term};
              }),
              HasSubstr("rows is 7 + 7 dp"));
  term.mutate_coefficient(-7);
  EXPECT_THAT(refusal([&](auto &p) {
                functionNamed(p, "embed.forward").terms = {term};
              }),
              HasSubstr("coefficient is -7, expected 1 to"));
}

TEST(Lattice, PiecesOfAVectorFollowEachOther) {
  const auto piece = [](plan::PlanT &p) -> plan::Buffer & {
    return operandOf(functionNamed(p, "step.end"), 0, 0);
  };
  EXPECT_THAT(refusal([&](auto &p) { piece(p).mutate_axes(bit(Axis::Dp)); }),
              HasSubstr("axes without per_piece is 16"));
  EXPECT_THAT(refusal([&](auto &p) {
                piece(p).mutate_axes(bit(Axis::Dp));
                piece(p).mutate_per_piece(8);
              }),
              HasSubstr("per_piece is 8, a piece has 480 bytes"));
}

/// Puts a launch on `buffers` before launch `at` of a function.
void insert(plan::FunctionT &function, size_t at, Kernel kernel,
            const std::vector<plan::Buffer> &buffers,
            const std::vector<int64_t> &integers) {
  const plan::Launch launch(static_cast<uint16_t>(kernel), 0, 7,
                            static_cast<uint32_t>(function.operands.size()),
                            static_cast<uint32_t>(function.integers.size()), 0);
  function.launches.insert(
      function.launches.begin() + static_cast<std::ptrdiff_t>(at), launch);
  for (const plan::Buffer &buffer : buffers) {
    function.operands.push_back(static_cast<uint16_t>(function.buffers.size()));
    function.buffers.push_back(buffer);
  }
  function.integers.insert(function.integers.end(), integers.begin(),
                           integers.end());
}

TEST(Lattice, ZigzagPiecesAreNotInPlace) {
  // Every rank's half of the weights, gathered at the end of a step.
  const auto gathered = [](int64_t zigzag) {
    return refusal([&](plan::PlanT &p) {
      p.layouts.push_back(cutOverDp(1));
      plan::FunctionT &end = functionNamed(p, "step.end");
      const plan::Buffer all = operandOf(end, end.launches.size() - 1, 0);
      plan::Buffer piece = all;
      piece.mutable_dims()->Mutate(0, 60);
      piece.mutate_row_stride(60);
      piece.mutate_layout(static_cast<uint8_t>(p.layouts.size() - 1));
      piece.mutate_axes(bit(Axis::Dp));
      piece.mutate_per_piece(240);
      regionNamed(p, "scratch").bytes = 1024;
      const plan::Buffer scratch =
          makeBuffer(plan::Space::Region, kScratch,
                     BufferType(DataType::F32, {zigzag != 0 ? 120 : 1}), 512);
      insert(end, end.launches.size(), Kernel::AllGather, {piece, all, scratch},
             {0, 0, zigzag});
    });
  };
  EXPECT_EQ(gathered(0), "");
  EXPECT_THAT(gathered(1),
              HasSubstr("all_gather: operand y (toy.mlir:1) overlaps operand "
                        "x, which the kernel reads: all_gather does not work "
                        "in place of it in zigzag, whose pieces are two runs "
                        "each"));
}

TEST(Lattice, AllToAllGoesBetweenTheCutsOfItsLayouts) {
  // Embeddings go to pieces of rows and back.
  const auto moved = [](int dim, int64_t toDim) {
    return refusal([&](plan::PlanT &p) {
      p.mesh = {plan::Axis(static_cast<uint8_t>(Axis::Dp), 3)};
      p.global_batch_size = 12;
      plan::Layout cut;
      cut.mutate_rank(3);
      plan::LayoutDimension &d =
          *cut.mutable_dims()->GetMutablePointer(static_cast<uint32_t>(dim));
      d.mutate_count(1);
      d.mutable_axes()->Mutate(0, static_cast<uint8_t>(Axis::Dp));
      p.layouts.push_back(cut);
      regionNamed(p, "scratch").bytes = 2048;
      const auto at = [](const BufferType &type, int64_t offset,
                         uint8_t layout) {
        plan::Buffer buffer =
            makeBuffer(plan::Space::Region, kScratch, type, offset);
        buffer.mutate_layout(layout);
        return buffer;
      };
      const BufferType rows(DataType::F32, {2, 3, 5});
      const BufferType columns(DataType::F32, {6, 1, 5});
      const plan::Buffer a = at(rows, 512, kRows);
      const plan::Buffer b =
          at(columns, 1024, static_cast<uint8_t>(p.layouts.size() - 1));
      const plan::Buffer scratch =
          at(BufferType(DataType::F32, {30}), 1536, kWhole);
      plan::FunctionT &f = functionNamed(p, "embed.forward");
      const plan::Buffer y = operandOf(f, 0, 2);
      f.operands[f.launches[0].first_operand() + 2] =
          static_cast<uint16_t>(f.buffers.size());
      f.buffers.push_back(a);
      insert(f, 1, Kernel::AllToAll, {a, b, scratch}, {0, 0, toDim, 0, 0});
      insert(f, 2, Kernel::AllToAll, {b, y, scratch}, {0, 1, 0, 0, 0});
    });
  };
  EXPECT_EQ(moved(1, 1), "");
  EXPECT_THAT(moved(2, 1),
              HasSubstr("launch 1, all_to_all (toy.mlir:1): it goes from "
                        "dimension 0 to 1, the layouts from 0 to 2"));
  EXPECT_THAT(moved(1, 2), HasSubstr("all_to_all: x is 2x3x5xf32 but y is "
                                     "6x1x5xf32"));
}

} // namespace
