//===- Kernels.cpp - The kernel table and its shape rules -----------------===//
#include "runtime/plan/Kernels.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mega {
namespace {

using Signature = const LaunchSignature &;

Status mismatch(std::string_view what, const BufferType &a,
                std::string_view other, const BufferType &b) {
  return badInput("{} is {} but {} is {}", what, toString(a), other,
                  toString(b));
}

bool sameShape(const BufferType &a, const BufferType &b) {
  return a.rank == b.rank && a.dims == b.dims;
}

/// All operands of `indices` have the shape of the first.
Status expectSameShape(Signature s, std::initializer_list<int> indices) {
  const int first = *indices.begin();
  for (int i : indices) {
    if (!sameShape(s.operands[i], s.operands[first])) {
      return mismatch("operand " + std::to_string(i), s.operands[i],
                      "operand " + std::to_string(first), s.operands[first]);
    }
  }
  return Status::ok();
}

Status expectType(Signature s, int index, DataType type) {
  if (s.operands[index].type != type) {
    return badInput("operand {} is {}, expected element type {}", index,
                    toString(s.operands[index]), name(type));
  }
  return Status::ok();
}

Status expectFloat(Signature s, std::initializer_list<int> indices) {
  for (int i : indices) {
    const DataType type = s.operands[i].type;
    if (type != DataType::F32 && type != DataType::BF16) {
      return badInput("operand {} is {}, expected f32 or bf16", i,
                      toString(s.operands[i]));
    }
  }
  return Status::ok();
}

Status expectContiguous(Signature s, std::initializer_list<int> indices) {
  for (int i : indices) {
    if (!s.operands[i].isContiguous()) {
      return badInput("operand {} is {}, expected contiguous rows", i,
                      toString(s.operands[i]));
    }
  }
  return Status::ok();
}

/// Operand `index` is a contiguous vector of `extent` elements.
Status expectVector(Signature s, int index, int64_t extent) {
  const BufferType &type = s.operands[index];
  if (type.rank != 1 || type.dims[0] != extent) {
    return badInput("operand {} is {}, expected {} elements", index,
                    toString(type), extent);
  }
  return Status::ok();
}

/// Operand `index` holds one value of `type`.
Status expectScalar(Signature s, int index, DataType type) {
  if (s.operands[index].elements() != 1) {
    return badInput("operand {} is {}, expected one element", index,
                    toString(s.operands[index]));
  }
  return expectType(s, index, type);
}

/// Operands of `indices` are contiguous f32 [batch, seq] statistics of the
/// rows of operand `of`.
Status expectRowStatistics(Signature s, int of,
                           std::initializer_list<int> indices) {
  for (int i : indices) {
    const BufferType &type = s.operands[i];
    if (type.type != DataType::F32 ||
        type.elements() != s.operands[of].rows() || type.rank != 2) {
      return badInput("operand {} is {}, expected f32 statistics for the {} "
                      "rows of operand {}",
                      i, toString(type), s.operands[of].rows(), of);
    }
  }
  return expectContiguous(s, indices);
}

Status expectIds(Signature s, int index, int64_t rows) {
  MEGA_RETURN_IF_ERROR(expectType(s, index, DataType::I32));
  if (s.operands[index].rank != 2 || s.operands[index].elements() != rows) {
    return badInput("operand {} is {}, expected [batch, seq] with {} elements",
                    index, toString(s.operands[index]), rows);
  }
  return expectContiguous(s, {index});
}

Status expectRange(std::string_view what, int64_t value, int64_t low,
                   int64_t high) {
  if (value < low || value > high) {
    return badInput("{} is {}, expected {} to {}", what, value, low, high);
  }
  return Status::ok();
}

Status expectPositive(std::string_view what, double value) {
  if (!(value > 0) || !std::isfinite(value)) {
    return badInput("{} is {}, expected a positive number", what, value);
  }
  return Status::ok();
}

Status expectProbability(double p) {
  if (!(p >= 0 && p < 1)) {
    return badInput("dropout probability is {}, expected 0 <= p < 1", p);
  }
  return Status::ok();
}

Status checkGemm(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2}));
  for (int64_t flag : s.integers) {
    MEGA_RETURN_IF_ERROR(expectRange("flag", flag, 0, 1));
  }
  const auto [rowsA, colsA] =
      std::pair(s.operands[0].rows(), s.operands[0].rowSize());
  const auto [rowsB, colsB] =
      std::pair(s.operands[1].rows(), s.operands[1].rowSize());
  const int64_t m = s.integers[0] ? colsA : rowsA;
  const int64_t k = s.integers[0] ? rowsA : colsA;
  const int64_t kOfB = s.integers[1] ? colsB : rowsB;
  const int64_t n = s.integers[1] ? rowsB : colsB;
  if (k != kOfB) {
    return badInput("a contracts {} elements but b {}", k, kOfB);
  }
  if (s.operands[2].rows() != m || s.operands[2].rowSize() != n) {
    return badInput("c is {}, expected {} rows of {}", toString(s.operands[2]),
                    m, n);
  }
  return Status::ok();
}

/// ids, table, rows ("rows" has the token dimension).
Status checkEmbedding(Signature s, int ids, int table, int rows) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {table, rows}));
  MEGA_RETURN_IF_ERROR(expectIds(s, ids, s.operands[rows].rows()));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {table}));
  if (s.operands[table].rank != 2 ||
      s.operands[table].dims[1] != s.operands[rows].rowSize()) {
    return mismatch("the table", s.operands[table], "the rows",
                    s.operands[rows]);
  }
  return Status::ok();
}

/// A [maxSequence, hidden] table added to (or gathered from) [B, S, hidden].
Status checkPositions(Signature s, int rows, int table) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {rows, table}));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {table}));
  const BufferType &x = s.operands[rows];
  const BufferType &t = s.operands[table];
  if (x.rank != 3 || t.rank != 2 || t.dims[1] != x.rowSize() ||
      t.dims[0] < x.dims[1]) {
    return mismatch("the position table", t, "the activations", x);
  }
  return Status::ok();
}

Status checkLayerNorm(Signature s) {
  const int64_t hidden = s.operands[0].rowSize();
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 3}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 1, hidden));
  MEGA_RETURN_IF_ERROR(expectVector(s, 2, hidden));
  MEGA_RETURN_IF_ERROR(expectRowStatistics(s, 0, {4, 5}));
  return expectPositive("epsilon", s.floats[0]);
}

Status checkLayerNormGrad(Signature s) {
  const int64_t hidden = s.operands[0].rowSize();
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2, 5}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 5}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 2, hidden));
  MEGA_RETURN_IF_ERROR(expectRowStatistics(s, 0, {3, 4}));
  for (int i : {6, 7}) {
    MEGA_RETURN_IF_ERROR(expectVector(s, i, hidden));
    MEGA_RETURN_IF_ERROR(expectType(s, i, DataType::F32));
  }
  return expectRange("accumulate", s.integers[0], 0, 1);
}

/// A norm over the last dimension: of [B, S, hidden], or per head of
/// [B, S, heads, dim] (qk-norm), where the statistics are [B, S*heads].
int64_t normDim(const BufferType &x) { return x.dims[x.rank - 1]; }

Status expectNormStatistics(Signature s, int of, int index) {
  const BufferType &x = s.operands[of];
  const BufferType &type = s.operands[index];
  if (type.type != DataType::F32 || type.rank != 2 ||
      type.elements() * normDim(x) != x.elements()) {
    return badInput("operand {} is {}, expected one f32 for each {} elements "
                    "of operand {}",
                    index, toString(type), normDim(x), of);
  }
  return expectContiguous(s, {index});
}

Status checkRmsNorm(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 2}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 1, normDim(s.operands[0])));
  MEGA_RETURN_IF_ERROR(expectNormStatistics(s, 0, 3));
  return expectPositive("epsilon", s.floats[0]);
}

Status checkRmsNormGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2, 4}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 4}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 2, normDim(s.operands[0])));
  MEGA_RETURN_IF_ERROR(expectNormStatistics(s, 0, 3));
  MEGA_RETURN_IF_ERROR(expectVector(s, 5, normDim(s.operands[0])));
  MEGA_RETURN_IF_ERROR(expectType(s, 5, DataType::F32));
  return expectRange("accumulate", s.integers[0], 0, 1);
}

Status checkAddLayerNorm(Signature s) {
  const int64_t hidden = s.operands[0].rowSize();
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2, 3, 4, 5}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 4, 5}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 2, hidden));
  MEGA_RETURN_IF_ERROR(expectVector(s, 3, hidden));
  MEGA_RETURN_IF_ERROR(expectRowStatistics(s, 0, {6, 7}));
  return expectPositive("epsilon", s.floats[0]);
}

Status checkAddRmsNorm(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2, 3, 4}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 3, 4}));
  if (s.operands[0].rank > 3) {
    return badInput("operand 0 is {}, expected at most three dimensions",
                    toString(s.operands[0]));
  }
  MEGA_RETURN_IF_ERROR(expectVector(s, 2, normDim(s.operands[0])));
  MEGA_RETURN_IF_ERROR(expectNormStatistics(s, 0, 5));
  return expectPositive("epsilon", s.floats[0]);
}

Status checkAddBias(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 2}));
  return expectVector(s, 1, s.operands[0].rowSize());
}

Status checkBiasGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 1, s.operands[0].rowSize()));
  return expectType(s, 1, DataType::F32);
}

Status checkGeluKind(Signature s) {
  return expectRange("kind", s.integers[0], 0, 1);
}

Status checkBiasGelu(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 1, s.operands[0].rowSize()));
  return checkGeluKind(s);
}

/// Two operands of one shape.
Status checkUnary(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1}));
  return expectSameShape(s, {0, 1});
}
Status checkGelu(Signature s) {
  MEGA_RETURN_IF_ERROR(checkUnary(s));
  return checkGeluKind(s);
}
/// Three operands of one shape.
Status checkBinary(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2}));
  return expectSameShape(s, {0, 1, 2});
}
Status checkGeluGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(checkBinary(s));
  return checkGeluKind(s);
}
Status checkGated(Signature s) {
  MEGA_RETURN_IF_ERROR(checkBinary(s));
  return expectRange("kind", s.integers[0], 0, 2);
}
Status checkGatedGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1, 2, 3, 4}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 2, 3, 4}));
  return expectRange("kind", s.integers[0], 0, 2);
}

Status checkDropout(Signature s) {
  MEGA_RETURN_IF_ERROR(checkUnary(s));
  return expectProbability(s.floats[0]);
}

Status checkRopeTable(Signature s) {
  MEGA_RETURN_IF_ERROR(expectType(s, 0, DataType::F32));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {0}));
  if (s.operands[0].rank != 2 || s.operands[0].dims[1] % 2 != 0) {
    return badInput("operand 0 is {}, expected [sequence, even head_dim]",
                    toString(s.operands[0]));
  }
  return expectPositive("base", s.floats[0]);
}

Status checkRope(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 2}));
  MEGA_RETURN_IF_ERROR(expectType(s, 1, DataType::F32));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {1}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 2}));
  const BufferType &x = s.operands[0];
  const BufferType &table = s.operands[1];
  if (x.rank != 4 || table.rank != 2 || table.dims[1] != x.dims[3] ||
      table.dims[0] < x.dims[1] || x.dims[3] % 2 != 0) {
    return mismatch("x", x, "the rotation table", table);
  }
  return expectRange("inverse", s.integers[0], 0, 1);
}

/// q [B,S,H,D], k and v [B,S,KV,D], statistics [B*H, S].
Status checkAttentionShapes(Signature s, int q, int k, int v, int lse) {
  const BufferType &tq = s.operands[q];
  const BufferType &tk = s.operands[k];
  MEGA_RETURN_IF_ERROR(expectFloat(s, {q, k, v}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {k, v}));
  if (tq.rank != 4 || tk.rank != 4 || tq.dims[0] != tk.dims[0] ||
      tq.dims[1] != tk.dims[1] || tq.dims[3] != tk.dims[3] || tk.dims[2] == 0 ||
      tq.dims[2] % tk.dims[2] != 0) {
    return mismatch("the query", tq, "the key", tk);
  }
  const BufferType &tl = s.operands[lse];
  if (tl.type != DataType::F32 || tl.rank != 2 ||
      tl.dims[0] != tq.dims[0] * tq.dims[2] || tl.dims[1] != tq.dims[1] ||
      !tl.isContiguous()) {
    return mismatch("the log-sum-exp", tl, "the query", tq);
  }
  MEGA_RETURN_IF_ERROR(expectRange("causal", s.integers[0], 0, 1));
  MEGA_RETURN_IF_ERROR(
      expectRange("window", s.integers[1], 0, int64_t{1} << 40));
  if (!std::isfinite(s.floats[0])) {
    return badInput("the attention scale is not finite");
  }
  return expectProbability(s.floats[1]);
}

Status checkAttention(Signature s) {
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 3}));
  return checkAttentionShapes(s, 0, 1, 2, 4);
}

Status checkAttentionGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 4, 6, 7, 8}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 4, 6}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {2, 7}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {3, 8}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {5, 9}));
  MEGA_RETURN_IF_ERROR(expectType(s, 9, DataType::F32));
  return checkAttentionShapes(s, 1, 2, 3, 5);
}

/// x [B,S,hidden], w [V,hidden], labels [B,S].
Status checkHeadInputs(Signature s) {
  MEGA_RETURN_IF_ERROR(expectFloat(s, {0, 1}));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {1}));
  if (s.operands[1].rank != 2 ||
      s.operands[1].dims[1] != s.operands[0].rowSize()) {
    return mismatch("w", s.operands[1], "x", s.operands[0]);
  }
  return expectIds(s, 2, s.operands[0].rows());
}

Status expectHeadScratch(Signature s, int index) {
  const HeadTile tile = headTile(s.operands[0].rows(), s.operands[1].rows());
  MEGA_RETURN_IF_ERROR(expectType(s, index, DataType::F32));
  return expectVector(s, index, tile.tokens * tile.columns);
}

Status checkHeadStats(Signature s) {
  MEGA_RETURN_IF_ERROR(checkHeadInputs(s));
  MEGA_RETURN_IF_ERROR(expectRowStatistics(s, 0, {3, 4, 5}));
  return expectHeadScratch(s, 6);
}

Status checkHeadStatsGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(checkHeadInputs(s));
  MEGA_RETURN_IF_ERROR(expectRowStatistics(s, 0, {3, 4, 5}));
  MEGA_RETURN_IF_ERROR(expectFloat(s, {6}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 6}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {1, 7}));
  MEGA_RETURN_IF_ERROR(expectType(s, 7, DataType::F32));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {7}));
  return expectHeadScratch(s, 8);
}

/// Contiguous f32 buffers of one shape.
Status checkStatistics(Signature s) {
  for (int i = 0; i < static_cast<int>(s.operands.size()); ++i) {
    MEGA_RETURN_IF_ERROR(expectType(s, i, DataType::F32));
    MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, i}));
    MEGA_RETURN_IF_ERROR(expectContiguous(s, {i}));
  }
  return Status::ok();
}

Status checkHeadLoss(Signature s) {
  for (int i : {0, 1, 2}) {
    MEGA_RETURN_IF_ERROR(expectType(s, i, DataType::F32));
  }
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {0, 1, 2}));
  MEGA_RETURN_IF_ERROR(expectIds(s, 3, s.operands[0].elements()));
  return expectScalar(s, 4, DataType::F32);
}

Status checkHeadLossGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectScalar(s, 0, DataType::F32));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {1, 2, 3, 4}));
  for (int i : {1, 3, 4}) {
    MEGA_RETURN_IF_ERROR(expectType(s, i, DataType::F32));
    MEGA_RETURN_IF_ERROR(expectContiguous(s, {i}));
  }
  return expectIds(s, 2, s.operands[1].elements());
}

Status checkCountValid(Signature s) {
  MEGA_RETURN_IF_ERROR(expectIds(s, 0, s.operands[0].elements()));
  MEGA_RETURN_IF_ERROR(expectScalar(s, 1, DataType::I64));
  return expectRange("accumulate", s.integers[1], 0, 1);
}

Status checkLossSeed(Signature s) {
  MEGA_RETURN_IF_ERROR(expectScalar(s, 0, DataType::I64));
  return expectScalar(s, 1, DataType::F32);
}

Status checkZero(Signature s) { return expectContiguous(s, {0}); }

Status checkCopy(Signature s) {
  if (s.operands[0].type != s.operands[1].type) {
    return mismatch("the source", s.operands[0], "the target", s.operands[1]);
  }
  return expectSameShape(s, {0, 1});
}

Status checkAccumulate(Signature s) {
  if (!isFloat(s.operands[0].type) || !isFloat(s.operands[1].type)) {
    return mismatch("the source", s.operands[0], "the target", s.operands[1]);
  }
  return expectSameShape(s, {0, 1});
}

Status checkSumSquares(Signature s) {
  MEGA_RETURN_IF_ERROR(expectType(s, 0, DataType::F32));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {0}));
  MEGA_RETURN_IF_ERROR(expectScalar(s, 1, DataType::F64));
  return expectRange("accumulate", s.integers[0], 0, 1);
}

Status checkClipScale(Signature s) {
  MEGA_RETURN_IF_ERROR(expectScalar(s, 0, DataType::F64));
  return expectScalar(s, 1, DataType::F32);
}

Status checkAdamW(Signature s) {
  for (int i : {0, 1, 2, 3}) {
    MEGA_RETURN_IF_ERROR(expectType(s, i, DataType::F32));
    MEGA_RETURN_IF_ERROR(expectContiguous(s, {i}));
  }
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectScalar(s, 4, DataType::F32));
  return expectRange("decay", s.integers[0], 0, 1);
}

constexpr Access kRead = Access::Read;
constexpr Access kWrite = Access::Write;
constexpr Access kReadWrite = Access::ReadWrite;
constexpr Access kAccumulate = Access::WriteOrAccumulate;
constexpr Access kScratch = Access::Scratch;

const std::array<KernelSpec, kKernelCount> kSpecs = {{
    // c (+)= op(a) * op(b), op transposing the row matrix when its flag is 1.
    {Kernel::Gemm,
     "gemm",
     {{"a", kRead}, {"b", kRead}, {"c", kAccumulate}},
     {"transpose_a", "transpose_b", "accumulate"},
     {},
     checkGemm},

    // out[t] = table[ids[t]].
    {Kernel::Embedding,
     "embedding",
     {{"ids", kRead}, {"table", kRead}, {"out", kWrite}},
     {},
     {},
     [](Signature s) { return checkEmbedding(s, 0, 1, 2); }},
    // grad_table[ids[t]] += grad_out[t], tokens in order.
    {Kernel::EmbeddingGrad,
     "embedding_grad",
     {{"ids", kRead}, {"grad_out", kRead}, {"grad_table", kReadWrite}},
     {},
     {},
     [](Signature s) { return checkEmbedding(s, 0, 2, 1); }},
    // out[b, s] = x[b, s] + table[s].
    {Kernel::AddPositions,
     "add_positions",
     {{"x", kRead}, {"table", kRead}, {"out", kWrite, 0}},
     {},
     {},
     [](Signature s) {
       MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 2}));
       MEGA_RETURN_IF_ERROR(expectFloat(s, {2}));
       return checkPositions(s, 0, 1);
     }},
    // grad_table[s] += sum over b of grad_out[b, s].
    {Kernel::PositionsGrad,
     "positions_grad",
     {{"grad_out", kRead}, {"grad_table", kReadWrite}},
     {},
     {},
     [](Signature s) { return checkPositions(s, 0, 1); }},

    // Per row: y = (x - mean) * rstd * gamma + beta.
    {Kernel::LayerNorm,
     "layer_norm",
     {{"x", kRead},
      {"gamma", kRead},
      {"beta", kRead},
      {"y", kWrite},
      {"mean", kWrite},
      {"rstd", kWrite}},
     {},
     {"epsilon"},
     checkLayerNorm},
    // grad_x (+)= ...; grad_gamma += sum grad_y * xhat; grad_beta += sum
    // grad_y.
    {Kernel::LayerNormGrad,
     "layer_norm_grad",
     {{"grad_y", kRead},
      {"x", kRead},
      {"gamma", kRead},
      {"mean", kRead},
      {"rstd", kRead},
      {"grad_x", kAccumulate},
      {"grad_gamma", kReadWrite},
      {"grad_beta", kReadWrite}},
     {"accumulate"},
     {},
     checkLayerNormGrad},
    // Over the last dimension: y = x * rstd * (weight_offset + gamma).
    {Kernel::RmsNorm,
     "rms_norm",
     {{"x", kRead}, {"gamma", kRead}, {"y", kWrite}, {"rstd", kWrite}},
     {},
     {"epsilon", "weight_offset"},
     checkRmsNorm},
    {Kernel::RmsNormGrad,
     "rms_norm_grad",
     {{"grad_y", kRead},
      {"x", kRead},
      {"gamma", kRead},
      {"rstd", kRead},
      {"grad_x", kAccumulate},
      {"grad_gamma", kReadWrite}},
     {"accumulate"},
     {"weight_offset"},
     checkRmsNormGrad},
    // sum = a + b, then layer_norm of sum.
    {Kernel::AddLayerNorm,
     "add_layer_norm",
     {{"a", kRead},
      {"b", kRead},
      {"gamma", kRead},
      {"beta", kRead},
      {"sum", kWrite, 0, 1},
      {"y", kWrite},
      {"mean", kWrite},
      {"rstd", kWrite}},
     {},
     {"epsilon"},
     checkAddLayerNorm},
    // sum = a + b, then rms_norm of sum.
    {Kernel::AddRmsNorm,
     "add_rms_norm",
     {{"a", kRead},
      {"b", kRead},
      {"gamma", kRead},
      {"sum", kWrite, 0, 1},
      {"y", kWrite},
      {"rstd", kWrite}},
     {},
     {"epsilon", "weight_offset"},
     checkAddRmsNorm},

    // y = x + bias on every row.
    {Kernel::AddBias,
     "add_bias",
     {{"x", kRead}, {"bias", kRead}, {"y", kWrite, 0}},
     {},
     {},
     checkAddBias},
    // grad_bias += sum over rows of grad_y.
    {Kernel::BiasGrad,
     "bias_grad",
     {{"grad_y", kRead}, {"grad_bias", kReadWrite}},
     {},
     {},
     checkBiasGrad},
    // z = x + bias (kept for the backward); y = gelu(z).
    {Kernel::BiasGelu,
     "bias_gelu",
     {{"x", kRead}, {"bias", kRead}, {"z", kWrite, 0}, {"y", kWrite}},
     {"kind"},
     {},
     checkBiasGelu},
    {Kernel::Gelu,
     "gelu",
     {{"x", kRead}, {"y", kWrite, 0}},
     {"kind"},
     {},
     checkGelu},
    // grad_x = grad_y * gelu'(x).
    {Kernel::GeluGrad,
     "gelu_grad",
     {{"grad_y", kRead}, {"x", kRead}, {"grad_x", kWrite, 0}},
     {"kind"},
     {},
     checkGeluGrad},
    // y = x * sigmoid(x).
    {Kernel::Silu,
     "silu",
     {{"x", kRead}, {"y", kWrite, 0}},
     {},
     {},
     checkUnary},
    {Kernel::SiluGrad,
     "silu_grad",
     {{"grad_y", kRead}, {"x", kRead}, {"grad_x", kWrite, 0}},
     {},
     {},
     checkBinary},
    // y = act(gate) * up.
    {Kernel::Gated,
     "gated",
     {{"gate", kRead}, {"up", kRead}, {"y", kWrite, 0, 1}},
     {"kind"},
     {},
     checkGated},
    {Kernel::GatedGrad,
     "gated_grad",
     {{"grad_y", kRead},
      {"gate", kRead},
      {"up", kRead},
      {"grad_gate", kWrite, 0},
      {"grad_up", kWrite, 0}},
     {"kind"},
     {},
     checkGatedGrad},
    {Kernel::Add,
     "add",
     {{"a", kRead}, {"b", kRead}, {"y", kWrite, 0, 1}},
     {},
     {},
     checkBinary},
    // y = select(keep, x / (1 - p), 0); its own transpose. `key` is the hash
    // of block and dropout name; the counter is (global sample, position,
    // feature): runtime/plan/Philox.h.
    {Kernel::Dropout,
     "dropout",
     {{"x", kRead}, {"y", kWrite, 0}},
     {"key"},
     {"p"},
     checkDropout},

    // table[s, i] = cos, table[s, D/2 + i] = sin of s * base^(-2i/D).
    {Kernel::RopeTable,
     "rope_table",
     {{"table", kWrite}},
     {},
     {"base"},
     checkRopeTable},
    // Rotates pairs (i, i + D/2) by the table's angle at the row's position,
    // backwards when inverse is 1 (which is the transpose).
    {Kernel::Rope,
     "rope",
     {{"x", kRead}, {"table", kRead}, {"y", kWrite, 0}},
     {"inverse"},
     {},
     checkRope},
    // out = dropout(softmax(scale * q k^T + mask)) v, never materialising
    // S x S; lse[b*H + h, s] = log-sum-exp of the row. Key j is visible to
    // query i iff (!causal or j <= i) and (window == 0 or i - window < j).
    {Kernel::Attention,
     "attention",
     {{"q", kRead},
      {"k", kRead},
      {"v", kRead},
      {"out", kWrite},
      {"lse", kWrite}},
     {"causal", "window", "dropout_key"},
     {"scale", "dropout"},
     checkAttention},
    // `delta` [B*H, S] holds the row sums of grad_out * out.
    {Kernel::AttentionGrad,
     "attention_grad",
     {{"grad_out", kRead},
      {"q", kRead},
      {"k", kRead},
      {"v", kRead},
      {"out", kRead},
      {"lse", kRead},
      {"grad_q", kWrite},
      {"grad_k", kWrite},
      {"grad_v", kWrite},
      {"delta", kScratch}},
     {"causal", "window", "dropout_key"},
     {"scale", "dropout"},
     checkAttentionGrad},

    // Per token over the rows of w: max = max z, sum = sum exp(z - max),
    // target = z[label - first_row] if that row is here, else 0; z = x w^T is
    // only ever a tile in `scratch` (headTile). Tokens whose label is `ignore`
    // have target 0.
    {Kernel::HeadStats,
     "head_stats",
     {{"x", kRead},
      {"w", kRead},
      {"labels", kRead},
      {"max", kWrite},
      {"sum", kWrite},
      {"target", kWrite},
      {"scratch", kScratch}},
     {"ignore", "first_row"},
     {},
     checkHeadStats},
    // sum_out = sum * exp(max_local - max_global).
    {Kernel::HeadRescale,
     "head_rescale",
     {{"sum", kRead},
      {"max_local", kRead},
      {"max_global", kRead},
      {"sum_out", kWrite, 0}},
     {},
     {},
     checkStatistics},
    // loss = sum over tokens with a label other than `ignore` of
    // log(sum) + max - target.
    {Kernel::HeadLoss,
     "head_loss",
     {{"max", kRead},
      {"sum", kRead},
      {"target", kRead},
      {"labels", kRead},
      {"loss", kWrite}},
     {"ignore"},
     {},
     checkHeadLoss},
    // grad_sum = seed / sum, grad_target = -seed; both 0 where ignored.
    {Kernel::HeadLossGrad,
     "head_loss_grad",
     {{"seed", kRead},
      {"sum", kRead},
      {"labels", kRead},
      {"grad_sum", kWrite},
      {"grad_target", kWrite}},
     {"ignore"},
     {},
     checkHeadLossGrad},
    // grad_sum_out = grad_sum * exp(max_local - max_global).
    {Kernel::HeadRescaleGrad,
     "head_rescale_grad",
     {{"grad_sum", kRead},
      {"max_local", kRead},
      {"max_global", kRead},
      {"grad_sum_out", kWrite, 0}},
     {},
     {},
     checkStatistics},
    // grad_z = grad_sum * exp(z - max) + grad_target * onehot(label), z
    // recomputed by tiles; grad_x = grad_z w; grad_w += grad_z^T x.
    {Kernel::HeadStatsGrad,
     "head_stats_grad",
     {{"x", kRead},
      {"w", kRead},
      {"labels", kRead},
      {"max", kRead},
      {"grad_sum", kRead},
      {"grad_target", kRead},
      {"grad_x", kWrite},
      {"grad_w", kReadWrite},
      {"scratch", kScratch}},
     {"ignore", "first_row"},
     {},
     checkHeadStatsGrad},
    // count (+)= number of labels other than `ignore`.
    {Kernel::CountValid,
     "count_valid",
     {{"labels", kRead}, {"count", kAccumulate}},
     {"ignore", "accumulate"},
     {},
     checkCountValid},
    // seed = weight / max(count, 1).
    {Kernel::LossSeed,
     "loss_seed",
     {{"count", kRead}, {"seed", kWrite}},
     {},
     {"weight"},
     checkLossSeed},

    {Kernel::Zero, "zero", {{"target", kWrite}}, {}, {}, checkZero},
    {Kernel::Copy,
     "copy",
     {{"source", kRead}, {"target", kWrite}},
     {},
     {},
     checkCopy},
    // target += source; element types may differ (a widening sum).
    {Kernel::Accumulate,
     "accumulate",
     {{"source", kRead}, {"target", kReadWrite}},
     {},
     {},
     checkAccumulate},

    // total (+)= sum of squares, in f64 and in an order of its own.
    {Kernel::SumSquares,
     "sum_squares",
     {{"x", kRead}, {"total", kAccumulate}},
     {"accumulate"},
     {},
     checkSumSquares},
    // scale = min(1, clip / (sqrt(total) + 1e-6)); 1 when clip is 0.
    {Kernel::ClipScale,
     "clip_scale",
     {{"total", kRead}, {"scale", kWrite}},
     {},
     {},
     checkClipScale},
    // Decoupled weight decay (Loshchilov and Hutter, 2019) on scale * grad;
    // lr, betas, epsilon, decay and step come from the run.
    {Kernel::AdamW,
     "adamw",
     {{"weight", kReadWrite},
      {"grad", kRead},
      {"moment", kReadWrite},
      {"variance", kReadWrite},
      {"scale", kRead}},
     {"decay"},
     {},
     checkAdamW},
}};

} // namespace

const KernelSpec &kernelSpec(Kernel kernel) {
  return kSpecs[static_cast<size_t>(kernel)];
}

std::optional<Kernel> findKernel(std::string_view name) {
  for (const KernelSpec &spec : kSpecs) {
    if (spec.name == name) {
      return spec.kernel;
    }
  }
  return std::nullopt;
}

Status checkLaunch(Kernel kernel, const LaunchSignature &signature) {
  const KernelSpec &spec = kernelSpec(kernel);
  if (signature.operands.size() != spec.operands.size() ||
      signature.integers.size() != spec.integers.size() ||
      signature.floats.size() != spec.floats.size()) {
    return badInput("{} takes {} operands, {} integers and {} floats, not {}, "
                    "{} and {}",
                    spec.name, spec.operands.size(), spec.integers.size(),
                    spec.floats.size(), signature.operands.size(),
                    signature.integers.size(), signature.floats.size());
  }
  MEGA_RETURN_IF_ERROR_CONTEXT(spec.check(signature), "{}", spec.name);
  return Status::ok();
}

Access resolvedAccess(const KernelSpec &spec, int index,
                      std::span<const int64_t> integers) {
  const Access access = spec.operands[index].access;
  if (access != Access::WriteOrAccumulate) {
    return access;
  }
  const auto it = std::find(spec.integers.begin(), spec.integers.end(),
                            std::string_view("accumulate"));
  return integers[it - spec.integers.begin()] ? Access::ReadWrite
                                              : Access::Write;
}

HeadTile headTile(int64_t tokens, int64_t vocabulary) {
  // 2 MiB of f32 at the most: stays in a second-level cache, and is large
  // enough for GEMM to run at full speed on either dimension.
  return {std::min<int64_t>(tokens, 512), std::min<int64_t>(vocabulary, 1024)};
}

} // namespace mega
