// After the first operations, in-process communicators allocate nothing and
// make no system call but those that wait, futex and sched_yield: every thread
// counts its allocations, and a filter ends the process at any other system
// call.
#include "test/runtime/comm/Ranks.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <new>

static thread_local int allocations = 0;

// Replaced for the whole binary; GoogleTest allocates on other threads.
[[gnu::noinline]] void *operator new(size_t size) {
  ++allocations;
  if (void *memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void *memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept {
  std::free(memory);
}

using namespace mega;
using namespace mega::test;

namespace {

/// Of this thread, from here on. clock_gettime is no system call where the
/// kernel shares its clock, and one elsewhere.
bool allowOnlyFutexAndExit() {
  const auto allow = [](int number) {
    return std::array<sock_filter, 2>{
        {BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0,
                  1),
         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  };
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int number :
       {SYS_futex, SYS_sched_yield, SYS_clock_gettime, SYS_exit_group}) {
    const auto rule = allow(number);
    filter.insert(filter.end(), rule.begin(), rule.end());
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  sock_fprog program = {static_cast<unsigned short>(filter.size()),
                        filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Every kind of operation, small and large; false at the first error.
bool everything(Communicator &all, float *a, float *b, int64_t count) {
  const int peer = all.rank() ^ 1;
  const auto good = [](const Status &status) { return status.isOk(); };
  auto receive = all.postReceive(b, count, DataType::F32, peer);
  auto send = all.postSend(a, count, DataType::F32, peer);
  return receive.isOk() && send.isOk() && good(all.wait(*send)) &&
         good(all.wait(*receive)) &&
         good(all.allReduce(a, b, count, DataType::F32)) &&
         good(all.reduceScatter(a, b, count / 8, DataType::BF16)) &&
         good(all.allGather(a, b, count / 8, DataType::F32)) &&
         good(all.allToAll(a, b, count / 8, DataType::I32)) &&
         good(all.broadcast(a, count, DataType::F32, 1)) && good(all.barrier());
}

/// Runs in a child: 0 when all is well.
void runChild(int ranks) {
  runRanks(Backend::InProcess, ranks, [&](RankContext &context) {
    std::vector<float> a(40000, 1), b(40000);
    everything(context[0], a.data(), b.data(), 40000);
    if (!allowOnlyFutexAndExit()) {
      _exit(77);
    }
    allocations = 0;
    for (int round = 0; round < 20; ++round) {
      if (!everything(context[0], a.data(), b.data(), 40000) ||
          !everything(context[0], a.data(), b.data(), 100)) {
        _exit(2);
      }
    }
    if (allocations != 0) {
      _exit(3);
    }
    // When all are done, one ends the process: threads end with system calls.
    (void)context[0].barrier();
    if (context.rank == 0) {
      _exit(0);
    }
    (void)context[0].barrier();
  });
}

class SteadyState : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, SteadyState, testing::Values(2, 4, 8));

TEST_P(SteadyState, NothingButWaiting) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers make system calls of their own";
#endif
  const pid_t child = fork();
  if (child == 0) {
    runChild(GetParam());
    _exit(4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "this system has no seccomp filters";
  }
  ASSERT_TRUE(WIFEXITED(status))
      << "a system call: signal " << WTERMSIG(status);
  EXPECT_NE(WEXITSTATUS(status), 3) << "an operation allocated";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
