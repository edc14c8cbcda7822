//===- Loss.cpp - Cross entropy from the head's statistics ----------------===//
#include "runtime/cpu/KernelList.h"

#include <algorithm>
#include <cmath>

namespace mega {
namespace {
/// target = source * exp(local - global): one shard's sums, or their
/// gradients, on the scale of the largest logit of all shards.
void rescale(const KernelArguments &args) {
  const float *source = args[0].as<float>();
  const float *local = args[1].as<float>(), *global = args[2].as<float>();
  float *target = args[3].as<float>();
  for (int64_t i = 0; i < args[0].elements(); ++i) {
    target[i] = source[i] * std::exp(local[i] - global[i]);
  }
}
} // namespace

// These have one number per token: not worth a second thread.

void cpu::headRescale(const KernelContext &, const KernelArguments &args) {
  rescale(args);
}

void cpu::headRescaleGrad(const KernelContext &, const KernelArguments &args) {
  rescale(args);
}

void cpu::headLoss(const KernelContext &, const KernelArguments &args) {
  const float *max = args[0].as<float>(), *sum = args[1].as<float>();
  const float *target = args[2].as<float>();
  const int32_t *labels = args[3].as<int32_t>();
  double loss = 0;
  for (int64_t i = 0; i < args[0].elements(); ++i) {
    if (labels[i] != args.integers[0]) {
      loss += std::log(static_cast<double>(sum[i])) + max[i] - target[i];
    }
  }
  *args[4].as<float>() = static_cast<float>(loss);
}

void cpu::headLossGrad(const KernelContext &, const KernelArguments &args) {
  const float seed = *args[0].as<float>();
  const float *sum = args[1].as<float>();
  const int32_t *labels = args[2].as<int32_t>();
  float *gradSum = args[3].as<float>(), *gradTarget = args[4].as<float>();
  for (int64_t i = 0; i < args[1].elements(); ++i) {
    const bool valid = labels[i] != args.integers[0];
    gradSum[i] = valid ? seed / sum[i] : 0.0f;
    gradTarget[i] = valid ? -seed : 0.0f;
  }
}

void cpu::countValid(const KernelContext &, const KernelArguments &args) {
  const int32_t *labels = args[0].as<int32_t>();
  int64_t count = args.integers[1] ? *args[1].as<int64_t>() : 0;
  for (int64_t i = 0; i < args[0].elements(); ++i) {
    count += labels[i] != args.integers[0];
  }
  *args[1].as<int64_t>() = count;
}

void cpu::lossSeed(const KernelContext &, const KernelArguments &args) {
  const int64_t count = std::max<int64_t>(*args[0].as<int64_t>(), 1);
  *args[1].as<float>() = static_cast<float>(args.floats[0] / count);
}

} // namespace mega
