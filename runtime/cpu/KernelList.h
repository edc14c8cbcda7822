//===- KernelList.h - The CPU's kernel functions ----------------*- C++ -*-===//
//
// One function per kernel of runtime/plan/Kernels.h, which states operands and
// meaning. A file of this folder holds a kernel and its gradient.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_KERNELLIST_H
#define MEGA_RUNTIME_CPU_KERNELLIST_H

#include "runtime/core/Kernel.h"

namespace mega::cpu {

void gemm(const KernelContext &ctx, const KernelArguments &args);
void embedding(const KernelContext &ctx, const KernelArguments &args);
void embeddingGrad(const KernelContext &ctx, const KernelArguments &args);
void addPositions(const KernelContext &ctx, const KernelArguments &args);
void positionsGrad(const KernelContext &ctx, const KernelArguments &args);
void layerNorm(const KernelContext &ctx, const KernelArguments &args);
void layerNormGrad(const KernelContext &ctx, const KernelArguments &args);
void rmsNorm(const KernelContext &ctx, const KernelArguments &args);
void rmsNormGrad(const KernelContext &ctx, const KernelArguments &args);
void addLayerNorm(const KernelContext &ctx, const KernelArguments &args);
void addRmsNorm(const KernelContext &ctx, const KernelArguments &args);
void addBias(const KernelContext &ctx, const KernelArguments &args);
void biasGrad(const KernelContext &ctx, const KernelArguments &args);
void biasGelu(const KernelContext &ctx, const KernelArguments &args);
void gelu(const KernelContext &ctx, const KernelArguments &args);
void geluGrad(const KernelContext &ctx, const KernelArguments &args);
void silu(const KernelContext &ctx, const KernelArguments &args);
void siluGrad(const KernelContext &ctx, const KernelArguments &args);
void gated(const KernelContext &ctx, const KernelArguments &args);
void gatedGrad(const KernelContext &ctx, const KernelArguments &args);
void add(const KernelContext &ctx, const KernelArguments &args);
void dropout(const KernelContext &ctx, const KernelArguments &args);
void ropeTable(const KernelContext &ctx, const KernelArguments &args);
void rope(const KernelContext &ctx, const KernelArguments &args);
void attention(const KernelContext &ctx, const KernelArguments &args);
void attentionGrad(const KernelContext &ctx, const KernelArguments &args);
void headStats(const KernelContext &ctx, const KernelArguments &args);
void headRescale(const KernelContext &ctx, const KernelArguments &args);
void headLoss(const KernelContext &ctx, const KernelArguments &args);
void headLossGrad(const KernelContext &ctx, const KernelArguments &args);
void headRescaleGrad(const KernelContext &ctx, const KernelArguments &args);
void headStatsGrad(const KernelContext &ctx, const KernelArguments &args);
void countValid(const KernelContext &ctx, const KernelArguments &args);
void lossSeed(const KernelContext &ctx, const KernelArguments &args);
void zero(const KernelContext &ctx, const KernelArguments &args);
void copy(const KernelContext &ctx, const KernelArguments &args);
void accumulate(const KernelContext &ctx, const KernelArguments &args);
void sumSquares(const KernelContext &ctx, const KernelArguments &args);
void clipScale(const KernelContext &ctx, const KernelArguments &args);
void adamW(const KernelContext &ctx, const KernelArguments &args);
void cast(const KernelContext &ctx, const KernelArguments &args);
void scale(const KernelContext &ctx, const KernelArguments &args);
void allReduce(const KernelContext &ctx, const KernelArguments &args);
void allGather(const KernelContext &ctx, const KernelArguments &args);
void reduceScatter(const KernelContext &ctx, const KernelArguments &args);
void allToAll(const KernelContext &ctx, const KernelArguments &args);
void slice(const KernelContext &ctx, const KernelArguments &args);
void toPartial(const KernelContext &ctx, const KernelArguments &args);
void sendStart(const KernelContext &ctx, const KernelArguments &args);
void sendWait(const KernelContext &ctx, const KernelArguments &args);
void receiveStart(const KernelContext &ctx, const KernelArguments &args);
void receiveWait(const KernelContext &ctx, const KernelArguments &args);
void sumStages(const KernelContext &ctx, const KernelArguments &args);
void addPositionsAt(const KernelContext &ctx, const KernelArguments &args);
void positionsGradAt(const KernelContext &ctx, const KernelArguments &args);
void ropeAt(const KernelContext &ctx, const KernelArguments &args);
void packedAttention(const KernelContext &ctx, const KernelArguments &args);
void packedAttentionGrad(const KernelContext &ctx, const KernelArguments &args);
void dropoutAt(const KernelContext &ctx, const KernelArguments &args);
void ringAttention(const KernelContext &ctx, const KernelArguments &args);
void ringAttentionGrad(const KernelContext &ctx, const KernelArguments &args);

} // namespace mega::cpu

#endif // MEGA_RUNTIME_CPU_KERNELLIST_H
