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

/// The parameter is T, as in Conformance.h.
class SteadyState : public testing::TestWithParam<DataType> {
protected:
  static Buffer random(std::initializer_list<int64_t> shape, unsigned seed) {
    return Buffer::random(shape, seed, 0, 1, GetParam());
  }

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

INSTANTIATE_TEST_SUITE_P(Types, SteadyState,
                         testing::Values(DataType::F32, DataType::BF16),
                         [](const auto &info) {
                           return std::string(name(info.param));
                         });

TEST_P(SteadyState, GemmMakesNoSystemCall) {
  Buffer a = random({300, 200}, 1), b = random({500, 200}, 2);
  Buffer c(GetParam(), {300, 500});
  expectNoSystemCall(Kernel::Gemm, {&a, &b, &c}, {0, 1, 0}, {});
}

TEST_P(SteadyState, AttentionMakesNoSystemCall) {
  Buffer q = random({1, 300, 4, 64}, 1), out = q, gradQ = q, gradOut = q;
  Buffer k = random({1, 300, 2, 64}, 2), v = k, gradK = k, gradV = k;
  Buffer lse = Buffer::zeros({1, 4, 300}), delta = lse;
  expectNoSystemCall(Kernel::Attention, {&q, &k, &v, &out, &lse}, {1, 0, 0, 0},
                     {0.125, 0.1, 0});
  expectNoSystemCall(
      Kernel::AttentionGrad,
      {&gradOut, &q, &k, &v, &out, &lse, &gradQ, &gradK, &gradV, &delta},
      {1, 0, 0, 0}, {0.125, 0.1, 0});
  Buffer positions = Buffer::ids({1, 300}, std::vector<int>(300, 3));
  Buffer segments = positions;
  expectNoSystemCall(
      Kernel::PackedAttention,
      {&q, &k, &v, &positions, &segments, &positions, &segments, &out, &lse},
      {1, 0, 0, 0}, {0.125, 0.1, 0});
  expectNoSystemCall(Kernel::PackedAttentionGrad,
                     {&gradOut, &q, &k, &v, &positions, &segments, &positions,
                      &segments, &out, &lse, &gradQ, &gradK, &gradV, &delta},
                     {1, 0, 0, 0}, {0.125, 0.1, 0});
  // Of one rank; RingAttentionTest has those of several.
  Buffer exchange(GetParam(), {ringScratch(k.type(), 1)});
  Buffer sums = Buffer::zeros({ringSums(q.type())});
  Buffer gradSums = Buffer::zeros({ringGradSums(q.type(), k.type(), 1)});
  expectNoSystemCall(Kernel::RingAttention,
                     {&q, &k, &v, &positions, &segments, &positions, &segments,
                      &out, &lse, &exchange, &sums},
                     {0, 1, 1, 0, 0, 0}, {0.125, 0.1, 0});
  expectNoSystemCall(Kernel::RingAttentionGrad,
                     {&gradOut, &q, &k, &v, &positions, &segments, &positions,
                      &segments, &out, &lse, &gradQ, &gradK, &gradV, &exchange,
                      &gradSums},
                     {0, 1, 1, 0, 0, 0}, {0.125, 0.1, 0});
}

TEST_P(SteadyState, HeadMakesNoSystemCall) {
  Buffer x = random({1, 100, 64}, 1), w = random({1500, 64}, 2);
  Buffer labels = Buffer::ids({1, 100}, std::vector<int>(100, 3));
  Buffer max = Buffer::zeros({1, 100}), sum = max, target = max;
  Buffer gradX = x, gradW = Buffer::zeros({1500, 64});
  Buffer scratch = Buffer::zeros({headScratch(100, 1500)});
  Buffer gradScratch =
      Buffer::zeros({headGradScratch(100, 1500, 64, GetParam())});
  expectNoSystemCall(Kernel::HeadStats,
                     {&x, &w, &labels, &max, &sum, &target, &scratch},
                     {-100, 0}, {0});
  expectNoSystemCall(
      Kernel::HeadStatsGrad,
      {&x, &w, &labels, &max, &sum, &target, &gradX, &gradW, &gradScratch},
      {-100, 0}, {0});
}

TEST_P(SteadyState, RowKernelsMakeNoSystemCall) {
  Buffer x = random({2, 100, 64}, 1), y = x, z = x;
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
  expectNoSystemCall(Kernel::Scale, {&x, &y}, {}, {0.5});
  Buffer sums = Buffer::random({2, 100, 64}, 3);
  expectNoSystemCall(Kernel::Cast, {&sums, &x}, {}, {});
  expectNoSystemCall(Kernel::SumSquares, {&sums, &total}, {0}, {});
}

} // namespace
