//===- CheckConversionKernels.cpp - Conversions and transfers -------------===//
#include "runtime/plan/KernelChecks.h"
#include "runtime/plan/KernelExpect.h"
#include "runtime/plan/Layout.h"
#include "runtime/plan/SequenceOrder.h"

namespace mega::checks {

/// Of one element type and contiguous; a group that PlanCheck looks up.
static Status expectMoved(Signature s) {
  if (s.operands[0].type != s.operands[1].type ||
      s.operands[0].rank != s.operands[1].rank) {
    return mismatch("x", s.operands[0], "y", s.operands[1]);
  }
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {0, 1}));
  return expectRange("group", s.integers[0], 0, 255);
}

/// Dimension `dim` of `whole` divides into pieces like `piece`.
static Status expectCut(int64_t dim, const BufferType &whole,
                        const BufferType &piece, int64_t zigzag) {
  MEGA_RETURN_IF_ERROR(expectRange("zigzag", zigzag, 0, 1));
  const auto d = static_cast<size_t>(dim);
  MEGA_RETURN_IF_ERROR_CONTEXT(
      checkPieces(zigzag != 0, whole.dims[d] / piece.dims[d], whole.dims[d]),
      "dimension {}", dim);
  return Status::ok();
}

/// Operand `whole` is a multiple of operand `piece` in dimension "dim", and has
/// its shape apart from that.
static Status expectPieces(Signature s, int whole, int piece) {
  MEGA_RETURN_IF_ERROR(expectMoved(s));
  const BufferType &w = s.operands[static_cast<size_t>(whole)];
  const BufferType &p = s.operands[static_cast<size_t>(piece)];
  MEGA_RETURN_IF_ERROR(expectRange("dim", s.integers[1], 0, w.rank - 1));
  for (int i = 0; i < w.rank; ++i) {
    const auto d = static_cast<size_t>(i);
    const bool fits = i == s.integers[1] ? w.dims[d] % p.dims[d] == 0
                                         : w.dims[d] == p.dims[d];
    if (!fits) {
      return mismatch("the whole", w, "the piece", p);
    }
  }
  return expectCut(s.integers[1], w, p, s.integers[2]);
}

/// Operand 2 is the scratch of a collective: `extent` elements of the data.
static Status expectPacking(Signature s, int64_t extent) {
  const BufferType &scratch = s.operands[2];
  if (scratch.type != s.operands[0].type || scratch.rank != 1 ||
      scratch.dims[0] != extent || !scratch.isContiguous()) {
    return badInput("the scratch is {}, expected {} elements of {}",
                    toString(scratch), extent, name(s.operands[0].type));
  }
  return Status::ok();
}
static Status expectPackingOf(Signature s, const BufferType &whole) {
  return expectPacking(
      s, collectiveScratch(whole, s.integers[1], s.integers[2] != 0));
}

Status allReduce(Signature s) {
  MEGA_RETURN_IF_ERROR(expectMoved(s));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1}));
  return expectRange("reduction", s.integers[1],
                     static_cast<int64_t>(Reduction::Sum),
                     static_cast<int64_t>(Reduction::Min));
}

Status allGather(Signature s) {
  MEGA_RETURN_IF_ERROR(expectPieces(s, 1, 0));
  return expectPackingOf(s, s.operands[1]);
}

Status reduceScatter(Signature s) {
  MEGA_RETURN_IF_ERROR(expectPieces(s, 0, 1));
  return expectPackingOf(s, s.operands[0]);
}

Status slice(Signature s) { return expectPieces(s, 0, 1); }

Status toPartial(Signature s) {
  if (s.integers[1] >= 0) {
    return expectPieces(s, 1, 0);
  }
  MEGA_RETURN_IF_ERROR(expectMoved(s));
  MEGA_RETURN_IF_ERROR(expectRange("dim", s.integers[1], -1, -1));
  MEGA_RETURN_IF_ERROR(expectRange("zigzag", s.integers[2], 0, 0));
  return expectSameShape(s, {0, 1});
}

Status allToAll(Signature s) {
  MEGA_RETURN_IF_ERROR(expectMoved(s));
  const BufferType &x = s.operands[0], &y = s.operands[1];
  const int64_t from = s.integers[1], to = s.integers[2];
  MEGA_RETURN_IF_ERROR(expectRange("from_dim", from, 0, x.rank - 1));
  MEGA_RETURN_IF_ERROR(expectRange("to_dim", to, 0, x.rank - 1));
  if (from == to) {
    return badInput("from_dim and to_dim are both {}, expected two dimensions",
                    from);
  }
  const auto f = static_cast<size_t>(from), t = static_cast<size_t>(to);
  bool fits = y.dims[f] % x.dims[f] == 0 && x.dims[t] % y.dims[t] == 0 &&
              y.dims[f] / x.dims[f] == x.dims[t] / y.dims[t];
  for (size_t d = 0; d < static_cast<size_t>(x.rank); ++d) {
    fits &= d == f || d == t || x.dims[d] == y.dims[d];
  }
  if (!fits) {
    return mismatch("x", x, "y", y);
  }
  MEGA_RETURN_IF_ERROR(expectCut(from, y, x, s.integers[3]));
  MEGA_RETURN_IF_ERROR(expectCut(to, x, y, s.integers[4]));
  return expectPacking(s, allToAllScratch(x, y, from, to, s.integers[3] != 0,
                                          s.integers[4] != 0));
}

Status transfer(Signature s) {
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {0}));
  MEGA_RETURN_IF_ERROR(expectRange("group", s.integers[0], 0, 255));
  return expectRange("shift", s.integers[1], 1, (1 << 20) - 1);
}

Status sumStages(Signature s) {
  MEGA_RETURN_IF_ERROR(expectMoved(s));
  return expectSameShape(s, {0, 1});
}

} // namespace mega::checks
