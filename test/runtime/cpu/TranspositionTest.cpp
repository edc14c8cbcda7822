//===- TranspositionTest.cpp - Gradients between ranks are adjoint --------===//
//
// The property of the layout calculus, with numbers: for every kernel and every
// legal layout of its operands, the ranks compute what the reference does on
// the whole; and what they compute from an output gradient in the dual layout
// is, in the dual layouts of the operands, the transpose of the derivative:
//
//   <grad_y, J dx> = <J' grad_y, dx>
//
// J dx is a difference of the double-precision reference. ShardingRuleTest and
// launch() have the other half, that the transposed ops type-check.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/cpu/Trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

using namespace mega;
using namespace mega::test;

namespace {

/// All assignments of states to the operands.
std::vector<std::string> assignments(const Case &c) {
  std::vector<std::string> all = {""};
  for (const Case::Operand &operand : c.operands) {
    std::vector<std::string> longer;
    for (const std::string &states : all) {
      for (const char state : {'I', 'R', 'P'}) {
        longer.push_back(states + state);
      }
      for (int dim = 0; dim < operand.type.rank; ++dim) {
        longer.push_back(states + static_cast<char>('0' + dim));
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// How many layouts of the operands the rule allows over one axis: invariant,
/// replicated, a factor cut, a linear operand partial, or all of a sum.
int legalLayouts(const ShardingRule &rule) {
  std::set<char> factors;
  int linear = 0, sums = 0;
  for (const ShardingRule::Tensor &tensor : rule.operands) {
    for (const char factor : tensor.factors) {
      if (!ShardingRule::isWhole(factor)) {
        factors.insert(factor);
      }
    }
    linear += tensor.role == ShardingRule::Role::Linear;
    sums |= tensor.role == ShardingRule::Role::Additive;
  }
  return 2 + static_cast<int>(factors.size()) + linear + sums;
}

ShardingRule ruleOf(const Case &c) {
  std::vector<BufferType> types;
  for (const Case::Operand &operand : c.operands) {
    types.push_back(operand.type);
  }
  types.insert(types.end(), c.results.begin(), c.results.end());
  return shardingRule(c.kernel, {types, c.integers, {}}).take();
}

class Transposition : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Kernels, Transposition,
                         testing::ValuesIn(transpositionCases()),
                         [](const auto &info) { return info.param.name; });

TEST_P(Transposition, IsAdjointInEveryLayout) {
  const Case &c = GetParam();
  const ShardingRule rule = ruleOf(c);
  for (const int64_t size : {2, 3}) {
    SCOPED_TRACE(std::to_string(size) + " ranks");
    std::map<Trial::Outcome, int> outcomes;
    int legal = 0;
    std::string all;
    for (const std::string &states : assignments(c)) {
      std::vector<Layout> layouts;
      for (size_t i = 0; i < states.size(); ++i) {
        layouts.push_back(tpLayout(states[i], c.operands[i].type, size,
                                   c.operands[i].padded));
      }
      if (!inferSharding(rule, layouts).isOk()) {
        continue;
      }
      ++legal;
      SCOPED_TRACE("operands " + states);
      Trial trial(c, tpMesh(size));
      const Trial::Outcome outcome = trial.check(layouts);
      ++outcomes[outcome];
      all += " " + states;
      if (outcome == Trial::Outcome::ForwardOnly) {
        EXPECT_THAT(states, testing::HasSubstr("P")) << trial.reason();
        EXPECT_THAT(trial.reason(), testing::HasSubstr("is not linear in it"));
      }
    }
    EXPECT_EQ(legal, legalLayouts(rule)) << all;
    EXPECT_EQ(outcomes[Trial::Outcome::Refused], c.refused) << all;
    EXPECT_EQ(outcomes[Trial::Outcome::ForwardOnly], c.forwardOnly) << all;
    RecordProperty("layouts_" + std::to_string(size), all);
  }
}

// Two key/value heads on four ranks: tp is two axes, and key/value heads are
// cut over the major one.
TEST(TranspositionOfAttention, WithFewerKeyValueHeadsThanRanks) {
  Mesh mesh;
  mesh.sizes[static_cast<size_t>(Axis::TpMajor)] = 2;
  mesh.sizes[static_cast<size_t>(Axis::TpMinor)] = 2;
  Layout q, k;
  q.rank = k.rank = 4;
  q.dims[2].push(Axis::TpMajor);
  q.dims[2].push(Axis::TpMinor);
  k.dims[2].push(Axis::TpMajor);
  k.replicated = 1u << static_cast<int>(Axis::TpMinor);
  const Case c = attentionCase(12, 2);
  Trial trial(c, mesh);
  EXPECT_EQ(trial.check({q, k, k}), Trial::Outcome::Checked) << trial.reason();
}

// No gradient flows through these.
constexpr std::pair<Kernel, std::string_view> kExempt[] = {
    {Kernel::RopeTable, "constants"},
    {Kernel::CountValid, "counts labels"},
    {Kernel::LossSeed, "where gradients begin"},
    {Kernel::Zero, "no operand"},
    {Kernel::SumSquares, "of gradients, once per step"},
    {Kernel::ClipScale, "of gradients, once per step"},
    {Kernel::AdamW, "the optimizer"},
};

TEST(TranspositionOfKernels, HasACaseForEach) {
  std::set<Kernel> covered;
  const auto add = [&](Kernel kernel) {
    EXPECT_TRUE(covered.insert(kernel).second) << kernelSpec(kernel).name;
  };
  for (const auto &[kernel, reason] : kExempt) {
    add(kernel);
  }
  std::set<Kernel> launched;
  for (const Case &c : transpositionCases()) {
    Trial trial(c, tpMesh(2));
    EXPECT_EQ(trial.check(std::vector<Layout>(c.operands.size())),
              Trial::Outcome::Checked);
    launched.insert(trial.launched().begin(), trial.launched().end());
  }
  for (const Kernel kernel : launched) {
    add(kernel);
  }
  for (int k = 0; k < kKernelCount; ++k) {
    // Conversions have their own test; what is between stages is no op, and its
    // transpose is another transfer (EmitSchedule).
    EXPECT_TRUE(covered.contains(static_cast<Kernel>(k)) ||
                isConversion(static_cast<Kernel>(k)) ||
                isBetweenStages(static_cast<Kernel>(k)))
        << kernelSpec(static_cast<Kernel>(k)).name << " has no case";
  }
}

} // namespace
