//===- CheckRowKernels.cpp - Norms and element-wise -----------------------===//
#include "runtime/plan/KernelChecks.h"
#include "runtime/plan/KernelExpect.h"

namespace mega::checks {

Status layerNorm(Signature s) {
  const int64_t hidden = s.operands[0].rowSize();
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 3}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 3}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 1, hidden));
  MEGA_RETURN_IF_ERROR(expectVector(s, 2, hidden));
  MEGA_RETURN_IF_ERROR(expectRowStatistics(s, 0, {4, 5}));
  return expectPositive("epsilon", s.floats[0]);
}

Status layerNormGrad(Signature s) {
  const int64_t hidden = s.operands[0].rowSize();
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1, 5}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 5}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 2, hidden));
  MEGA_RETURN_IF_ERROR(expectRowStatistics(s, 0, {3, 4}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 6, hidden));
  MEGA_RETURN_IF_ERROR(expectVector(s, 7, hidden));
  return expectRange("accumulate", s.integers[0], 0, 1);
}

/// A norm over the last dimension: of [B, S, hidden], or per head of
/// [B, S, heads, dim] (qk-norm), where the statistics are [B, S, heads].
static int64_t normDim(const BufferType &x) { return x.dims[x.rank - 1]; }

static Status expectNormStatistics(Signature s, int of, int index) {
  const BufferType &x = s.operands[of];
  const BufferType &type = s.operands[index];
  if (type.type != DataType::F32 || type.rank != x.rank - 1 ||
      type.elements() * normDim(x) != x.elements()) {
    return badInput("operand {} is {}, expected one f32 for each {} elements "
                    "of operand {}",
                    index, toString(type), normDim(x), of);
  }
  return expectContiguous(s, {index});
}

Status rmsNorm(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 2}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 2}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 1, normDim(s.operands[0])));
  MEGA_RETURN_IF_ERROR(expectNormStatistics(s, 0, 3));
  return expectPositive("epsilon", s.floats[0]);
}

Status rmsNormGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1, 4}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 4}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 2, normDim(s.operands[0])));
  MEGA_RETURN_IF_ERROR(expectNormStatistics(s, 0, 3));
  MEGA_RETURN_IF_ERROR(expectVector(s, 5, normDim(s.operands[0])));
  return expectRange("accumulate", s.integers[0], 0, 1);
}

Status addLayerNorm(Signature s) {
  const int64_t hidden = s.operands[0].rowSize();
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1, 4, 5}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 4, 5}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 2, hidden));
  MEGA_RETURN_IF_ERROR(expectVector(s, 3, hidden));
  MEGA_RETURN_IF_ERROR(expectRowStatistics(s, 0, {6, 7}));
  return expectPositive("epsilon", s.floats[0]);
}

Status addRmsNorm(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1, 3, 4}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 3, 4}));
  if (s.operands[0].rank > 3) {
    return badInput("operand 0 is {}, expected at most three dimensions",
                    toString(s.operands[0]));
  }
  MEGA_RETURN_IF_ERROR(expectVector(s, 2, normDim(s.operands[0])));
  MEGA_RETURN_IF_ERROR(expectNormStatistics(s, 0, 5));
  return expectPositive("epsilon", s.floats[0]);
}

static Status geluKind(Signature s) {
  return expectRange("kind", s.integers[0], 0, 1);
}

Status unary(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1}));
  return expectSameShape(s, {0, 1});
}
Status gelu(Signature s) {
  MEGA_RETURN_IF_ERROR(unary(s));
  return geluKind(s);
}
Status binary(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1, 2}));
  return expectSameShape(s, {0, 1, 2});
}
Status geluGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(binary(s));
  return geluKind(s);
}
Status gated(Signature s) {
  MEGA_RETURN_IF_ERROR(binary(s));
  return expectRange("kind", s.integers[0], 0, 2);
}
Status gatedGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1, 2, 3, 4}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 2, 3, 4}));
  return expectRange("kind", s.integers[0], 0, 2);
}

Status dropout(Signature s) {
  MEGA_RETURN_IF_ERROR(unary(s));
  MEGA_RETURN_IF_ERROR(expectStart(s, 1));
  MEGA_RETURN_IF_ERROR(expectStart(s, 2));
  return expectProbability(s.floats[0]);
}

Status dropoutAt(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 3}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 3}));
  if (s.operands[0].rank < 3) {
    return badInput("operand 0 is {}, expected [batch, sequence, ...]",
                    toString(s.operands[0]));
  }
  MEGA_RETURN_IF_ERROR(expectPlaces(s, 0, {1, 2}));
  MEGA_RETURN_IF_ERROR(expectStart(s, 1));
  return expectProbability(s.floats[0]);
}

Status scale(Signature s) {
  MEGA_RETURN_IF_ERROR(unary(s));
  return expectFinite("factor", s.floats[0]);
}

} // namespace mega::checks
