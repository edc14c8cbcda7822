//===- KernelValues.cpp - What kernels compute, as values -----------------===//
#include "runtime/plan/KernelValues.h"

#include <algorithm>
#include <bit>

namespace mega {
namespace {

/// What of an operand's shape decides what a kernel makes of it. Kernels that
/// look at more than rows get all dimensions.
void addShape(std::vector<uint64_t> &words, Kernel kernel,
              const BufferType &type) {
  switch (kernel) {
  case Kernel::Attention:
  case Kernel::AttentionGrad:
  case Kernel::Rope:
  case Kernel::AddPositions:
  case Kernel::PositionsGrad:
  case Kernel::AddPositionsAt:
  case Kernel::PositionsGradAt:
  case Kernel::RopeAt:
  case Kernel::PackedAttention:
  case Kernel::PackedAttentionGrad:
  case Kernel::RingAttention:
  case Kernel::RingAttentionGrad:
    for (int i = 0; i < type.rank; ++i) {
      words.push_back(static_cast<uint64_t>(type.dims[i]));
    }
    return;
  case Kernel::RmsNorm:
  case Kernel::RmsNormGrad:
    words.push_back(static_cast<uint64_t>(type.elements()));
    words.push_back(
        static_cast<uint64_t>(type.rank > 0 ? type.dims[type.rank - 1] : 1));
    return;
  default:
    words.push_back(static_cast<uint64_t>(type.rows()));
    words.push_back(static_cast<uint64_t>(type.rowSize()));
  }
}

/// Whether the integer says nothing about the value of the whole tensor: that a
/// result is added, or whose keys a ring computes with.
bool saysHow(std::string_view integer) {
  return integer == "accumulate" || integer == "group";
}

/// Result `operand` of the launch as a kernel of its own.
Value plainResult(const ValueLaunch &launch, size_t operand) {
  const KernelSpec &spec = kernelSpec(launch.kernel);
  std::vector<uint64_t> words{static_cast<uint64_t>(launch.kernel), operand};
  for (size_t i = 0; i < spec.integers.size(); ++i) {
    if (!saysHow(spec.integers[i])) {
      words.push_back(static_cast<uint64_t>(launch.integers[i]));
    }
  }
  for (double number : launch.floats) {
    words.push_back(std::bit_cast<uint64_t>(number));
  }
  if (dropoutOf(launch) > 0) {
    words.push_back(static_cast<uint64_t>(launch.application));
  }
  bool reads = false;
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    if (spec.operands[i].access == Access::Read) {
      reads = true;
      words.push_back(launch.before[i]);
      addShape(words, launch.kernel, launch.types[i]);
    }
  }
  if (!reads) {
    addShape(words, launch.kernel, launch.types[operand]);
  }
  return hashValue(words);
}

ValueLaunch launchOf(Kernel kernel, std::vector<BufferType> types,
                     std::vector<Value> before,
                     std::vector<int64_t> integers = {},
                     std::vector<double> floats = {}) {
  ValueLaunch launch;
  launch.kernel = kernel;
  launch.types = std::move(types);
  launch.before = std::move(before);
  launch.integers = std::move(integers);
  launch.floats = std::move(floats);
  return launch;
}

/// x + bias, then gelu.
std::vector<Value> biasGelu(const ValueLaunch &l) {
  const Value z = plainResult(launchOf(Kernel::AddBias,
                                       {l.types[0], l.types[1], l.types[2]},
                                       {l.before[0], l.before[1], 0}),
                              2);
  const Value y = plainResult(
      launchOf(Kernel::Gelu, {l.types[2], l.types[3]}, {z, 0}, l.integers), 1);
  return {0, 0, z, y};
}

std::vector<Value> addLayerNorm(const ValueLaunch &l) {
  const Value total = sum(l.before[0], l.before[1]);
  const std::vector<Value> norm = resultsOf(launchOf(
      Kernel::LayerNorm,
      {l.types[4], l.types[2], l.types[3], l.types[5], l.types[6], l.types[7]},
      {total, l.before[2], l.before[3], 0, 0, 0}, {}, l.floats));
  return {0, 0, 0, 0, total, norm[3], norm[4], norm[5]};
}

std::vector<Value> addRmsNorm(const ValueLaunch &l) {
  const Value total = sum(l.before[0], l.before[1]);
  const std::vector<Value> norm = resultsOf(launchOf(
      Kernel::RmsNorm, {l.types[3], l.types[2], l.types[4], l.types[5]},
      {total, l.before[2], 0, 0}, {}, l.floats));
  return {0, 0, 0, total, norm[2], norm[3]};
}

} // namespace

double dropoutOf(const ValueLaunch &launch) {
  switch (launch.kernel) {
  case Kernel::Dropout:
  case Kernel::DropoutAt:
    return launch.floats[0];
  case Kernel::Attention:
  case Kernel::AttentionGrad:
  case Kernel::PackedAttention:
  case Kernel::PackedAttentionGrad:
  case Kernel::RingAttention:
  case Kernel::RingAttentionGrad:
    return launch.floats[1];
  default:
    return 0;
  }
}

ValueLaunch withoutDropout(ValueLaunch launch) {
  if (launch.kernel == Kernel::Dropout) {
    launch.kernel = Kernel::Copy;
    launch.integers.clear();
    launch.floats.clear();
  } else if (launch.kernel == Kernel::DropoutAt) {
    launch.floats[0] = 0;
  } else if (launch.kernel == Kernel::Attention ||
             launch.kernel == Kernel::PackedAttention ||
             launch.kernel == Kernel::RingAttention) {
    for (std::string_view name : {"dropout_key", "first_head"}) {
      launch.integers[integerIndex(kernelSpec(launch.kernel), name)] = 0;
    }
    launch.floats[1] = 0;
  }
  return launch;
}

std::vector<Value> resultsOf(const ValueLaunch &launch) {
  switch (launch.kernel) {
  case Kernel::Zero:
    return {0};
  case Kernel::Copy:
  case Kernel::Cast:
  case Kernel::Accumulate:
    return {0, launch.before[0]};
  // Values are those of whole tensors, which conversions keep.
  case Kernel::AllReduce:
  case Kernel::AllGather:
  case Kernel::ReduceScatter:
  case Kernel::Slice:
  case Kernel::ToPartial:
  case Kernel::AllToAll: {
    std::vector<Value> results(launch.before.size());
    results[1] = launch.before[0];
    return results;
  }
  case Kernel::DropoutAt:
    if (dropoutOf(launch) == 0) {
      return {0, 0, 0, launch.before[0]};
    }
    break;
  case Kernel::Add:
    return {0, 0, sum(launch.before[0], launch.before[1])};
  case Kernel::BiasGelu:
    return biasGelu(launch);
  case Kernel::AddLayerNorm:
    return addLayerNorm(launch);
  case Kernel::AddRmsNorm:
    return addRmsNorm(launch);
  default:
    break;
  }
  const KernelSpec &spec = kernelSpec(launch.kernel);
  std::vector<Value> results(spec.operands.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (spec.operands[i].access != Access::Read) {
      results[i] = plainResult(launch, i);
    }
  }
  return results;
}

} // namespace mega
