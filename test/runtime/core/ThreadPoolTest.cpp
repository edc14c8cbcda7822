#include "runtime/core/ThreadPool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <set>

using namespace mega;

namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(tasks);
      pool.parallelFor(tasks, [&](int64_t task, auto) { ++runs[task]; });
      for (const std::atomic<int> &count : runs) {
        EXPECT_EQ(count, 1);
      }
    }
  }
}

// A loop ends for all helpers before the next begins: one that is late must
// neither run a task twice nor see the next loop's closure.
TEST(ThreadPool, LoopsThatFollowEachOtherDoNotMix) {
  ThreadPool pool(5);
  for (int round = 0; round < 3000; ++round) {
    const int64_t tasks = 2 + round % 7;
    int64_t seen[8] = {};
    pool.parallelFor(tasks, [&](int64_t task, auto) { seen[task] += round; });
    for (int64_t i = 0; i < 8; ++i) {
      ASSERT_EQ(seen[i], i < tasks ? round : 0);
    }
  }
}

// The first loop may find helpers that have not started, and the destructor
// helpers that never had one.
TEST(ThreadPool, StartsAndStopsAtAnyMoment) {
  for (int round = 0; round < 100; ++round) {
    ThreadPool pool(4, 64);
    std::atomic<int64_t> sum{0};
    for (int loop = 0; loop < round % 4; ++loop) {
      pool.parallelFor(10, [&](int64_t task, auto) { sum += task; });
    }
    ASSERT_EQ(sum, 45 * (round % 4));
  }
}

TEST(ThreadPool, HelpersThatFellAsleepWakeUp) {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> runs{0};
    pool.parallelFor(100, [&](int64_t, auto) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

TEST(ThreadPool, CallerWaitsForSlowTasks) {
  ThreadPool pool(3);
  std::atomic<int> done{0};
  pool.parallelFor(3, [&](int64_t, auto) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++done;
  });
  EXPECT_EQ(done, 3);
}

TEST(ThreadPool, ScratchIsPrivateAndAligned) {
  ThreadPool pool(4, 4096);
  pool.parallelFor(1000, [&](int64_t task, std::span<std::byte> scratch) {
    EXPECT_EQ(scratch.size(), 4096u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch.data()) % 64, 0u);
    std::memset(scratch.data(), static_cast<int>(task), scratch.size());
    for (std::byte byte : scratch) {
      ASSERT_EQ(byte, static_cast<std::byte>(task));
    }
  });
}

TEST(ThreadPool, DenormalsAreZeroOnEveryThread) {
  ThreadPool pool(4);
  volatile float smallest = std::numeric_limits<float>::min();
  std::atomic<int> kept{0};
  pool.parallelFor(64, [&](int64_t, auto) { kept += smallest / 2 != 0; });
  EXPECT_EQ(kept, 0);
}

} // namespace
