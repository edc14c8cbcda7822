//===- KernelExpect.h - What shape rules are made of ------------*- C++ -*-===//
//
// Each function returns an error that names the operand, what it is and what
// was expected. For the files that implement KernelChecks.h.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_KERNELEXPECT_H
#define MEGA_RUNTIME_PLAN_KERNELEXPECT_H

#include "runtime/plan/Kernels.h"

#include <initializer_list>
#include <string_view>

namespace mega::checks {

using Signature = const LaunchSignature &;

Status mismatch(std::string_view what, const BufferType &a,
                std::string_view other, const BufferType &b);

/// All operands of `indices` have the shape of the first.
Status expectSameShape(Signature s, std::initializer_list<int> indices);

Status expectType(Signature s, int index, DataType type);
/// All operands of `indices` are f32.
Status expectF32(Signature s, std::initializer_list<int> indices);
/// All operands of `indices` are f32, or all are bf16.
Status expectOneType(Signature s, std::initializer_list<int> indices);

Status expectContiguous(Signature s, std::initializer_list<int> indices);
/// Operand `index` is a contiguous f32 vector of `extent` elements.
Status expectVector(Signature s, int index, int64_t extent);
/// Operand `index` holds one value of `type`.
Status expectScalar(Signature s, int index, DataType type);
/// Operands of `indices` are contiguous f32 [batch, seq] statistics of the
/// rows of operand `of`.
Status expectRowStatistics(Signature s, int of,
                           std::initializer_list<int> indices);
/// Operand `index` is a contiguous i32 [batch, seq] of `rows` elements.
Status expectIds(Signature s, int index, int64_t rows);
/// Operands of `indices` are contiguous i32 [batch, seq], one for each row of
/// operand `of`, [batch, seq, ...].
Status expectPlaces(Signature s, int of, std::initializer_list<int> indices);

Status expectRange(std::string_view what, int64_t value, int64_t low,
                   int64_t high);
/// Integer `index`, where a piece begins in the whole: 0 to 2^40.
Status expectStart(Signature s, int index);
Status expectFinite(std::string_view what, double value);
Status expectPositive(std::string_view what, double value);
Status expectProbability(double p);
/// 0 (off) or a positive number.
Status expectSoftcap(double cap);

} // namespace mega::checks

#endif // MEGA_RUNTIME_PLAN_KERNELEXPECT_H
