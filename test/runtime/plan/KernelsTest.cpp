#include "runtime/plan/Kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

using namespace mega;

TEST(Kernels, TableIsInEnumeratorOrderWithUniqueNames) {
  std::set<std::string_view> names;
  for (int i = 0; i < kKernelCount; ++i) {
    const KernelSpec &spec = kernelSpec(static_cast<Kernel>(i));
    EXPECT_EQ(static_cast<int>(spec.kernel), i);
    EXPECT_NE(spec.check, nullptr) << spec.name;
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_EQ(findKernel(spec.name), spec.kernel);
  }
  EXPECT_FALSE(findKernel("no_such_kernel"));
}

TEST(Kernels, InPlaceNamesAnEarlierOperandThatIsRead) {
  for (int i = 0; i < kKernelCount; ++i) {
    const KernelSpec &spec = kernelSpec(static_cast<Kernel>(i));
    for (size_t j = 0; j < spec.operands.size(); ++j) {
      for (int source :
           {spec.operands[j].inPlaceOf, spec.operands[j].alsoInPlaceOf}) {
        if (source >= 0) {
          EXPECT_LT(source, static_cast<int>(j)) << spec.name;
          EXPECT_EQ(spec.operands[source].access, Access::Read) << spec.name;
        }
      }
    }
  }
}

TEST(Kernels, AccumulatingOperandsHaveTheAttribute) {
  for (int i = 0; i < kKernelCount; ++i) {
    const KernelSpec &spec = kernelSpec(static_cast<Kernel>(i));
    for (const OperandSpec &operand : spec.operands) {
      if (operand.access == Access::WriteOrAccumulate) {
        EXPECT_THAT(spec.integers,
                    testing::Contains(std::string_view("accumulate")))
            << spec.name;
      }
    }
  }
}

TEST(Kernels, GemmRefusesMismatchedContraction) {
  const BufferType operands[] = {{DataType::F32, {2, 3, 5}},
                                 {DataType::F32, {7, 4}},
                                 {DataType::F32, {2, 3, 7}}};
  const int64_t integers[] = {0, 1, 0};
  const Status status = checkLaunch(Kernel::Gemm, {operands, integers, {}});
  EXPECT_EQ(status.message(), "gemm: a contracts 5 elements but b 4");
}

TEST(Kernels, GemmTakesColumnSlices) {
  BufferType slice{DataType::F32, {2, 3, 7}};
  slice.rowStride = 21;
  const BufferType operands[] = {
      {DataType::F32, {2, 3, 5}}, {DataType::F32, {7, 5}}, slice};
  const int64_t integers[] = {0, 1, 0};
  EXPECT_TRUE(checkLaunch(Kernel::Gemm, {operands, integers, {}}).isOk());
}

namespace {
constexpr DataType kF = DataType::F32, kB = DataType::BF16;

/// The launch's error, or "".
std::string refusal(Kernel kernel, const std::vector<BufferType> &operands,
                    const std::vector<int64_t> &integers = {},
                    const std::vector<double> &floats = {}) {
  return std::string(
      checkLaunch(kernel, {operands, integers, floats}).message());
}

std::vector<BufferType> gemmOf(DataType a, DataType b, DataType c) {
  return {{a, {2, 3, 5}}, {b, {7, 5}}, {c, {2, 3, 7}}};
}
} // namespace

TEST(Kernels, GemmTakesOneTypeAndMayWriteF32) {
  for (const auto &[a, b, c] :
       {std::tuple(kF, kF, kF), {kB, kB, kB}, {kB, kB, kF}}) {
    EXPECT_EQ(refusal(Kernel::Gemm, gemmOf(a, b, c), {0, 1, 1}), "");
  }
  EXPECT_EQ(refusal(Kernel::Gemm, gemmOf(kB, kF, kF), {0, 1, 0}),
            "gemm: operand 1 is 7x5xf32, expected bf16 like operand 0");
  EXPECT_EQ(refusal(Kernel::Gemm, gemmOf(kF, kF, kB), {0, 1, 0}),
            "gemm: operand 2 is 2x3x7xbf16, expected f32 like operand 0");
}

TEST(Kernels, ActivationsShareATypeAndParametersOfNormsAreF32) {
  const auto norm = [](DataType x, DataType gamma, DataType y) {
    return refusal(Kernel::RmsNorm,
                   {{x, {2, 3, 8}}, {gamma, {8}}, {y, {2, 3, 8}}, {kF, {2, 3}}},
                   {}, {1e-5, 0});
  };
  EXPECT_EQ(norm(kF, kF, kF), "");
  EXPECT_EQ(norm(kB, kF, kB), "");
  EXPECT_EQ(norm(kB, kB, kB),
            "rms_norm: operand 1 is 8xbf16, expected element type f32");
  EXPECT_EQ(norm(kB, kF, kF),
            "rms_norm: operand 2 is 2x3x8xf32, expected bf16 like operand 0");
  EXPECT_EQ(refusal(Kernel::BiasGrad, {{kB, {2, 3, 8}}, {kB, {8}}}),
            "bias_grad: operand 1 is 8xbf16, expected element type f32");
  EXPECT_EQ(refusal(Kernel::EmbeddingGrad,
                    {{DataType::I32, {2, 3}}, {kB, {2, 3, 8}}, {kB, {9, 8}}},
                    {0, 9}),
            "embedding_grad: operand 2 is 9x8xbf16, expected element type f32");
}

TEST(Kernels, CastTakesF32AndBf16) {
  for (DataType from : {kF, kB}) {
    for (DataType to : {kF, kB}) {
      EXPECT_EQ(refusal(Kernel::Cast, {{from, {3, 5}}, {to, {3, 5}}}), "");
    }
  }
  EXPECT_EQ(refusal(Kernel::Cast, {{DataType::F64, {3}}, {kF, {3}}}),
            "cast: operand 0 is 3xf64, expected f32 or bf16");
  EXPECT_EQ(refusal(Kernel::Cast, {{kF, {3, 5}}, {kB, {5, 3}}}),
            "cast: operand 1 is 5x3xbf16 but operand 0 is 3x5xf32");
}

TEST(Kernels, ScaleTakesAFiniteFactor) {
  const std::vector<BufferType> operands = {{kB, {3, 5}}, {kB, {3, 5}}};
  EXPECT_EQ(refusal(Kernel::Scale, operands, {}, {-2.5}), "");
  EXPECT_EQ(refusal(Kernel::Scale, operands, {}, {INFINITY}),
            "scale: factor is inf, expected a finite number");
}

TEST(Kernels, AttentionBoundsSoftcapAndBf16Heads) {
  const auto attention = [](DataType type, int64_t dim, double softcap) {
    const BufferType q(type, {2, 3, 4, dim}), k(type, {2, 3, 2, dim});
    return refusal(Kernel::Attention, {q, k, k, q, {kF, {2, 4, 3}}},
                   {1, 0, 0, 0}, {0.125, 0, softcap});
  };
  EXPECT_EQ(attention(kB, 512, 50), "");
  EXPECT_EQ(attention(kF, 514, 0), "");
  EXPECT_EQ(attention(kB, 514, 0),
            "attention: the query is 2x3x4x514xbf16, expected a head_dim of at "
            "most 512");
  EXPECT_EQ(attention(kB, 64, -1),
            "attention: softcap is -1, expected 0 (off) or a positive number");
}

TEST(Kernels, HeadGradientOfBf16KeepsSumsInScratch) {
  const int64_t tokens = 6, vocabulary = 11, hidden = 8;
  EXPECT_EQ(headScratch(tokens, vocabulary), 66);
  EXPECT_EQ(headGradScratch(tokens, vocabulary, hidden, kF), 66);
  EXPECT_EQ(headGradScratch(tokens, vocabulary, hidden, kB), 66 + 48);
  const auto grad = [&](DataType type, int64_t scratch) {
    const BufferType x(type, {2, 3, hidden}), statistics(kF, {2, 3});
    return refusal(Kernel::HeadStatsGrad,
                   {x,
                    {type, {vocabulary, hidden}},
                    {DataType::I32, {2, 3}},
                    statistics,
                    statistics,
                    statistics,
                    x,
                    {kF, {vocabulary, hidden}},
                    {kF, {scratch}}},
                   {-100, 0, vocabulary}, {30});
  };
  EXPECT_EQ(grad(kF, 66), "");
  EXPECT_EQ(grad(kB, 66 + 48), "");
  EXPECT_EQ(grad(kB, 66),
            "head_stats_grad: operand 8 is 66xf32, expected 114 elements");
}

TEST(Kernels, PlacesAreOnesOfRows) {
  const BufferType q(kF, {2, 3, 4, 8}), k(kF, {2, 5, 2, 8}), lse(kF, {2, 4, 3});
  const BufferType three(DataType::I32, {2, 3}), five(DataType::I32, {2, 5});
  const auto forward = [&](const BufferType &segments, const BufferType &keys) {
    return refusal(Kernel::PackedAttention,
                   {q, k, k, three, segments, five, keys, q, lse}, {1, 0, 0, 0},
                   {0.125, 0, 0});
  };
  EXPECT_EQ(forward(three, five), "");
  EXPECT_EQ(forward(five, five),
            "packed_attention: operand 4 is 2x5xi32, expected 2x3xi32 as "
            "operand 0 has rows");
  EXPECT_EQ(forward(three, BufferType(kF, {2, 5})),
            "packed_attention: operand 6 is 2x5xf32, expected 2x5xi32 as "
            "operand 1 has rows");
  const auto backward = [&](const BufferType &positions,
                            const BufferType &gradK) {
    return refusal(
        Kernel::PackedAttentionGrad,
        {q, q, k, k, positions, three, five, five, q, lse, q, gradK, k, lse},
        {1, 0, 0, 0}, {0.125, 0, 0});
  };
  EXPECT_EQ(backward(three, k), "");
  EXPECT_EQ(backward(five, k),
            "packed_attention_grad: operand 4 is 2x5xi32, expected 2x3xi32 as "
            "operand 1 has rows");
  EXPECT_EQ(backward(three, BufferType(kF, {2, 3, 2, 8})),
            "packed_attention_grad: operand 11 is 2x3x2x8xf32 but operand 2 is "
            "2x5x2x8xf32");
  // Without places queries and keys have the same ones.
  EXPECT_EQ(refusal(Kernel::Attention, {q, k, k, q, lse}, {1, 0, 0, 0},
                    {0.125, 0, 0}),
            "attention: the query is 2x3x4x8xf32 but the key is 2x5x2x8xf32");

  const BufferType x(kF, {2, 3, 8}), table(kF, {2, 8});
  EXPECT_EQ(refusal(Kernel::AddPositionsAt, {x, table, three, x}), "");
  EXPECT_EQ(refusal(Kernel::AddPositionsAt, {x, table, five, x}),
            "add_positions_at: operand 2 is 2x5xi32, expected 2x3xi32 as "
            "operand 0 has rows");
  EXPECT_EQ(refusal(Kernel::PositionsGradAt, {three, x, table}), "");
  EXPECT_EQ(refusal(Kernel::PositionsGradAt, {three, x, {kF, {2, 7}}}),
            "positions_grad_at: the position table is 2x7xf32 but the "
            "activations is 2x3x8xf32");
  EXPECT_EQ(refusal(Kernel::RopeAt, {q, table, three, q}, {0}), "");
  EXPECT_EQ(refusal(Kernel::RopeAt, {q, table, three, q}, {2}),
            "rope_at: inverse is 2, expected 0 to 1");
  EXPECT_EQ(refusal(Kernel::RopeAt, {q, table, five, q}, {0}),
            "rope_at: operand 2 is 2x5xi32, expected 2x3xi32 as operand 0 has "
            "rows");
}

TEST(Kernels, RingsTakePiecesOfKeysAndPlacesOfWholeRows) {
  const BufferType q(kB, {2, 6, 4, 8}), k(kB, {2, 6, 2, 8}), lse(kF, {2, 4, 6});
  const BufferType own(DataType::I32, {2, 6}), all(DataType::I32, {2, 18});
  // Three ranks: keys and values three times, sums of rows, outputs in f32.
  const int64_t exchange = 3 * 2 * 192, sums = 48 + 384;
  EXPECT_EQ(ringScratch(k, 3), exchange);
  EXPECT_EQ(ringScratch(k, 1), 1);
  EXPECT_EQ(ringSums(q), sums);
  EXPECT_EQ(ringGradSums(q, k, 3), 48 + 3 * 2 * 192 + 384 + 2 * 192);
  EXPECT_EQ(ringGradSums(q, k, 1), 48 + 384 + 2 * 192);
  EXPECT_EQ(ringGradSums({kF, {2, 6, 4, 8}}, k, 3), 48 + 3 * 2 * 192);
  const auto forward = [&](const std::vector<int64_t> &integers,
                           const BufferType &keyPlaces, int64_t scratch) {
    return refusal(Kernel::RingAttention,
                   {q,
                    k,
                    k,
                    own,
                    own,
                    keyPlaces,
                    keyPlaces,
                    q,
                    lse,
                    {kB, {scratch}},
                    {kF, {sums}}},
                   integers, {0.125, 0, 0});
  };
  for (const int64_t order : {0, 1, 2}) {
    EXPECT_EQ(forward({0, order, 1, 0, 7, 0}, all, exchange), "");
  }
  EXPECT_EQ(forward({0, 3, 1, 0, 7, 0}, all, exchange),
            "ring_attention: order is 3, expected 0 to 2");
  EXPECT_EQ(forward({256, 0, 1, 0, 7, 0}, all, exchange),
            "ring_attention: group is 256, expected 0 to 255");
  EXPECT_EQ(forward({0, 0, 2, 0, 7, 0}, all, exchange),
            "ring_attention: causal is 2, expected 0 to 1");
  EXPECT_EQ(forward({0, 0, 1, 0, 7, 0}, {DataType::I32, {2, 16}}, exchange),
            "ring_attention: operand 5 is 2x16xi32, expected 2 rows of a "
            "multiple of 6 i32, as the key is a piece of");
  EXPECT_EQ(forward({0, 0, 1, 0, 7, 0}, all, 1),
            "ring_attention: the exchange is 1xbf16, expected 1152 elements of "
            "bf16");
  // One rank sends nothing.
  EXPECT_EQ(forward({0, 1, 1, 0, 7, 0}, own, 1), "");
  const BufferType odd(kF, {1, 3, 2, 8}), oddPlaces(DataType::I32, {1, 3});
  EXPECT_EQ(refusal(Kernel::RingAttention,
                    {odd,
                     odd,
                     odd,
                     oddPlaces,
                     oddPlaces,
                     oddPlaces,
                     oddPlaces,
                     odd,
                     {kF, {1, 2, 3}},
                     {kF, {1}},
                     {kF, {6}}},
                    {0, 1, 1, 0, 7, 0}, {0.125, 0, 0}),
            "ring_attention: the key has 3 rows of a sequence in zigzag order, "
            "expected an even number: two chunks");
  const auto backward = [&](int64_t gradSums) {
    return refusal(Kernel::RingAttentionGrad,
                   {q,
                    q,
                    k,
                    k,
                    own,
                    own,
                    all,
                    all,
                    q,
                    lse,
                    q,
                    k,
                    k,
                    {kB, {exchange}},
                    {kF, {gradSums}}},
                   {0, 1, 1, 0, 7, 0}, {0.125, 0, 0});
  };
  EXPECT_EQ(backward(ringGradSums(q, k, 3)), "");
  EXPECT_EQ(backward(48),
            "ring_attention_grad: operand 14 is 48xf32, expected 1968 "
            "elements");

  const BufferType x(kF, {2, 6, 8});
  EXPECT_EQ(refusal(Kernel::DropoutAt, {x, own, own, x}, {1, 0}, {0.5}), "");
  EXPECT_EQ(refusal(Kernel::DropoutAt, {x, own, all, x}, {1, 0}, {0.5}),
            "dropout_at: operand 2 is 2x18xi32, expected 2x6xi32 as operand 0 "
            "has rows");
  EXPECT_EQ(refusal(Kernel::DropoutAt, {own, own, own, own}, {1, 0}, {0.5}),
            "dropout_at: operand 0 is 2x6xi32, expected f32 or bf16");
  EXPECT_EQ(refusal(Kernel::DropoutAt, {x, own, own, x}, {1, -1}, {0.5}),
            "dropout_at: first element of the piece is -1, expected 0 to "
            "1099511627776");
}

TEST(Kernels, PiecesBeginInsideOfTheWhole) {
  const BufferType x(kF, {2, 3, 8}), table(kF, {9, 8});
  EXPECT_EQ(refusal(Kernel::AddPositions, {x, table, x}, {6}), "");
  EXPECT_EQ(refusal(Kernel::AddPositions, {x, table, x}, {7}),
            "add_positions: the position table is 9x8xf32, but positions 7 to "
            "9 are added");
  EXPECT_EQ(refusal(Kernel::PositionsGrad, {x, table}, {-1}),
            "positions_grad: first element of the piece is -1, expected 0 to "
            "1099511627776");
  const BufferType ids(DataType::I32, {2, 3});
  // A piece of padding only, and no rows at all.
  EXPECT_EQ(refusal(Kernel::Embedding, {ids, table, x}, {18, 17}), "");
  EXPECT_EQ(refusal(Kernel::Embedding, {ids, table, x}, {0, 0}),
            "embedding: rows is 0, expected 1 to 1099511627776");
  EXPECT_EQ(refusal(Kernel::Dropout, {x, x}, {1, 0, -4}, {0.5}),
            "dropout: first element of the piece is -4, expected 0 to "
            "1099511627776");
}

TEST(Kernels, RopeTableTakesAScaling) {
  const std::vector<BufferType> table = {{kF, {16, 8}}};
  EXPECT_EQ(
      refusal(Kernel::RopeTable, table, {0}, {10000, 0, 0, 0, 0, 0, 0, 1}), "");
  EXPECT_EQ(
      refusal(Kernel::RopeTable, table, {2}, {10000, 8, 1, 4, 8192, 0, 0, 1}),
      "");
  EXPECT_EQ(
      refusal(Kernel::RopeTable, table, {1}, {10000, 0, 0, 0, 0, 0, 0, 1}),
      "rope_table: factor is 0, expected at least 1");
}

TEST(Kernels, ZigzagPiecesHaveTwoRuns) {
  const auto gather = [](int64_t sequence, int64_t zigzag, int64_t scratch) {
    const BufferType piece(kF, {2, sequence, 5});
    BufferType whole(kF, {2, 3 * sequence, 5});
    return refusal(Kernel::AllGather, {piece, whole, {kF, {scratch}}},
                   {0, 1, zigzag}, {});
  };
  EXPECT_EQ(gather(7, 0, 210), "");
  EXPECT_EQ(gather(8, 1, 240), "");
  EXPECT_EQ(gather(7, 1, 210),
            "all_gather: dimension 1: 21 does not divide into the two runs "
            "each of 3 pieces in zigzag (nearest: 18, 24)");
  EXPECT_EQ(gather(8, 2, 240), "all_gather: zigzag is 2, expected 0 to 1");
  EXPECT_EQ(gather(1, 1, 30),
            "all_gather: dimension 1: 3 does not divide into the two runs "
            "each of 3 pieces in zigzag (nearest: 6)");
  const BufferType rows(kF, {4, 5}), all(kF, {12, 5});
  // The two runs of a piece are apart, along dimension 0 too.
  EXPECT_EQ(refusal(Kernel::AllGather, {rows, all, {kF, {1}}}, {0, 0, 0}, {}),
            "");
  EXPECT_EQ(refusal(Kernel::AllGather, {rows, all, {kF, {1}}}, {0, 0, 1}, {}),
            "all_gather: the scratch is 1xf32, expected 60 elements of f32");
  EXPECT_EQ(refusal(Kernel::Slice, {all, rows}, {0, 0, 1}, {}), "");
  EXPECT_EQ(refusal(Kernel::ToPartial, {rows, rows}, {0, -1, 0}, {}), "");
  EXPECT_EQ(refusal(Kernel::ToPartial, {rows, rows}, {0, -1, 1}, {}),
            "to_partial: zigzag is 1, expected 0 to 0");
}

TEST(Kernels, OnlyWithoutZigzagPiecesAreInPlace) {
  const KernelSpec &spec = kernelSpec(Kernel::AllGather);
  const int64_t plain[] = {0, 1, 0}, zigzag[] = {0, 1, 1};
  EXPECT_TRUE(worksInPlace(spec, plain));
  EXPECT_FALSE(worksInPlace(spec, zigzag));
  const int64_t reduction[] = {0, 1};
  EXPECT_TRUE(worksInPlace(kernelSpec(Kernel::AllReduce), reduction));
}

TEST(Kernels, AllToAllCutsOneDimensionForAnother) {
  const BufferType x(kB, {2, 6, 12, 5}), y(kB, {2, 18, 4, 5});
  const auto move = [&](const BufferType &to, std::vector<int64_t> dims,
                        int64_t scratch) {
    return refusal(Kernel::AllToAll, {x, to, {kB, {scratch}}},
                   {0, dims[0], dims[1], dims[2], dims[3]}, {});
  };
  EXPECT_EQ(move(y, {1, 2, 0, 0}, 1440), "");
  EXPECT_EQ(move(y, {1, 2, 1, 1}, 1440), "");
  EXPECT_EQ(move(y, {1, 1, 0, 0}, 1440),
            "all_to_all: from_dim and to_dim are both 1, expected two "
            "dimensions");
  EXPECT_EQ(move(y, {1, 4, 0, 0}, 1440),
            "all_to_all: to_dim is 4, expected 0 to 3");
  EXPECT_EQ(move(y, {2, 1, 0, 0}, 1440),
            "all_to_all: x is 2x6x12x5xbf16 but y is 2x18x4x5xbf16");
  EXPECT_EQ(move({kB, {2, 18, 6, 5}}, {1, 2, 0, 0}, 1440),
            "all_to_all: x is 2x6x12x5xbf16 but y is 2x18x6x5xbf16");
  EXPECT_EQ(move({kB, {2, 18, 4, 5}}, {1, 2, 0, 0}, 720),
            "all_to_all: the scratch is 720xbf16, expected 1440 elements of "
            "bf16");
  // Pieces of dimension 0 follow each other, unless in zigzag.
  const BufferType rows(kF, {3, 10}), columns(kF, {15, 2});
  EXPECT_EQ(allToAllScratch(rows, columns, 0, 1, false, false), 30);
  EXPECT_EQ(allToAllScratch(columns, rows, 1, 0, false, false), 30);
  EXPECT_EQ(allToAllScratch(columns, rows, 1, 0, false, true), 60);
  EXPECT_EQ(allToAllScratch({kF, {1, 4}}, {kF, {2, 2}}, 0, 1, false, false), 1);
  EXPECT_EQ(refusal(Kernel::AllToAll, {rows, columns, {kF, {60}}},
                    {0, 0, 1, 1, 0}, {}),
            "all_to_all: dimension 0: 15 does not divide into the two runs "
            "each of 5 pieces in zigzag (nearest: 10, 20)");
}
