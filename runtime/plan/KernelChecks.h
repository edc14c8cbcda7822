//===- KernelChecks.h - Shape, type and attribute rules ---------*- C++ -*-===//
//
// `KernelSpec::check` of every row of the kernel table, whose comment says
// what the operands are.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_KERNELCHECKS_H
#define MEGA_RUNTIME_PLAN_KERNELCHECKS_H

#include "runtime/plan/Kernels.h"

namespace mega::checks {

// CheckMatrixKernels.cpp
Status gemm(const LaunchSignature &s);
Status embedding(const LaunchSignature &s);
Status embeddingGrad(const LaunchSignature &s);
Status addPositions(const LaunchSignature &s);
Status positionsGrad(const LaunchSignature &s);
Status addPositionsAt(const LaunchSignature &s);
Status positionsGradAt(const LaunchSignature &s);
Status addBias(const LaunchSignature &s);
Status biasGrad(const LaunchSignature &s);
Status biasGelu(const LaunchSignature &s);

// CheckRowKernels.cpp: norms
Status layerNorm(const LaunchSignature &s);
Status layerNormGrad(const LaunchSignature &s);
Status rmsNorm(const LaunchSignature &s);
Status rmsNormGrad(const LaunchSignature &s);
Status addLayerNorm(const LaunchSignature &s);
Status addRmsNorm(const LaunchSignature &s);

// Element-wise. `unary`: two operands of one shape; `binary`: three.
Status gelu(const LaunchSignature &s);
Status geluGrad(const LaunchSignature &s);
Status gated(const LaunchSignature &s);
Status gatedGrad(const LaunchSignature &s);
Status dropout(const LaunchSignature &s);
Status dropoutAt(const LaunchSignature &s);
Status scale(const LaunchSignature &s);
Status unary(const LaunchSignature &s);
Status binary(const LaunchSignature &s);

// CheckAttentionKernels.cpp
Status ropeTable(const LaunchSignature &s);
Status rope(const LaunchSignature &s);
Status attention(const LaunchSignature &s);
Status attentionGrad(const LaunchSignature &s);
Status ropeAt(const LaunchSignature &s);
Status packedAttention(const LaunchSignature &s);
Status packedAttentionGrad(const LaunchSignature &s);
Status ringAttention(const LaunchSignature &s);
Status ringAttentionGrad(const LaunchSignature &s);

// CheckHeadKernels.cpp. `statistics`: f32 operands of one shape.
Status headStats(const LaunchSignature &s);
Status headStatsGrad(const LaunchSignature &s);
Status headLoss(const LaunchSignature &s);
Status headLossGrad(const LaunchSignature &s);
Status statistics(const LaunchSignature &s);
Status countValid(const LaunchSignature &s);
Status lossSeed(const LaunchSignature &s);

// CheckConversionKernels.cpp
Status allReduce(const LaunchSignature &s);
Status allGather(const LaunchSignature &s);
Status reduceScatter(const LaunchSignature &s);
Status allToAll(const LaunchSignature &s);
Status slice(const LaunchSignature &s);
Status toPartial(const LaunchSignature &s);
Status transfer(const LaunchSignature &s);
Status sumStages(const LaunchSignature &s);

// CheckBufferKernels.cpp
Status zero(const LaunchSignature &s);
Status copy(const LaunchSignature &s);
Status accumulate(const LaunchSignature &s);
Status cast(const LaunchSignature &s);
Status sumSquares(const LaunchSignature &s);
Status clipScale(const LaunchSignature &s);
Status adamW(const LaunchSignature &s);

} // namespace mega::checks

#endif // MEGA_RUNTIME_PLAN_KERNELCHECKS_H
