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
