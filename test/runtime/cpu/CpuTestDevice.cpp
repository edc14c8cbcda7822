#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/CpuKernels.h"
#include "runtime/cpu/Gemm.h"
#include "test/runtime/cpu/Conformance.h"

#include <map>

namespace mega {
namespace {
class CpuTestDevice : public TestDevice {
public:
  std::string name() const override { return "Cpu"; }
  std::vector<int> threadCounts() const override { return {1, 2, 5}; }

  void run(Kernel kernel, int threads, const StepScalars &scalars,
           int64_t application, int64_t firstSample,
           const KernelArguments &args) override {
    std::unique_ptr<ThreadPool> &pool = pools[threads];
    if (!pool) {
      pool = std::make_unique<ThreadPool>(threads);
      warmUpGemm(*pool);
    }
    cpuKernel(kernel)({*pool, scalars, application, firstSample}, args);
  }

private:
  std::map<int, std::unique_ptr<ThreadPool>> pools;
};
} // namespace

std::vector<TestDevice *> testDevices() {
  static CpuTestDevice device;
  return {&device};
}

} // namespace mega
