//===- ThreadPool.h - The threads of one rank -------------------*- C++ -*-===//
//
// A rank's helpers for parallel loops inside kernels. Threads are created
// once and sleep on a futex (std::atomic::wait) between loops. How a loop is
// cut into tasks is the kernel's business and must not depend on the number of
// threads; which thread runs a task does not matter, so results are the same
// bits for any number. A loop ends when its tasks are done, whether or not all
// helpers woke up in time: a machine with other work slows it down, but no
// more.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CORE_THREADPOOL_H
#define MEGA_RUNTIME_CORE_THREADPOOL_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace mega {

class ThreadPool {
public:
  /// What every thread has unless a pool says otherwise; kernels rely on it.
  static constexpr size_t kScratchBytes = size_t{2} << 20;

  /// `threads` counts the caller, which works too; at least 1. Each thread has
  /// `scratchBytes` of private scratch, 64-byte aligned, touched at start.
  explicit ThreadPool(int threads, size_t scratchBytes = kScratchBytes);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int threads() const { return static_cast<int>(scratch.size()); }

  /// Calls body(task, scratch) for task = 0 .. tasks-1, on all threads, and
  /// returns when all are done. `scratch` is private to the running thread.
  /// Not reentrant; called by one thread at a time.
  template <typename Body> void parallelFor(int64_t tasks, Body &&body) {
    using Plain = std::remove_reference_t<Body>;
    run(tasks, const_cast<void *>(static_cast<const void *>(&body)),
        [](void *closure, int64_t task, std::span<std::byte> scratch) {
          (*static_cast<Plain *>(closure))(task, scratch);
        });
  }

private:
  using TaskFunction = void (*)(void *, int64_t, std::span<std::byte>);
  void run(int64_t tasks, void *closure, TaskFunction function);
  void work(int thread);
  void drain(int thread);
  /// Whether the loop in progress is open and this helper now takes part.
  bool enter();
  void leave();

  struct AlignedFree {
    void operator()(std::byte *data) const;
  };
  std::vector<std::unique_ptr<std::byte[], AlignedFree>> scratch;
  size_t scratchBytes;
  std::vector<std::thread> helpers;

  /// Bit of `entered`: helpers may still enter.
  static constexpr uint32_t kOpen = uint32_t{1} << 31;

  // The loop in progress. `generation` wakes the helpers; `entered` admits them
  // and counts those inside. It is 0 when nobody touches what follows.
  void *closure = nullptr;
  TaskFunction function = nullptr;
  int64_t tasks = 0;
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<uint32_t> entered{0};
  std::atomic<bool> stopping{false};
};

} // namespace mega

#endif // MEGA_RUNTIME_CORE_THREADPOOL_H
