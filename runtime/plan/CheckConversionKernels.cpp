//===- CheckConversionKernels.cpp - Conversions and transfers -------------===//
#include "runtime/plan/KernelChecks.h"
#include "runtime/plan/KernelExpect.h"
#include "runtime/plan/Layout.h"

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
  return Status::ok();
}

/// Operand 2 is the scratch that a collective on `whole` needs.
static Status expectPacking(Signature s, const BufferType &whole) {
  const BufferType &scratch = s.operands[2];
  const int64_t extent = collectiveScratch(whole, s.integers[1]);
  if (scratch.type != whole.type || scratch.rank != 1 ||
      scratch.dims[0] != extent || !scratch.isContiguous()) {
    return badInput("the scratch is {}, expected {} elements of {}",
                    toString(scratch), extent, name(whole.type));
  }
  return Status::ok();
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
  return expectPacking(s, s.operands[1]);
}

Status reduceScatter(Signature s) {
  MEGA_RETURN_IF_ERROR(expectPieces(s, 0, 1));
  return expectPacking(s, s.operands[0]);
}

Status slice(Signature s) { return expectPieces(s, 0, 1); }

Status toPartial(Signature s) {
  if (s.integers[1] >= 0) {
    return expectPieces(s, 1, 0);
  }
  MEGA_RETURN_IF_ERROR(expectMoved(s));
  MEGA_RETURN_IF_ERROR(expectRange("dim", s.integers[1], -1, -1));
  return expectSameShape(s, {0, 1});
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
