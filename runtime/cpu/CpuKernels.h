//===- CpuKernels.h - The CPU device ----------------------------*- C++ -*-===//
//
// The CPU's implementation of every kernel of runtime/plan/Kernels.h, in f32.
// Before the first launch: one `warmUpGemm` (Gemm.h) for each pool.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_CPUKERNELS_H
#define MEGA_RUNTIME_CPU_CPUKERNELS_H

#include "runtime/core/Kernel.h"

#include <string>

namespace mega {

/// Never null. Kernels compute in the calling thread and ctx.pool.
KernelFunction cpuKernel(Kernel kernel);

/// The instruction sets that kernels and GEMM use on this machine: where they
/// differ, so do the bits of results.
std::string cpuInstructionSet();

} // namespace mega

#endif // MEGA_RUNTIME_CPU_CPUKERNELS_H
