//===- CheckAttentionKernels.cpp - Rotary embedding and attention ---------===//
#include "runtime/plan/KernelChecks.h"
#include "runtime/plan/KernelExpect.h"
#include "runtime/plan/RopeFrequencies.h"

namespace mega::checks {

Status ropeTable(Signature s) {
  MEGA_RETURN_IF_ERROR(expectType(s, 0, DataType::F32));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {0}));
  if (s.operands[0].rank != 2 || s.operands[0].dims[1] % 2 != 0) {
    return badInput("operand 0 is {}, expected [sequence, even head_dim]",
                    toString(s.operands[0]));
  }
  return checkRopeScaling(RopeScaling::of(s.integers, s.floats), s.floats[0]);
}

Status rope(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 2}));
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

/// q [B,S,H,D], k and v [B,S,KV,D], statistics [B,H,S].
static Status attentionShapes(Signature s, int q, int k, int v, int lse) {
  const BufferType &tq = s.operands[q];
  const BufferType &tk = s.operands[k];
  MEGA_RETURN_IF_ERROR(expectOneType(s, {q, k, v}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {k, v}));
  if (tq.rank != 4 || tk.rank != 4 || tq.dims[0] != tk.dims[0] ||
      tq.dims[1] != tk.dims[1] || tq.dims[3] != tk.dims[3] || tk.dims[2] == 0 ||
      tq.dims[2] % tk.dims[2] != 0) {
    return mismatch("the query", tq, "the key", tk);
  }
  if (tq.type == DataType::BF16 && tq.dims[3] > kMaxBf16HeadDim) {
    return badInput("the query is {}, expected a head_dim of at most {}",
                    toString(tq), kMaxBf16HeadDim);
  }
  const BufferType &tl = s.operands[lse];
  if (tl.type != DataType::F32 || tl.rank != 3 || tl.dims[0] != tq.dims[0] ||
      tl.dims[1] != tq.dims[2] || tl.dims[2] != tq.dims[1] ||
      !tl.isContiguous()) {
    return mismatch("the log-sum-exp", tl, "the query", tq);
  }
  MEGA_RETURN_IF_ERROR(expectRange("causal", s.integers[0], 0, 1));
  MEGA_RETURN_IF_ERROR(
      expectRange("window", s.integers[1], 0, int64_t{1} << 40));
  MEGA_RETURN_IF_ERROR(expectStart(s, 3));
  MEGA_RETURN_IF_ERROR(expectFinite("scale", s.floats[0]));
  MEGA_RETURN_IF_ERROR(expectProbability(s.floats[1]));
  return expectSoftcap(s.floats[2]);
}

Status attention(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 3}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 3}));
  return attentionShapes(s, 0, 1, 2, 4);
}

Status attentionGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1, 4, 6, 7, 8}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 4, 6}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {2, 7}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {3, 8}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {5, 9}));
  MEGA_RETURN_IF_ERROR(expectType(s, 9, DataType::F32));
  return attentionShapes(s, 1, 2, 3, 5);
}

} // namespace mega::checks
