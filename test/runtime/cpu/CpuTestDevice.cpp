#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/CpuKernels.h"
#include "runtime/cpu/Gemm.h"
#include "test/runtime/cpu/Conformance.h"

#include <hwy/highway.h>

#include <map>

namespace mega {
namespace {
/// The CPU with one of the instruction sets that its row loops are built for.
class CpuTestDevice : public TestDevice {
public:
  CpuTestDevice(std::string name, int64_t target)
      : name_(std::move(name)), target(target) {}

  std::string name() const override { return name_; }
  std::vector<int> threadCounts() const override { return {1, 2, 5}; }

  void run(Kernel kernel, int threads, const StepScalars &scalars,
           int64_t application, int64_t firstSample,
           const KernelArguments &args) override {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    std::unique_ptr<ThreadPool> &pool = pools[threads];
    if (!pool) {
      pool = std::make_unique<ThreadPool>(threads);
      warmUpGemm(*pool);
    }
    cpuKernel(kernel)({*pool, scalars, application, firstSample}, args);
  }

private:
  std::string name_;
  int64_t target;
  std::map<int, std::unique_ptr<ThreadPool>> pools;
};
} // namespace

std::vector<TestDevice *> testDevices() {
  static const std::vector<std::unique_ptr<TestDevice>> devices = [] {
    std::vector<std::unique_ptr<TestDevice>> made;
    hwy::SetSupportedTargetsForTest(0);
    const int64_t supported = hwy::SupportedTargets();
    const auto add = [&](const char *name, int64_t target) {
      made.push_back(std::make_unique<CpuTestDevice>(name, target));
    };
    add("CpuScalar", HWY_SCALAR);
    if (supported & HWY_AVX2) {
      add("CpuAvx2", HWY_AVX2);
    }
    if (supported & HWY_AVX3) {
      add("CpuAvx512", HWY_AVX3);
    }
    return made;
  }();
  std::vector<TestDevice *> pointers;
  for (const std::unique_ptr<TestDevice> &device : devices) {
    pointers.push_back(device.get());
  }
  return pointers;
}

} // namespace mega
