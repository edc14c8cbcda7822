//===- CheckBufferKernels.cpp - Buffers and the optimizer -----------------===//
#include "runtime/plan/KernelChecks.h"
#include "runtime/plan/KernelExpect.h"

namespace mega::checks {

Status zero(Signature s) { return expectContiguous(s, {0}); }

Status copy(Signature s) {
  if (s.operands[0].type != s.operands[1].type) {
    return mismatch("the source", s.operands[0], "the target", s.operands[1]);
  }
  return expectSameShape(s, {0, 1});
}

Status accumulate(Signature s) {
  if (!isFloat(s.operands[0].type) || !isFloat(s.operands[1].type)) {
    return mismatch("the source", s.operands[0], "the target", s.operands[1]);
  }
  return expectSameShape(s, {0, 1});
}

/// f32 or bf16 on either side.
Status cast(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0}));
  MEGA_RETURN_IF_ERROR(expectOneType(s, {1}));
  return expectSameShape(s, {0, 1});
}

Status sumSquares(Signature s) {
  MEGA_RETURN_IF_ERROR(expectType(s, 0, DataType::F32));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {0}));
  MEGA_RETURN_IF_ERROR(expectScalar(s, 1, DataType::F64));
  return expectRange("accumulate", s.integers[0], 0, 1);
}

Status clipScale(Signature s) {
  MEGA_RETURN_IF_ERROR(expectScalar(s, 0, DataType::F64));
  return expectScalar(s, 1, DataType::F32);
}

Status adamW(Signature s) {
  MEGA_RETURN_IF_ERROR(expectF32(s, {0, 1, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {0, 1, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 1, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectScalar(s, 4, DataType::F32));
  return expectRange("decay", s.integers[0], 0, 1);
}

} // namespace mega::checks
