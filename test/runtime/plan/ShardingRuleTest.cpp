//===- ShardingRuleTest.cpp - The rules of LAYOUTS on one axis ------------===//
//
// Names of states: I, R, P, and the number of the dimension that is cut.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/ShardingRule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

using namespace mega;
using testing::HasSubstr;

namespace {

constexpr uint8_t kTp = 1u << static_cast<int>(Axis::Tp);

Layout layoutOf(char state, size_t rank, Reduction reduction) {
  Layout layout;
  switch (state) {
  case 'I':
    break;
  case 'R':
    layout.replicated = kTp;
    break;
  case 'P':
    layout.partial = kTp;
    layout.reduction = reduction;
    break;
  default:
    layout.rank = static_cast<uint8_t>(rank);
    layout.dims[static_cast<size_t>(state - '0')].push(Axis::Tp);
  }
  return layout;
}

char stateOf(const Layout &layout) {
  switch (layout.state(Axis::Tp)) {
  case State::Invariant:
    return 'I';
  case State::Replicated:
    return 'R';
  case State::Partial:
    return 'P';
  case State::Shard:
    return static_cast<char>('0' + layout.shardedDim(Axis::Tp));
  }
  return '?';
}

std::vector<Layout> layouts(const std::vector<ShardingRule::Tensor> &tensors,
                            std::string_view states) {
  std::vector<Layout> result;
  for (size_t i = 0; i < tensors.size(); ++i) {
    result.push_back(
        layoutOf(states[i], tensors[i].factors.size(), tensors[i].reduction));
  }
  return result;
}

/// The states of the results, or the error.
std::string infer(std::string_view notation, std::string_view operands) {
  const ShardingRule rule = ShardingRule::parse(notation);
  auto results = inferSharding(rule, layouts(rule.operands, operands));
  if (!results.isOk()) {
    return results.status().message();
  }
  std::string states;
  for (const Layout &layout : *results) {
    states += stateOf(layout);
  }
  return states;
}

std::string check(std::string_view notation, std::string_view operands,
                  std::string_view results) {
  const ShardingRule rule = ShardingRule::parse(notation);
  return checkSharding(rule, layouts(rule.operands, operands),
                       layouts(rule.results, results))
      .message();
}

constexpr std::string_view kLinear = "*bsi, *oi -> bso";
constexpr std::string_view kNorm = "bsF, F -> bsF, bs";
constexpr std::string_view kAdd = "+bsh, +h -> bsh";

TEST(Sharding, OfALinear) {
  EXPECT_EQ(infer(kLinear, "II"), "I");
  EXPECT_EQ(infer(kLinear, "RR"), "R");
  EXPECT_EQ(infer(kLinear, "R0"), "2") << "by columns";
  EXPECT_EQ(infer(kLinear, "21"), "P") << "by rows";
  EXPECT_EQ(infer(kLinear, "0R"), "0") << "by batch";
  EXPECT_EQ(infer(kLinear, "PR"), "P");
  EXPECT_EQ(infer(kLinear, "RP"), "P");
  EXPECT_THAT(infer(kLinear, "PP"), HasSubstr("must be replicated"));
  EXPECT_THAT(infer(kLinear, "P0"), HasSubstr("must be replicated"));
  EXPECT_THAT(infer(kLinear, "PI"), HasSubstr("must be replicated"));
  EXPECT_THAT(infer(kLinear, "I0"), HasSubstr("must be replicated"));
  EXPECT_THAT(infer(kLinear, "IR"), HasSubstr("do not mix"));
  EXPECT_THAT(infer(kLinear, "2R"), HasSubstr("which belongs to it"));
  EXPECT_THAT(infer(kLinear, "10"), HasSubstr("do not belong together"));
}

TEST(Sharding, OfANorm) {
  EXPECT_EQ(infer(kNorm, "II"), "II");
  EXPECT_EQ(infer(kNorm, "1R"), "11");
  EXPECT_THAT(infer(kNorm, "1I"), HasSubstr("must be replicated"));
  EXPECT_THAT(infer(kNorm, "2R"), HasSubstr("must be whole"));
  EXPECT_THAT(infer(kNorm, "PR"), HasSubstr("not linear"));
}

TEST(Sharding, OfASum) {
  EXPECT_EQ(infer(kAdd, "PP"), "P");
  EXPECT_EQ(infer(kAdd, "20"), "2");
  EXPECT_EQ(infer(kAdd, "1R"), "1");
  EXPECT_THAT(infer(kAdd, "PR"), HasSubstr("must be partial"));
  EXPECT_THAT(infer(kAdd, "PI"), HasSubstr("must be partial"));
}

TEST(Sharding, OfInactiveAndUnconstrainedOperands) {
  EXPECT_EQ(infer("=bs, *vh -> bsh", "I0"), "P");
  EXPECT_EQ(infer("=bs, *vh -> bsh", "R0"), "P");
  EXPECT_EQ(infer("=bs, *vh -> bsh", "II"), "I");
  EXPECT_EQ(infer("=bs, *vh -> bsh", "0R"), "0");
  EXPECT_EQ(infer("*bs, ~bs, =bs -> bs", "PPI"), "P");
}

TEST(Sharding, OfMaxima) {
  const ShardingRule rule = ShardingRule::parse("bsI, vI -> ^bs, bs");
  auto results = inferSharding(rule, layouts(rule.operands, "R0"));
  ASSERT_TRUE(results.isOk());
  EXPECT_EQ((*results)[0].str(), "partial = {tp max}");
  EXPECT_EQ((*results)[1].str(), "partial = {tp}");
  // A maximum is no sum that a linear op could pass on.
  std::vector<Layout> maxima = {(*results)[0]};
  EXPECT_THAT(inferSharding(ShardingRule::parse("*bs -> bs"), maxima)
                  .status()
                  .message(),
              HasSubstr("partial by max over tp: reduce it first"));
}

TEST(Sharding, OfAGradientThatShowsInItsResult) {
  constexpr std::string_view embedding = "=bs, *bsh -> vh";
  EXPECT_EQ(check(embedding, "IR", "0"), "");
  EXPECT_EQ(check(embedding, "00", "P"), "");
  EXPECT_THAT(check(embedding, "II", "0"), HasSubstr("must be replicated"));
  EXPECT_THAT(check(embedding, "00", "I"), HasSubstr("must be partial"));
}

TEST(Sharding, PaddingAndOrderGoWithTheFactor) {
  const ShardingRule rule = ShardingRule::parse(kLinear);
  Layout x, w;
  x.replicated = kTp | 1u << static_cast<int>(Axis::Dp);
  w.rank = 2;
  w.dims[0].push(Axis::Dp);
  w.dims[0].push(Axis::Tp);
  w.dims[0].padded = 12;
  const Layout operands[] = {x, w};
  auto results = inferSharding(rule, operands);
  ASSERT_TRUE(results.isOk()) << results.status().message();
  EXPECT_EQ((*results)[0].str(), "[{}, {}, {dp, tp, pad 12}]");
}

/// The transpose of every legal use type-checks: gradients in the dual states
/// obey the rule of the backward op, and come out in the dual of the operand.
struct Transposed {
  std::string_view forward;
  /// Takes the gradient of result 0 and the operands, yields the gradients of
  /// the operands.
  std::string_view backward;
};

class Transpose : public testing::TestWithParam<Transposed> {};

TEST_P(Transpose, TypeChecksForEveryLegalLayout) {
  const ShardingRule forward = ShardingRule::parse(GetParam().forward);
  const ShardingRule backward = ShardingRule::parse(GetParam().backward);
  const std::string_view states = "IRP012";
  const size_t count = forward.operands.size();
  size_t combinations = 1;
  for (size_t i = 0; i < count; ++i) {
    combinations *= states.size();
  }
  int legal = 0;
  for (size_t n = 0; n < combinations; ++n) {
    std::string text;
    bool exists = true;
    for (size_t i = 0, rest = n; i < count; ++i, rest /= states.size()) {
      text += states[rest % states.size()];
      exists &= text.back() > '9' || static_cast<size_t>(text.back() - '0') <
                                         forward.operands[i].factors.size();
    }
    if (!exists) {
      continue;
    }
    const std::vector<Layout> operands = layouts(forward.operands, text);
    auto results = inferSharding(forward, operands);
    if (!results.isOk()) {
      continue;
    }
    // A sum is kept only where the backward does not read it.
    if (text.find('P') != std::string::npos) {
      continue;
    }
    ++legal;
    std::vector<Layout> in = {(*results)[0].dual().take()};
    in.insert(in.end(), operands.begin(), operands.end());
    std::vector<Layout> out;
    for (const Layout &layout : operands) {
      out.push_back(layout.dual().take());
    }
    const Status status = checkSharding(backward, in, out);
    EXPECT_TRUE(status.isOk()) << text << ": " << status.message();
  }
  EXPECT_GE(legal, 3);
}

INSTANTIATE_TEST_SUITE_P(
    Ops, Transpose,
    testing::Values(Transposed{"*bsi, *oi -> bso",
                               "*bso, *bsi, *oi -> bsi, oi"},
                    Transposed{"bsF, F -> bsF", "*bsF, bsF, F -> bsF, F"},
                    Transposed{"+bsh, +h -> bsh", "*bsh, bsh, h -> bsh, h"},
                    Transposed{"bsf, bsf -> bsf", "*bsf, bsf, bsf -> bsf, bsf"},
                    Transposed{"*bsh -> bsh", "*bsh, bsh -> bsh"},
                    Transposed{"bsf -> bsf", "*bsf, bsf -> bsf"}));

} // namespace
