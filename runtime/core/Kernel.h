//===- Kernel.h - How a device implements the kernel list -------*- C++ -*-===//
//
// A kernel of runtime/plan/Kernels.h on a device: a plain function over views.
// The plan loader has checked operand counts, types and shapes before the
// first launch (checkLaunch), so a kernel does not check them again; only
// kernels between ranks can fail (RankGroups). Kernels allocate nothing, make
// no system call and give the same bits whatever the number of threads.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CORE_KERNEL_H
#define MEGA_RUNTIME_CORE_KERNEL_H

#include "runtime/plan/Kernels.h"
#include "runtime/plan/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mega {

class Communicator;
class ThreadPool;

/// A buffer in memory.
struct View : BufferType {
  std::byte *data = nullptr;

  View() = default;
  View(const BufferType &type, void *data)
      : BufferType(type), data(static_cast<std::byte *>(data)) {}

  template <typename T> T *as() const { return reinterpret_cast<T *>(data); }
  template <typename T> T *row(int64_t index) const {
    return as<T>() + index * rowStride;
  }
};

/// What changes from step to step and is no buffer.
struct StepScalars {
  /// 1-based, as in Adam's bias correction.
  int64_t step = 1;
  uint64_t seed = 0;
  float lr = 0;
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weightDecay = 0;
  /// Largest global gradient norm; 0: never clip.
  float clip = 1.0f;
};

/// This rank's end of one of the plan's groups.
struct GroupMember {
  /// Null in a group of one.
  Communicator *communicator = nullptr;
  /// Place of the rank in the group, 0 .. size - 1.
  int64_t place = 0;
  int64_t size = 1;
};

/// What the kernels between ranks use, and where they leave the first error.
struct RankGroups {
  /// By number of the group in the plan.
  std::span<const GroupMember> members;
  Status failure;
  /// Transfers between stages that were started and not waited for: which
  /// buffer, in which direction, as the communicator calls it.
  struct Started {
    const std::byte *data;
    bool send;
    uint32_t index;
    uint32_t generation;
  };
  std::vector<Started> started;
};

struct KernelContext {
  ThreadPool &pool;
  const StepScalars &scalars;
  /// Number of this block application in the whole model, in program order.
  int64_t application = 0;
  /// Global index of the sample in row 0 of the batch dimension.
  int64_t firstSample = 0;
  /// Null if the plan has no groups.
  RankGroups *groups = nullptr;
};

struct KernelArguments {
  std::span<const View> operands;
  std::span<const int64_t> integers;
  std::span<const double> floats;

  const View &operator[](int index) const { return operands[index]; }
};

using KernelFunction = void (*)(const KernelContext &, const KernelArguments &);

} // namespace mega

#endif // MEGA_RUNTIME_CORE_KERNEL_H
