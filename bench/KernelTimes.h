//===- KernelTimes.h - What benchmarks of steps share -----------*- C++ -*-===//
//
// The CPU's kernels with a clock around each, and inputs of random tokens.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_BENCH_KERNELTIMES_H
#define MEGA_BENCH_KERNELTIMES_H

#include "runtime/core/Executor.h"
#include "runtime/cpu/CpuKernels.h"
#include "runtime/telemetry/Progress.h"

#include <array>
#include <utility>

namespace mega {

using KernelSeconds = std::array<double, kKernelCount>;

/// In each kernel since they were last set to 0, of the rank that this thread
/// is.
inline thread_local KernelSeconds kernelSeconds;

/// The CPU's kernel, timed. A KernelFunction has no state, hence one instance
/// for each.
template <size_t kernel>
void timed(const KernelContext &context, const KernelArguments &arguments) {
  const double start = steadySeconds();
  cpuKernel(static_cast<Kernel>(kernel))(context, arguments);
  kernelSeconds[kernel] += steadySeconds() - start;
}

template <size_t... kernels>
constexpr std::array<KernelFunction, kKernelCount>
timedKernels(std::index_sequence<kernels...>) {
  return {timed<kernels>...};
}

inline KernelFunction timedKernel(Kernel kernel) {
  static constexpr auto functions =
      timedKernels(std::make_index_sequence<kKernelCount>());
  return functions[static_cast<size_t>(kernel)];
}

/// Fills every copy of every input with ids below its limit, the same on all
/// ranks.
inline void fillInputs(const Executor &executor) {
  const plan::Plan &plan = executor.plan();
  const auto replicas = static_cast<uint32_t>(executor.mesh().size(Axis::Dp));
  uint32_t state = 1;
  for (uint32_t i = 0; i < length(plan.inputs()); ++i) {
    const auto limit = static_cast<uint32_t>(plan.inputs()->Get(i)->limit());
    for (uint32_t copy = 0; copy < executor.inputCopies(); ++copy) {
      for (uint32_t m = 0;
           m < plan.global_batch_size() / (plan.micro_batch_size() * replicas);
           ++m) {
        const View view = executor.input(i, m, copy);
        for (int64_t e = 0; e < view.elements(); ++e) {
          state = state * 1664525u + 1013904223u;
          view.as<int32_t>()[e] = static_cast<int32_t>((state >> 8) % limit);
        }
      }
    }
  }
}

} // namespace mega

#endif // MEGA_BENCH_KERNELTIMES_H
