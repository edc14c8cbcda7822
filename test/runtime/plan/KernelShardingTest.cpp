//===- KernelShardingTest.cpp - Which layouts a launch may have -----------===//
#include "runtime/plan/KernelSharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

using namespace mega;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

constexpr DataType kF = DataType::F32;
// tp 2, dp 3.
const Mesh kMesh{{2, 1, 1, 1, 3, 1, 1}};

uint8_t bits(std::initializer_list<Axis> axes) {
  uint8_t mask = 0;
  for (const Axis axis : axes) {
    mask = static_cast<uint8_t>(mask | (1u << static_cast<int>(axis)));
  }
  return mask;
}

Layout cut(int rank, int dim, std::initializer_list<Axis> axes) {
  Layout layout;
  layout.rank = static_cast<uint8_t>(rank);
  for (const Axis axis : axes) {
    layout.dims[static_cast<size_t>(dim)].push(axis);
  }
  return layout;
}
Layout partial(std::initializer_list<Axis> axes,
               Reduction reduction = Reduction::Sum) {
  Layout layout;
  layout.partial = bits(axes);
  layout.reduction = reduction;
  return layout;
}
Layout replicated(std::initializer_list<Axis> axes) {
  Layout layout;
  layout.replicated = bits(axes);
  return layout;
}

const Layout kWhole, kTpSum = partial({Axis::Tp});
Layout tp(int rank, int dim) { return cut(rank, dim, {Axis::Tp}); }
Layout dp(int rank, int dim) { return cut(rank, dim, {Axis::Dp}); }

/// The message of the refusal, or nothing.
std::string refusal(Kernel kernel, const std::vector<BufferType> &types,
                    const std::vector<Layout> &layouts,
                    const std::vector<int64_t> &integers = {}) {
  const Status status =
      checkSharding({kernel, {types, integers, {}}, layouts}, kMesh);
  return status.isOk() ? "" : status.message();
}

const BufferType kX(kF, {6, 4, 8}), kMatrix(kF, {8, 8}), kVector(kF, {8});

std::string gemm(const std::vector<Layout> &layouts,
                 const std::vector<int64_t> &transposes = {0, 1, 0},
                 const std::vector<BufferType> &types = {kX, kMatrix, kX}) {
  return refusal(Kernel::Gemm, types, layouts, transposes);
}

TEST(KernelSharding, ColumnAndRowParallelLinears) {
  EXPECT_EQ(gemm({kWhole, tp(2, 0), tp(3, 2)}), "");
  EXPECT_EQ(gemm({tp(3, 2), tp(2, 1), kTpSum}), "");
  EXPECT_EQ(gemm({dp(3, 0), kWhole, dp(3, 0)}), "");
  // A sum is not yet there.
  EXPECT_THAT(gemm({tp(3, 2), tp(2, 1), kWhole}),
              HasSubstr("result 0 must be partial over it, not replicated"));
  EXPECT_THAT(gemm({tp(3, 2), kWhole, kTpSum}),
              HasSubstr("not dimension 1 of operand 1, which belongs to it"));
  EXPECT_THAT(gemm({kWhole, tp(2, 0), kWhole}), HasSubstr("belongs to it"));
  EXPECT_EQ(gemm({kTpSum, kWhole, kTpSum}), "");
  EXPECT_THAT(gemm({kTpSum, kTpSum, kTpSum}),
              HasSubstr("is partial over tp, so operand 1 must be"));
}

TEST(KernelSharding, GradientsOfLinears) {
  // grad_x = grad_y w, of a column-parallel linear.
  EXPECT_EQ(gemm({tp(3, 2), tp(2, 0), kTpSum}, {0, 0, 1}), "");
  // grad_w += grad_y^T x, tokens cut over dp, columns over tp.
  Layout gradY = dp(3, 0);
  gradY.dims[2].push(Axis::Tp);
  Layout gradW = tp(2, 0);
  gradW.partial = bits({Axis::Dp});
  const std::vector<BufferType> types = {kX, kX, kMatrix};
  EXPECT_EQ(gemm({gradY, dp(3, 0), gradW}, {1, 0, 1}, types), "");
  EXPECT_THAT(gemm({gradY, dp(3, 0), tp(2, 0)}, {1, 0, 1}, types),
              HasSubstr("result 0 must be partial over it"));
  EXPECT_THAT(gemm({gradY, kWhole, gradW}, {1, 0, 1}, types),
              HasSubstr("belongs to it"));
}

TEST(KernelSharding, InvariantAndReplicatedAreWhole) {
  EXPECT_EQ(gemm({replicated({Axis::Tp}), tp(2, 0), tp(3, 2)}), "");
  EXPECT_EQ(refusal(Kernel::Add, {kX, kX, kX},
                    {kWhole, replicated({Axis::Tp, Axis::Dp}), kWhole}),
            "");
}

TEST(KernelSharding, NormsNeedAllFeatures) {
  const BufferType heads(kF, {6, 4, 2, 4}), statistics(kF, {6, 4, 2});
  const BufferType rows(kF, {6, 4}), four(kF, {4});
  EXPECT_EQ(refusal(Kernel::RmsNorm, {heads, four, heads, statistics},
                    {tp(4, 2), kWhole, tp(4, 2), tp(3, 2)}),
            "");
  EXPECT_EQ(refusal(Kernel::RmsNormGrad,
                    {heads, heads, four, statistics, heads, four},
                    {tp(4, 2), tp(4, 2), kWhole, tp(3, 2), tp(4, 2), kTpSum}),
            "");
  EXPECT_THAT(refusal(Kernel::RmsNorm, {kX, kVector, kX, rows},
                      {tp(3, 2), tp(1, 0), tp(3, 2), kWhole}),
              HasSubstr("must be whole"));
  EXPECT_THAT(refusal(Kernel::RmsNorm, {kX, kVector, kX, rows},
                      {kTpSum, kWhole, kTpSum, kWhole}),
              HasSubstr("not linear in it"));
  EXPECT_EQ(refusal(Kernel::AddLayerNorm,
                    {kX, kX, kVector, kVector, kX, kX, rows, rows},
                    {tp(3, 1), tp(3, 1), kWhole, kWhole, tp(3, 1), tp(3, 1),
                     tp(2, 1), tp(2, 1)}),
            "");
  EXPECT_THAT(refusal(Kernel::AddLayerNorm,
                      {kX, kX, kVector, kVector, kX, kX, rows, rows},
                      {tp(3, 1), kTpSum, kWhole, kWhole, tp(3, 1), tp(3, 1),
                       tp(2, 1), tp(2, 1)}),
              HasSubstr("belongs to it"));
}

TEST(KernelSharding, ABiasIsAddedOnce) {
  const std::vector<BufferType> types = {kX, kVector, kX};
  EXPECT_EQ(refusal(Kernel::AddBias, types, {tp(3, 2), tp(1, 0), tp(3, 2)}),
            "");
  EXPECT_THAT(refusal(Kernel::AddBias, types, {kTpSum, kWhole, kTpSum}),
              HasSubstr("operand 1 must be partial"));
  EXPECT_EQ(
      refusal(Kernel::BiasGrad, {kX, kVector}, {tp(3, 1), partial({Axis::Tp})}),
      "");
  EXPECT_THAT(refusal(Kernel::BiasGelu, {kX, kVector, kX, kX},
                      {kTpSum, kWhole, kTpSum, kTpSum}),
              HasSubstr("not linear in it"));
}

TEST(KernelSharding, SequencesOfAttentionsAndRotationsStayWhole) {
  const BufferType q(kF, {6, 4, 2, 4}), lse(kF, {6, 2, 4});
  EXPECT_EQ(refusal(Kernel::Attention, {q, q, q, q, lse},
                    {tp(4, 2), tp(4, 2), tp(4, 2), tp(4, 2), tp(3, 1)}),
            "");
  EXPECT_THAT(refusal(Kernel::Attention, {q, q, q, q, lse},
                      {tp(4, 1), tp(4, 1), tp(4, 1), tp(4, 1), tp(3, 2)}),
              HasSubstr("must be whole"));
  // The log-sum-exp is no sum when v is.
  EXPECT_THAT(refusal(Kernel::Attention, {q, q, q, q, lse},
                      {kWhole, kWhole, kTpSum, kTpSum, kTpSum}),
              HasSubstr("not linear in it"));
  const BufferType table(kF, {16, 4});
  EXPECT_EQ(
      refusal(Kernel::Rope, {q, table, q}, {tp(4, 2), kWhole, tp(4, 2)}, {0}),
      "");
  EXPECT_THAT(
      refusal(Kernel::Rope, {q, table, q}, {tp(4, 1), kWhole, tp(4, 1)}, {0}),
      HasSubstr("must be whole"));
  EXPECT_EQ(refusal(Kernel::RopeTable, {table}, {kWhole}), "");
  EXPECT_THAT(refusal(Kernel::RopeTable, {table}, {tp(2, 0)}),
              HasSubstr("the same on every rank"));
}

TEST(KernelSharding, PlacesAreCutWithTheirRows) {
  const BufferType q(kF, {6, 4, 2, 4}), lse(kF, {6, 2, 4}), table(kF, {16, 4});
  const BufferType places(DataType::I32, {6, 4});
  const auto attention = [&](const Layout &heads, const Layout &rows,
                             const Layout &keys, const Layout &sums) {
    const Layout &all = keys.rank == 0 ? kWhole : rows;
    return refusal(Kernel::PackedAttention,
                   {q, q, q, places, places, places, places, q, lse},
                   {heads, keys, keys, rows, rows, all, all, heads, sums});
  };
  EXPECT_EQ(attention(tp(4, 2), kWhole, tp(4, 2), tp(3, 1)), "");
  EXPECT_EQ(attention(tp(4, 0), tp(2, 0), tp(4, 0), tp(3, 0)), "");
  EXPECT_THAT(attention(tp(4, 0), kWhole, tp(4, 0), tp(3, 0)),
              HasSubstr("not dimension 0 of operand 3, which belongs to it"));
  // Queries may be cut, keys may not.
  EXPECT_EQ(attention(tp(4, 1), tp(2, 1), kWhole, tp(3, 2)), "");
  EXPECT_THAT(attention(tp(4, 1), tp(2, 1), tp(4, 1), tp(3, 2)),
              HasSubstr("must be whole"));
  const auto gradient = [&](const Layout &keys) {
    const Layout heads = tp(4, 1), rows = tp(2, 1);
    return refusal(
        Kernel::PackedAttentionGrad,
        {q, q, q, q, places, places, places, places, q, lse, q, q, q, lse},
        {heads, heads, kWhole, kWhole, rows, rows, kWhole, kWhole, heads,
         tp(3, 2), heads, keys, keys, tp(3, 2)});
  };
  // Every rank has what its queries add.
  EXPECT_EQ(gradient(kTpSum), "");
  EXPECT_THAT(gradient(kWhole), HasSubstr("result 1 must be partial over it"));
  // Unlike rope, it does not count rows.
  EXPECT_EQ(refusal(Kernel::RopeAt, {q, table, places, q},
                    {tp(4, 1), kWhole, tp(2, 1), tp(4, 1)}, {0}),
            "");
  EXPECT_THAT(refusal(Kernel::RopeAt, {q, table, places, q},
                      {tp(4, 1), kWhole, kWhole, tp(4, 1)}, {0}),
              HasSubstr("not dimension 1 of operand 2, which belongs to it"));
  const BufferType rows(kF, {16, 8});
  EXPECT_EQ(refusal(Kernel::AddPositionsAt, {kX, rows, places, kX},
                    {tp(3, 1), kWhole, tp(2, 1), tp(3, 1)}),
            "");
  EXPECT_EQ(refusal(Kernel::PositionsGradAt, {places, kX, rows},
                    {tp(2, 1), tp(3, 1), kTpSum}),
            "");
}

TEST(KernelSharding, RingsCutKeysWithTheirQueries) {
  const BufferType q(kF, {6, 4, 2, 4}), lse(kF, {6, 2, 4}), some(kF, {8});
  const BufferType own(DataType::I32, {6, 4}), all(DataType::I32, {6, 8});
  const auto forward = [&](const Layout &keys, const Layout &keyPlaces) {
    const Layout heads = tp(4, 1), rows = tp(2, 1);
    return refusal(Kernel::RingAttention,
                   {q, q, q, own, own, all, all, q, lse, some, some},
                   {heads, keys, keys, rows, rows, keyPlaces, keyPlaces, heads,
                    tp(3, 2), kWhole, kWhole});
  };
  EXPECT_EQ(forward(tp(4, 1), kWhole), "");
  EXPECT_THAT(forward(kWhole, kWhole),
              HasSubstr("not dimension 1 of operand 1, which belongs to it"));
  EXPECT_THAT(forward(tp(4, 1), tp(2, 1)), HasSubstr("must be whole"));
  const auto backward = [&](const Layout &gradK) {
    const Layout heads = tp(4, 1), rows = tp(2, 1);
    return refusal(
        Kernel::RingAttentionGrad,
        {q, q, q, q, own, own, all, all, q, lse, q, q, q, some, some},
        {heads, heads, heads, heads, rows, rows, kWhole, kWhole, heads,
         tp(3, 2), heads, gradK, gradK, kWhole, kWhole});
  };
  // Complete, unlike those of keys that all ranks have.
  EXPECT_EQ(backward(tp(4, 1)), "");
  EXPECT_NE(backward(kTpSum), "");
  // Heads are cut as elsewhere, places are not.
  EXPECT_EQ(refusal(Kernel::DropoutAt, {kX, own, own, kX},
                    {tp(3, 2), kWhole, kWhole, tp(3, 2)}),
            "");
  EXPECT_THAT(refusal(Kernel::DropoutAt, {kX, own, own, kX},
                      {tp(3, 1), kWhole, kWhole, tp(3, 1)}),
              HasSubstr("not dimension 1 of operand 1, which belongs to it"));
}

TEST(KernelSharding, TheHeadOverItsVocabulary) {
  const BufferType w(kF, {10, 8}), rows(kF, {6, 4}), scratch(kF, {240});
  const BufferType labels(DataType::I32, {6, 4}), loss(kF, {});
  const Layout max = partial({Axis::Tp}, Reduction::Max);
  const auto stats = [&](const Layout &maximum, const Layout &sum) {
    return refusal(Kernel::HeadStats,
                   {kX, w, labels, rows, rows, rows, scratch},
                   {kWhole, tp(2, 0), kWhole, maximum, sum, kTpSum, kWhole});
  };
  EXPECT_EQ(stats(max, kTpSum), "");
  EXPECT_THAT(stats(kTpSum, kTpSum), HasSubstr("partial by sum over tp"));
  EXPECT_THAT(stats(max, kWhole), HasSubstr("result 1 must be partial"));
  const auto lossOf = [&](const Layout &maximum) {
    return refusal(Kernel::HeadLoss, {rows, rows, rows, labels, loss},
                   {maximum, kWhole, kWhole, kWhole, kWhole});
  };
  EXPECT_EQ(lossOf(kWhole), "");
  EXPECT_THAT(lossOf(max), HasSubstr("partial by max over tp"));
  EXPECT_EQ(refusal(Kernel::CountValid, {labels, BufferType(DataType::I64, {})},
                    {dp(2, 0), partial({Axis::Dp})}),
            "");
  EXPECT_THAT(refusal(Kernel::LossSeed, {BufferType(DataType::I64, {}), loss},
                      {partial({Axis::Dp}), kWhole}),
              HasSubstr("not linear in it"));
}

TEST(KernelSharding, OptimizersSeeCompleteGradients) {
  const BufferType scale(kF, {}), total(DataType::F64, {});
  const auto adamW = [&](const Layout &weight, const Layout &grad) {
    return refusal(Kernel::AdamW, {kVector, kVector, kVector, kVector, scale},
                   {weight, grad, weight, weight, kWhole});
  };
  EXPECT_EQ(adamW(kWhole, kWhole), "");
  EXPECT_EQ(adamW(dp(1, 0), dp(1, 0)), "");
  EXPECT_THAT(adamW(kWhole, partial({Axis::Dp})),
              HasSubstr("not linear in it"));
  EXPECT_THAT(adamW(kWhole, dp(1, 0)), HasSubstr("belongs to it"));
  EXPECT_EQ(refusal(Kernel::SumSquares, {kVector, total},
                    {dp(1, 0), partial({Axis::Dp})}),
            "");
  EXPECT_THAT(refusal(Kernel::SumSquares, {kVector, total}, {dp(1, 0), kWhole}),
              HasSubstr("must be partial"));
  EXPECT_THAT(refusal(Kernel::SumSquares, {kVector, total},
                      {partial({Axis::Dp}), partial({Axis::Dp})}),
              HasSubstr("not linear in it"));
}

TEST(KernelSharding, CopiesKeepTheLayout) {
  EXPECT_EQ(refusal(Kernel::Copy, {kX, kX}, {tp(3, 1), tp(3, 1)}), "");
  const Layout max = partial({Axis::Tp}, Reduction::Max);
  EXPECT_EQ(refusal(Kernel::Copy, {kX, kX}, {max, max}), "");
  EXPECT_THAT(refusal(Kernel::Accumulate, {kX, kX}, {max, max}),
              HasSubstr("reduce it first"));
  EXPECT_THAT(refusal(Kernel::Cast, {kX, kX}, {tp(3, 1), tp(3, 2)}),
              HasSubstr("do not belong together"));
  EXPECT_THAT(refusal(Kernel::Accumulate, {kX, kX}, {kTpSum, kWhole}),
              HasSubstr("result 0 is replicated over tp, expected partial"));
}

TEST(KernelSharding, EveryKernelHasARule) {
  const std::vector<BufferType> types(12, kX);
  const std::vector<int64_t> integers(8, 0);
  for (int k = 0; k < kKernelCount; ++k) {
    const auto kernel = static_cast<Kernel>(k);
    if (kernel != Kernel::Zero && !isConversion(kernel) &&
        !isBetweenStages(kernel)) {
      EXPECT_TRUE(shardingRule(kernel, {types, integers, {}}).isOk())
          << kernelSpec(kernel).name;
    }
  }
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

std::string shape(Kernel kernel, const Layout &x, const Layout &y,
                  int64_t integer = 0) {
  const std::vector<BufferType> types = {kX, kX, kVector};
  const std::vector<int64_t> integers = {0, integer};
  const auto found =
      conversionShape({kernel, {types, integers, {}}, std::array{x, y}}, kMesh);
  if (!found.isOk()) {
    return found.status().message();
  }
  std::string text = std::to_string(found->dim());
  if (found->fromDim >= 0 && found->toDim >= 0) {
    text += " to " + std::to_string(found->toDim);
  }
  for (const Axis axis : found->axes) {
    text += " " + std::string(name(axis));
  }
  return text;
}

TEST(ConversionShape, IsTheChangeOfTheLayout) {
  const Layout both = cut(3, 1, {Axis::Dp, Axis::Tp});
  EXPECT_EQ(shape(Kernel::AllGather, both, kWhole), "1 dp tp");
  EXPECT_EQ(shape(Kernel::AllGather, both, dp(3, 1)), "1 tp");
  EXPECT_EQ(shape(Kernel::ReduceScatter, kTpSum, tp(3, 2)), "2 tp");
  EXPECT_EQ(shape(Kernel::Slice, kWhole, tp(3, 0)), "0 tp");
  EXPECT_EQ(shape(Kernel::ToPartial, kWhole, kTpSum), "-1 tp");
  EXPECT_EQ(shape(Kernel::ToPartial, tp(3, 0), kTpSum), "0 tp");
  EXPECT_EQ(shape(Kernel::AllReduce, kTpSum, replicated({Axis::Tp})), "-1 tp");
  EXPECT_EQ(shape(Kernel::AllReduce, partial({Axis::Tp}, Reduction::Max),
                  kWhole, static_cast<int64_t>(Reduction::Max)),
            "-1 tp");
  EXPECT_EQ(shape(Kernel::AllToAll, tp(3, 2), tp(3, 0)), "2 to 0 tp");
  EXPECT_EQ(shape(Kernel::AllToAll, both, cut(3, 2, {Axis::Dp, Axis::Tp})),
            "1 to 2 dp tp");
}

TEST(ConversionShape, OfAnotherKernelIsRefused) {
  EXPECT_EQ(shape(Kernel::AllReduce, kWhole, kWhole),
            "x is [replicated = {tp, dp}] and y [replicated = {tp, dp}], which "
            "is none");
  EXPECT_THAT(shape(Kernel::AllReduce, kTpSum, tp(3, 0)),
              HasSubstr("which is reduce_scatter"));
  EXPECT_THAT(shape(Kernel::AllReduce, partial({Axis::Tp}, Reduction::Max),
                    kWhole, static_cast<int64_t>(Reduction::Sum)),
              HasSubstr("another reduction than max"));
  EXPECT_THAT(shape(Kernel::AllToAll, tp(3, 0), kWhole),
              HasSubstr("which is all_gather"));
  // The major axis leaves, the minor one stays.
  EXPECT_THAT(
      shape(Kernel::AllGather, cut(3, 1, {Axis::Dp, Axis::Tp}), tp(3, 1)),
      HasSubstr("only the minor-most axes"));
}

//===----------------------------------------------------------------------===//
// Integers that depend on the rank
//===----------------------------------------------------------------------===//

std::vector<CoordinateFactor> factors(Kernel kernel,
                                      const std::vector<BufferType> &types,
                                      const std::vector<Layout> &layouts,
                                      std::string_view integer) {
  return *coordinateFactors({kernel, {types, {}, {}}, layouts},
                            integerIndex(kernelSpec(kernel), integer), kMesh);
}

TEST(CoordinateFactors, AreThePiecesOfTheMinorAxisFirst) {
  const BufferType ids(DataType::I32, {6, 4}), table(kF, {10, 8});
  const Layout rows = cut(2, 0, {Axis::Dp, Axis::Tp});
  EXPECT_THAT(factors(Kernel::Embedding, {ids, table, kX},
                      {kWhole, rows, kWhole}, "first_row"),
              ElementsAre(CoordinateFactor{Axis::Tp, 10},
                          CoordinateFactor{Axis::Dp, 20}));
  EXPECT_THAT(factors(Kernel::Embedding, {ids, table, kX},
                      {kWhole, rows, kWhole}, "rows"),
              IsEmpty());
  EXPECT_THAT(factors(Kernel::EmbeddingGrad, {ids, kX, table},
                      {kWhole, kWhole, tp(2, 1)}, "first_row"),
              IsEmpty());
}

TEST(CoordinateFactors, CountFeaturesOfARow) {
  const BufferType heads(kF, {6, 4, 2, 4}), rows(kF, {6, 4});
  EXPECT_THAT(
      factors(Kernel::Dropout, {kX, kX}, {tp(3, 2), tp(3, 2)}, "first_feature"),
      ElementsAre(CoordinateFactor{Axis::Tp, 8}));
  EXPECT_THAT(factors(Kernel::Dropout, {kX, kX}, {tp(3, 1), tp(3, 1)},
                      "first_position"),
              ElementsAre(CoordinateFactor{Axis::Tp, 4}));
  EXPECT_THAT(factors(Kernel::Dropout, {heads, heads}, {tp(4, 2), tp(4, 2)},
                      "first_feature"),
              ElementsAre(CoordinateFactor{Axis::Tp, 8}));
  // A row of a matrix has no positions.
  EXPECT_THAT(factors(Kernel::Dropout, {rows, rows}, {tp(2, 1), tp(2, 1)},
                      "first_position"),
              IsEmpty());
  const std::vector<BufferType> types = {heads, heads};
  const std::vector<Layout> inside = {tp(4, 3), tp(4, 3)};
  EXPECT_THAT(
      coordinateFactors({Kernel::Dropout, {types, {}, {}}, inside}, 2, kMesh)
          .status()
          .message(),
      HasSubstr("dimension 3 of operand x is cut inside of its rows"));
}

TEST(CoordinateFactors, CountHeads) {
  const BufferType q(kF, {6, 4, 2, 4}), lse(kF, {6, 2, 4});
  const std::vector<Layout> layouts(10, tp(4, 2));
  EXPECT_THAT(
      factors(Kernel::Attention, {q, q, q, q, lse}, layouts, "first_head"),
      ElementsAre(CoordinateFactor{Axis::Tp, 2}));
  EXPECT_THAT(factors(Kernel::AttentionGrad, {q, q, q, q, q, lse, q, q, q, lse},
                      layouts, "first_head"),
              ElementsAre(CoordinateFactor{Axis::Tp, 2}));
  const BufferType p(DataType::I32, {6, 4});
  const std::vector<Layout> more(14, tp(4, 2));
  EXPECT_THAT(factors(Kernel::PackedAttention, {q, q, q, p, p, p, p, q, lse},
                      more, "first_head"),
              ElementsAre(CoordinateFactor{Axis::Tp, 2}));
  EXPECT_THAT(factors(Kernel::PackedAttentionGrad,
                      {q, q, q, q, p, p, p, p, q, lse, q, q, q, lse}, more,
                      "first_head"),
              ElementsAre(CoordinateFactor{Axis::Tp, 2}));
  EXPECT_THAT(factors(Kernel::RingAttention,
                      {q, q, q, p, p, p, p, q, lse, lse, lse}, more,
                      "first_head"),
              ElementsAre(CoordinateFactor{Axis::Tp, 2}));
  EXPECT_THAT(factors(Kernel::DropoutAt, {kX, p, p, kX},
                      {tp(3, 2), kWhole, kWhole, tp(3, 2)}, "first_feature"),
              ElementsAre(CoordinateFactor{Axis::Tp, 8}));
}

} // namespace
