//===- CheckHeadKernels.cpp - Output head and cross entropy ---------------===//
#include "runtime/plan/KernelChecks.h"
#include "runtime/plan/KernelExpect.h"

namespace mega::checks {

/// x [B,S,hidden], w [V,hidden], labels [B,S]; integers ignore, first_row,
/// rows.
static Status headInputs(Signature s) {
  MEGA_RETURN_IF_ERROR(expectSoftcap(s.floats[0]));
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1}));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {1}));
  if (s.operands[1].rank != 2 ||
      s.operands[1].dims[1] != s.operands[0].rowSize()) {
    return mismatch("w", s.operands[1], "x", s.operands[0]);
  }
  MEGA_RETURN_IF_ERROR(expectStart(s, 1));
  MEGA_RETURN_IF_ERROR(expectRange("rows", s.integers[2], 1, int64_t{1} << 40));
  return expectIds(s, 2, s.operands[0].rows());
}

Status headStats(Signature s) {
  MEGA_RETURN_IF_ERROR(headInputs(s));
  MEGA_RETURN_IF_ERROR(expectRowStatistics(s, 0, {3, 4, 5}));
  return expectVector(s, 6,
                      headScratch(s.operands[0].rows(), s.operands[1].rows()));
}

Status headStatsGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(headInputs(s));
  MEGA_RETURN_IF_ERROR(expectRowStatistics(s, 0, {3, 4, 5}));
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 6}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 6}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {1, 7}));
  MEGA_RETURN_IF_ERROR(expectF32(s, {7}));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {7}));
  const BufferType &x = s.operands[0];
  return expectVector(
      s, 8,
      headGradScratch(x.rows(), s.operands[1].rows(), x.rowSize(), x.type));
}

Status statistics(Signature s) {
  for (int i = 0; i < static_cast<int>(s.operands.size()); ++i) {
    MEGA_RETURN_IF_ERROR(expectF32(s, {i}));
    MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, i}));
    MEGA_RETURN_IF_ERROR(expectContiguous(s, {i}));
  }
  return Status::ok();
}

Status headLoss(Signature s) {
  MEGA_RETURN_IF_ERROR(expectF32(s, {0, 1, 2}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {0, 1, 2}));
  MEGA_RETURN_IF_ERROR(expectIds(s, 3, s.operands[0].elements()));
  return expectScalar(s, 4, DataType::F32);
}

Status headLossGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectScalar(s, 0, DataType::F32));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {1, 2, 3, 4}));
  MEGA_RETURN_IF_ERROR(expectF32(s, {1, 3, 4}));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {1, 3, 4}));
  return expectIds(s, 2, s.operands[1].elements());
}

Status countValid(Signature s) {
  MEGA_RETURN_IF_ERROR(expectIds(s, 0, s.operands[0].elements()));
  MEGA_RETURN_IF_ERROR(expectScalar(s, 1, DataType::I64));
  return expectRange("accumulate", s.integers[1], 0, 1);
}

Status lossSeed(Signature s) {
  MEGA_RETURN_IF_ERROR(expectScalar(s, 0, DataType::I64));
  return expectScalar(s, 1, DataType::F32);
}

} // namespace mega::checks
