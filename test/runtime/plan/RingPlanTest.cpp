//===- RingPlanTest.cpp - A ring in a plan: groups, bytes, values ---------===//
#include "runtime/plan/Communication.h"
#include "runtime/plan/KernelValues.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/SequenceOrder.h"
#include "runtime/plan/Verifier.h"
#include "test/runtime/plan/CutLayout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

using namespace mega;
using testing::HasSubstr;

namespace {

constexpr DataType kB = DataType::BF16, kF = DataType::F32;
const BufferType kQ(kB, {1, 8, 4, 2}), kK(kB, {1, 8, 2, 2});
const BufferType kLse(kF, {1, 4, 8});
const BufferType kOwn(DataType::I32, {1, 8}), kAll(DataType::I32, {1, 16});
constexpr int64_t kRanks = 2;

/// The operands of ring_attention or its gradient.
std::vector<BufferType> typesOf(bool gradient) {
  std::vector<BufferType> types = {kQ,   kK,   kK, kOwn, kOwn,
                                   kAll, kAll, kQ, kLse};
  if (gradient) {
    types.insert(types.begin(), kQ);
    types.insert(types.end(), {kQ, kK, kK});
  }
  types.emplace_back(kB,
                     std::initializer_list<int64_t>{ringScratch(kK, kRanks)});
  types.emplace_back(
      kF, std::initializer_list<int64_t>{gradient ? ringGradSums(kQ, kK, kRanks)
                                                  : ringSums(kQ)});
  return types;
}

Layout cutOverCp(int rank, int dim, bool zigzag) {
  Layout layout = test::cut(rank, dim, {Axis::Cp});
  layout.dims[static_cast<size_t>(dim)].zigzag = zigzag;
  return layout;
}

plan::Layout stored(const Layout &layout) {
  plan::Layout result;
  result.mutate_rank(layout.rank);
  for (uint32_t d = 0; d < layout.rank; ++d) {
    plan::LayoutDimension &dim = *result.mutable_dims()->GetMutablePointer(d);
    dim.mutate_count(layout.dims[d].count);
    if (layout.dims[d].zigzag) {
      result.mutate_zigzag(static_cast<uint8_t>(result.zigzag() | 1U << d));
    }
    for (uint32_t a = 0; a < layout.dims[d].count; ++a) {
      dim.mutable_axes()->Mutate(a,
                                 static_cast<uint8_t>(layout.dims[d].axes[a]));
    }
  }
  return result;
}

plan::Group group(Axis axis) {
  plan::Group result(1);
  result.mutable_axes()->Mutate(0, static_cast<uint8_t>(axis));
  return result;
}

/// One forward and one backward, each of a launch, on cp 2 and dp 2. Groups are
/// dp, cp.
class RingPlan {
public:
  /// Layouts are zigzag if `order` is. `rows`: the plan's order, if another.
  explicit RingPlan(int64_t groupNumber = 1,
                    SequenceOrder order = SequenceOrder::Zigzag,
                    std::optional<SequenceOrder> rows = {}) {
    const bool zigzag = order == SequenceOrder::Zigzag;
    plan::PlanT plan;
    plan.sequence_order = static_cast<uint8_t>(rows.value_or(order));
    plan.mesh = {plan::Axis(static_cast<uint8_t>(Axis::Dp), 2),
                 plan::Axis(static_cast<uint8_t>(Axis::Cp), 2)};
    plan.groups = {group(Axis::Dp), group(Axis::Cp)};
    plan.locations = {"ring"};
    plan.layouts = {plan::Layout(), stored(cutOverCp(4, 1, zigzag)),
                    stored(cutOverCp(2, 1, zigzag)),
                    stored(cutOverCp(3, 2, zigzag))};
    auto entry = std::make_unique<plan::EntryPointT>();
    entry->stages.push_back(std::make_unique<plan::StageT>());
    for (const bool gradient : {false, true}) {
      auto function = std::make_unique<plan::FunctionT>();
      function->name = gradient ? "backward" : "forward";
      for (const BufferType &type : typesOf(gradient)) {
        plan::Buffer buffer = makeBuffer(plan::Space::Region, 0, type);
        buffer.mutate_layout(type.rank == 4   ? 1
                             : type.rank == 3 ? 3
                             : type == kOwn   ? 2
                                              : 0);
        function->operands.push_back(
            static_cast<uint16_t>(function->buffers.size()));
        function->buffers.push_back(buffer);
      }
      function->integers = {
          groupNumber, static_cast<int64_t>(order), 1, 0, 7, 0};
      function->floats = {0.5, 0, 0};
      function->launches = {plan::Launch(
          static_cast<uint16_t>(gradient ? Kernel::RingAttentionGrad
                                         : Kernel::RingAttention),
          0, 0, 0, 0, 0)};
      auto program = std::make_unique<plan::ProgramT>();
      program->name = function->name;
      program->kind =
          gradient ? plan::ActionKind::Backward : plan::ActionKind::Forward;
      const auto number = static_cast<uint32_t>(plan.functions.size());
      // Three layers.
      program->calls = {plan::Call(number, 3, 0, 0, 0, 0, 0)};
      entry->stages[0]->actions.emplace_back(number, 0, 0, 0);
      plan.functions.push_back(std::move(function));
      plan.programs.push_back(std::move(program));
    }
    plan.entry_points.push_back(std::move(entry));
    builder.Finish(plan::CreatePlan(builder, &plan));
  }
  const plan::Plan &root() const {
    return *plan::GetPlan(builder.GetBufferPointer());
  }

private:
  flatbuffers::FlatBufferBuilder builder;
};

std::string groupRefusal(int64_t groupNumber, bool gradient) {
  const RingPlan plan;
  const std::vector<BufferType> types = typesOf(gradient);
  const std::array<int64_t, 6> integers = {groupNumber, 1, 1, 0, 7, 0};
  return checkRingGroup(plan.root(),
                        gradient ? Kernel::RingAttentionGrad
                                 : Kernel::RingAttention,
                        {types, integers, {}})
      .message();
}

TEST(RingPlan, GroupsHaveAsManyRanksAsThereArePieces) {
  for (const bool gradient : {false, true}) {
    EXPECT_EQ(groupRefusal(1, gradient), "");
    EXPECT_EQ(groupRefusal(2, gradient), "group 2 of 2");
  }
  std::vector<BufferType> types = typesOf(false);
  types[5] = types[6] = BufferType(DataType::I32, {1, 24});
  const std::array<int64_t, 6> integers = {1, 1, 1, 0, 7, 0};
  EXPECT_EQ(checkRingGroup(RingPlan().root(), Kernel::RingAttention,
                           {types, integers, {}})
                .message(),
            "the places are 1x24xi32 and a rank's key 1x8x2x2xbf16, but the "
            "group has 2 ranks");
}

TEST(RingPlan, GroupsAreOverWhatCutsTheKeys) {
  EXPECT_EQ(verifyLattice(RingPlan(1).root()).message(), "");
  EXPECT_THAT(verifyLattice(RingPlan(0).root()).message(),
              HasSubstr("launch 0, ring_attention (ring): its group is over "
                        "{dp}, its keys are cut over {cp}"));
}

// What is not sent follows from it.
TEST(RingPlan, RowsHaveOneOrder) {
  for (const auto order : {SequenceOrder::Contiguous, SequenceOrder::Zigzag,
                           SequenceOrder::Balanced}) {
    EXPECT_EQ(verifyLattice(RingPlan(1, order).root()).message(), "");
  }
  EXPECT_THAT(
      verifyLattice(
          RingPlan(1, SequenceOrder::Contiguous, SequenceOrder::Balanced)
              .root())
          .message(),
      HasSubstr("its order is contiguous, rows are balanced and its keys have "
                "layout [[{}, {cp}, {}, {}]]"));
  EXPECT_THAT(
      verifyLattice(
          RingPlan(1, SequenceOrder::Zigzag, SequenceOrder::Contiguous).root())
          .message(),
      HasSubstr("its order is zigzag, rows are contiguous and its keys have "
                "layout [[{}, {cp zigzag}, {}, {}]]"));
}

TEST(RingPlan, CommunicationCountsWhatIsSent) {
  const RingPlan ring;
  const auto totals =
      communicationOf(ring.root(), *ring.root().entry_points()->Get(0));
  ASSERT_EQ(totals.size(), 2u);
  // Keys and values of two ranks, in bf16, three times.
  const uint64_t keys = 2 * 2 * 32 * 2;
  EXPECT_EQ(totals[0].name(), "ring");
  EXPECT_EQ(totals[0].axes, "cp");
  EXPECT_EQ(totals[0].size, 2);
  EXPECT_EQ(totals[0].count, 3u);
  EXPECT_EQ(totals[0].bytes, 3 * keys);
  // Rank 1 sends both chunks to rank 0, which sends one.
  EXPECT_EQ(totals[0].sentBytes(), 3 * keys / 2);
  EXPECT_EQ(totals[1].name(), "ring_grad");
  EXPECT_EQ(totals[1].bytes, 3 * 3 * keys);
  // Rank 0 sends one chunk in bf16 and the sums of two in f32.
  EXPECT_EQ(totals[1].sentBytes(), 3 * (keys / 4 + 2 * keys / 2));
  const RingPlan balanced(1, SequenceOrder::Balanced);
  EXPECT_EQ(communicationOf(balanced.root(),
                            *balanced.root().entry_points()->Get(0))[1]
                .sentBytes(),
            3 * (keys / 2 + 2 * keys / 2));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value name(uint64_t number) { return hashValue(std::array{number}); }

ValueLaunch launch(bool gradient, std::vector<int64_t> integers) {
  ValueLaunch result;
  result.kernel = gradient ? Kernel::RingAttentionGrad : Kernel::RingAttention;
  result.types = typesOf(gradient);
  result.integers = std::move(integers);
  result.floats = {0.5, 0.25, 0};
  result.before.resize(result.types.size());
  return result;
}

TEST(RingValues, TheDerivativeIsTheGradientKernel) {
  ValueLaunch forward = launch(false, {1, 1, 1, 0, 7, 0});
  for (uint64_t i = 0; i < 7; ++i) {
    forward.before[i] = name(i);
  }
  const std::vector<Value> y = resultsOf(forward);
  Tape tape;
  tape.record(forward, y);
  tape.seed(y[7], name(20));
  ASSERT_TRUE(tape.differentiate().isOk());
  const auto gradient = [&](std::vector<int64_t> integers) {
    ValueLaunch backward = launch(true, std::move(integers));
    backward.before[0] = name(20);
    std::copy_n(forward.before.begin(), 7, backward.before.begin() + 1);
    backward.before[8] = y[7];
    backward.before[9] = y[8];
    return resultsOf(backward);
  };
  // Whose keys they are is not what they are.
  const std::vector<Value> g = gradient({2, 1, 1, 0, 7, 0});
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tape.derivative(name(i)), g[10 + i]);
  }
  EXPECT_NE(tape.derivative(name(1)), gradient({1, 0, 1, 0, 7, 0})[11]);
  EXPECT_NE(tape.derivative(name(1)), gradient({1, 1, 1, 0, 8, 0})[11]);
  EXPECT_EQ(tape.derivative(name(3)), 0u);
}

TEST(RingValues, NothingDropsOutOfAnEvaluation) {
  const ValueLaunch ring = withoutDropout(launch(false, {1, 1, 1, 0, 7, 0}));
  EXPECT_EQ(dropoutOf(ring), 0);
  EXPECT_EQ(resultsOf(ring)[7],
            resultsOf(withoutDropout(launch(false, {1, 1, 1, 0, 9, 0})))[7]);
  ValueLaunch drop;
  drop.kernel = Kernel::DropoutAt;
  drop.types = {kQ, kOwn, kOwn, kQ};
  drop.integers = {7, 0};
  drop.floats = {0.25};
  drop.before = {name(1), name(2), name(3), 0};
  EXPECT_EQ(dropoutOf(drop), 0.25);
  EXPECT_NE(resultsOf(drop)[3], name(1));
  EXPECT_EQ(resultsOf(withoutDropout(drop))[3], name(1));
  // Linear: its own transpose, at the same places.
  Tape tape;
  tape.record(drop, resultsOf(drop));
  tape.seed(resultsOf(drop)[3], name(9));
  ASSERT_TRUE(tape.differentiate().isOk());
  ValueLaunch transposed = drop;
  transposed.before[0] = name(9);
  EXPECT_EQ(tape.derivative(name(1)), resultsOf(transposed)[3]);
  transposed.before[1] = name(3);
  EXPECT_NE(tape.derivative(name(1)), resultsOf(transposed)[3]);
}

} // namespace
