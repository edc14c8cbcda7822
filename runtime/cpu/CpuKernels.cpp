#include "runtime/cpu/CpuKernels.h"

#include "runtime/cpu/KernelList.h"

#include <fmt/format.h>
#include <openblas-serial/cblas.h>

#include <iterator>

#include "hwy/highway.h"

namespace mega {
namespace {
/// In the order of the enumerators.
constexpr KernelFunction kFunctions[] = {
    cpu::gemm,
    cpu::embedding,
    cpu::embeddingGrad,
    cpu::addPositions,
    cpu::positionsGrad,
    cpu::layerNorm,
    cpu::layerNormGrad,
    cpu::rmsNorm,
    cpu::rmsNormGrad,
    cpu::addLayerNorm,
    cpu::addRmsNorm,
    cpu::addBias,
    cpu::biasGrad,
    cpu::biasGelu,
    cpu::gelu,
    cpu::geluGrad,
    cpu::silu,
    cpu::siluGrad,
    cpu::gated,
    cpu::gatedGrad,
    cpu::add,
    cpu::dropout,
    cpu::ropeTable,
    cpu::rope,
    cpu::attention,
    cpu::attentionGrad,
    cpu::headStats,
    cpu::headRescale,
    cpu::headLoss,
    cpu::headLossGrad,
    cpu::headRescaleGrad,
    cpu::headStatsGrad,
    cpu::countValid,
    cpu::lossSeed,
    cpu::zero,
    cpu::copy,
    cpu::accumulate,
    cpu::sumSquares,
    cpu::clipScale,
    cpu::adamW,
    cpu::cast,
    cpu::scale,
    cpu::allReduce,
    cpu::allGather,
    cpu::reduceScatter,
    cpu::slice,
    cpu::toPartial,
    cpu::sendStart,
    cpu::sendWait,
    cpu::receiveStart,
    cpu::receiveWait,
    cpu::sumStages,
    cpu::addPositionsAt,
    cpu::positionsGradAt,
    cpu::ropeAt,
    cpu::packedAttention,
    cpu::packedAttentionGrad,
    cpu::dropoutAt,
    cpu::ringAttention,
    cpu::ringAttentionGrad,
    cpu::allToAll,
};
static_assert(std::size(kFunctions) == kKernelCount);
} // namespace

KernelFunction cpuKernel(Kernel kernel) {
  return kFunctions[static_cast<size_t>(kernel)];
}

std::string cpuInstructionSet() {
  // Highway numbers targets so that the best has the lowest bit.
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  return fmt::format("{}, OpenBLAS {}", hwy::TargetName(supported & -supported),
                     openblas_get_corename());
}

} // namespace mega
