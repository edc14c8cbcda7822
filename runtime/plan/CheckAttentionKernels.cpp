//===- CheckAttentionKernels.cpp - Rotary embedding and attention ---------===//
#include "runtime/plan/KernelChecks.h"
#include "runtime/plan/KernelExpect.h"
#include "runtime/plan/RopeFrequencies.h"
#include "runtime/plan/SequenceOrder.h"

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

/// Operand `y` is x, operand 0, rotated by rows of the table, operand 1.
static Status rotation(Signature s, int y, int64_t rows) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, y}));
  MEGA_RETURN_IF_ERROR(expectType(s, 1, DataType::F32));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {1}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, y}));
  const BufferType &x = s.operands[0];
  const BufferType &table = s.operands[1];
  if (x.rank != 4 || table.rank != 2 || table.dims[1] != x.dims[3] ||
      table.dims[0] < rows || x.dims[3] % 2 != 0) {
    return mismatch("x", x, "the rotation table", table);
  }
  return expectRange("inverse", s.integers[0], 0, 1);
}

Status rope(Signature s) { return rotation(s, 2, s.operands[0].dims[1]); }

Status ropeAt(Signature s) {
  MEGA_RETURN_IF_ERROR(rotation(s, 3, 1));
  return expectPlaces(s, 0, {2});
}

/// q [B,S,H,D], k and v [B,T,KV,D], statistics [B,H,S]. S is T unless places
/// are operands.
static Status attentionShapes(Signature s, int q, int k, int v, int lse,
                              bool oneLength = true) {
  const BufferType &tq = s.operands[q];
  const BufferType &tk = s.operands[k];
  MEGA_RETURN_IF_ERROR(expectOneType(s, {q, k, v}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {k, v}));
  if (tq.rank != 4 || tk.rank != 4 || tq.dims[0] != tk.dims[0] ||
      (oneLength && tq.dims[1] != tk.dims[1]) || tq.dims[3] != tk.dims[3] ||
      tk.dims[2] == 0 || tq.dims[2] % tk.dims[2] != 0) {
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
  // The last four: a ring has others before them.
  const size_t causal = s.integers.size() - 4;
  MEGA_RETURN_IF_ERROR(expectRange("causal", s.integers[causal], 0, 1));
  MEGA_RETURN_IF_ERROR(
      expectRange("window", s.integers[causal + 1], 0, int64_t{1} << 40));
  MEGA_RETURN_IF_ERROR(expectStart(s, static_cast<int>(causal) + 3));
  MEGA_RETURN_IF_ERROR(expectFinite("scale", s.floats[0]));
  MEGA_RETURN_IF_ERROR(expectProbability(s.floats[1]));
  return expectSoftcap(s.floats[2]);
}

Status attention(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 3}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 3}));
  return attentionShapes(s, 0, 1, 2, 4);
}

/// Operand `out` and those after it up to grad_v are like the ones before,
/// which they are gradients of.
static Status gradientShapes(Signature s, int out) {
  const int gradQ = out + 2, gradK = out + 3, gradV = out + 4;
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1, out, gradQ, gradK, gradV}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, out, gradQ}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {2, gradK}));
  return expectSameShape(s, {3, gradV});
}

/// Operand `delta` is scratch like the log-sum-exp.
static Status deltaShape(Signature s, int lse, int delta) {
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {lse, delta}));
  return expectType(s, delta, DataType::F32);
}

Status attentionGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(gradientShapes(s, 4));
  MEGA_RETURN_IF_ERROR(deltaShape(s, 5, 9));
  return attentionShapes(s, 1, 2, 3, 5);
}

Status packedAttention(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 7}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 7}));
  MEGA_RETURN_IF_ERROR(attentionShapes(s, 0, 1, 2, 8, /*oneLength=*/false));
  MEGA_RETURN_IF_ERROR(expectPlaces(s, 0, {3, 4}));
  return expectPlaces(s, 1, {5, 6});
}

Status packedAttentionGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(gradientShapes(s, 8));
  MEGA_RETURN_IF_ERROR(deltaShape(s, 9, 13));
  MEGA_RETURN_IF_ERROR(attentionShapes(s, 1, 2, 3, 9, /*oneLength=*/false));
  MEGA_RETURN_IF_ERROR(expectPlaces(s, 1, {4, 5}));
  return expectPlaces(s, 2, {6, 7});
}

/// In how many pieces the keys are.
static int64_t ranksOf(const BufferType &k, const BufferType &keyPlaces) {
  return keyPlaces.dims[1] / k.dims[1];
}

/// Operands q, k, v, places of queries, places of whole rows of keys from
/// operand `q` on. The exchange is the last operand but one.
static Status ringShapes(Signature s, int q, int lse) {
  const int k = q + 1, keyPlaces = q + 5;
  MEGA_RETURN_IF_ERROR(attentionShapes(s, q, k, q + 2, lse));
  MEGA_RETURN_IF_ERROR(expectPlaces(s, q, {q + 3, q + 4}));
  MEGA_RETURN_IF_ERROR(expectRange("group", s.integers[0], 0, 255));
  MEGA_RETURN_IF_ERROR(expectRange(
      "order", s.integers[1], static_cast<int64_t>(SequenceOrder::Contiguous),
      static_cast<int64_t>(SequenceOrder::Balanced)));
  const BufferType &piece = s.operands[k];
  const BufferType &places = s.operands[keyPlaces];
  if (places.type != DataType::I32 || places.rank != 2 ||
      places.dims[0] != piece.dims[0] || piece.dims[1] == 0 ||
      places.dims[1] == 0 || places.dims[1] % piece.dims[1] != 0) {
    return badInput("operand {} is {}, expected {} rows of a multiple of {} "
                    "i32, as the key is a piece of",
                    keyPlaces, toString(places), piece.dims[0], piece.dims[1]);
  }
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {keyPlaces, keyPlaces + 1}));
  MEGA_RETURN_IF_ERROR(expectType(s, keyPlaces + 1, DataType::I32));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {keyPlaces, keyPlaces + 1}));
  if (s.integers[1] == static_cast<int64_t>(SequenceOrder::Zigzag) &&
      piece.dims[1] % 2 != 0) {
    return badInput("the key has {} rows of a sequence in zigzag order, "
                    "expected an even number: two chunks",
                    piece.dims[1]);
  }
  const auto exchange = static_cast<int>(s.operands.size()) - 2;
  const int64_t extent = ringScratch(piece, ranksOf(piece, places));
  const BufferType &scratch = s.operands[exchange];
  if (scratch.type != piece.type || scratch.rank != 1 ||
      scratch.dims[0] != extent || !scratch.isContiguous()) {
    return badInput("the exchange is {}, expected {} elements of {}",
                    toString(scratch), extent, name(piece.type));
  }
  return Status::ok();
}

Status ringAttention(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 7}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 7}));
  MEGA_RETURN_IF_ERROR(ringShapes(s, 0, 8));
  return expectVector(s, 10, ringSums(s.operands[0]));
}

Status ringAttentionGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(gradientShapes(s, 8));
  MEGA_RETURN_IF_ERROR(ringShapes(s, 1, 9));
  const BufferType &k = s.operands[2];
  return expectVector(
      s, 14, ringGradSums(s.operands[1], k, ranksOf(k, s.operands[6])));
}

} // namespace mega::checks
