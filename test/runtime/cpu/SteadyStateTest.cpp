//===- SteadyStateTest.cpp - Kernels make no system call ------------------===//
//
// Each kernel runs in a child process, first to warm up and then under seccomp
// strict mode, where the system ends the process at the first system call
// other than read, write and exit.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/CpuKernels.h"
#include "runtime/cpu/Gemm.h"
#include "test/runtime/cpu/Conformance.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using namespace mega;

namespace {

class SteadyState : public testing::Test {
protected:
  void expectNoSystemCall(Kernel kernel, std::vector<Buffer *> operands,
                          std::vector<int64_t> integers,
                          std::vector<double> floats) {
    std::vector<View> views;
    for (Buffer *buffer : operands) {
      views.push_back(buffer->view());
    }
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ThreadPool pool(1);
      warmUpGemm(pool);
      const StepScalars scalars;
      const KernelContext ctx{pool, scalars};
      cpuKernel(kernel)(ctx, {views, integers, floats});
      if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
        syscall(SYS_exit, 77);
      }
      for (int i = 0; i < 3; ++i) {
        cpuKernel(kernel)(ctx, {views, integers, floats});
      }
      syscall(SYS_exit, 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
      GTEST_SKIP() << "this system has no seccomp strict mode";
    }
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << kernelSpec(kernel).name << " made a system call";
  }

  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers make system calls of their own";
#endif
  }
};

TEST_F(SteadyState, GemmMakesNoSystemCall) {
  Buffer a = Buffer::random({300, 200}, 1), b = Buffer::random({500, 200}, 2);
  Buffer c = Buffer::zeros({300, 500});
  expectNoSystemCall(Kernel::Gemm, {&a, &b, &c}, {0, 1, 0}, {});
}

TEST_F(SteadyState, AttentionMakesNoSystemCall) {
  Buffer q = Buffer::random({1, 300, 4, 64}, 1), out = q, gradQ = q,
         gradOut = q;
  Buffer k = Buffer::random({1, 300, 2, 64}, 2), v = k, gradK = k, gradV = k;
  Buffer lse = Buffer::zeros({4, 300}), delta = lse;
  expectNoSystemCall(Kernel::Attention, {&q, &k, &v, &out, &lse}, {1, 0, 0},
                     {0.125, 0.1, 0});
  expectNoSystemCall(
      Kernel::AttentionGrad,
      {&gradOut, &q, &k, &v, &out, &lse, &gradQ, &gradK, &gradV, &delta},
      {1, 0, 0}, {0.125, 0.1, 0});
}

TEST_F(SteadyState, HeadMakesNoSystemCall) {
  Buffer x = Buffer::random({1, 100, 64}, 1), w = Buffer::random({1500, 64}, 2);
  Buffer labels = Buffer::ids({1, 100}, std::vector<int>(100, 3));
  Buffer max = Buffer::zeros({1, 100}), sum = max, target = max;
  Buffer gradX = x, gradW = w, scratch = Buffer::zeros({100 * 1024});
  expectNoSystemCall(Kernel::HeadStats,
                     {&x, &w, &labels, &max, &sum, &target, &scratch},
                     {-100, 0}, {0});
  expectNoSystemCall(
      Kernel::HeadStatsGrad,
      {&x, &w, &labels, &max, &sum, &target, &gradX, &gradW, &scratch},
      {-100, 0}, {0});
}

TEST_F(SteadyState, RowKernelsMakeNoSystemCall) {
  Buffer x = Buffer::random({2, 100, 64}, 1), y = x, z = x;
  Buffer gamma = Buffer::random({64}, 2), beta = gamma;
  Buffer mean = Buffer::zeros({2, 100}), rstd = mean;
  Buffer total(DataType::F64, {});
  expectNoSystemCall(Kernel::LayerNorm, {&x, &gamma, &beta, &y, &mean, &rstd},
                     {}, {1e-5});
  expectNoSystemCall(Kernel::LayerNormGrad,
                     {&x, &y, &gamma, &mean, &rstd, &z, &gamma, &beta}, {0},
                     {});
  expectNoSystemCall(Kernel::Gelu, {&x, &y}, {0}, {});
  expectNoSystemCall(Kernel::Dropout, {&x, &y}, {1}, {0.1});
  expectNoSystemCall(Kernel::SumSquares, {&x, &total}, {0}, {});
}

} // namespace
