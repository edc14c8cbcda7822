#include "runtime/core/ThreadPool.h"

#include "runtime/core/Denormals.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace mega {
namespace {
/// Polls this often before sleeping: loops follow each other closely.
constexpr int kSpins = 2000;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
} // namespace

void ThreadPool::AlignedFree::operator()(std::byte *data) const {
  ::operator delete[](data, std::align_val_t{64});
}

ThreadPool::ThreadPool(int threads, size_t scratchBytes)
    : scratchBytes(scratchBytes) {
  flushDenormals();
  for (int i = 0; i < threads; ++i) {
    auto *data = static_cast<std::byte *>(
        ::operator new[](scratchBytes, std::align_val_t{64}));
    std::memset(data, 0, scratchBytes);
    scratch.emplace_back(data);
  }
  for (int i = 1; i < threads; ++i) {
    helpers.emplace_back([this, i] { work(i); });
  }
}

ThreadPool::~ThreadPool() {
  stopping.store(true, std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_release);
  generation.notify_all();
  for (std::thread &helper : helpers) {
    helper.join();
  }
}

void ThreadPool::run(int64_t count, void *body, TaskFunction call) {
  if (helpers.empty() || count <= 1) {
    for (int64_t task = 0; task < count; ++task) {
      call(body, task, {scratch[0].get(), scratchBytes});
    }
    return;
  }
  closure = body;
  function = call;
  tasks = count;
  next.store(0, std::memory_order_relaxed);
  entered.store(kOpen, std::memory_order_release);
  generation.fetch_add(1, std::memory_order_release);
  generation.notify_all();
  drain(0);
  // Every task is taken. Helpers that have not entered by now are not waited
  // for: on a busy machine they may not run for milliseconds.
  uint32_t left = entered.fetch_sub(kOpen, std::memory_order_acquire) - kOpen;
  for (int spin = 0; left != 0; ++spin) {
    if (spin < kSpins) {
      pause();
    } else {
      entered.wait(left, std::memory_order_acquire);
    }
    left = entered.load(std::memory_order_acquire);
  }
}

bool ThreadPool::enter() {
  uint32_t now = entered.load(std::memory_order_acquire);
  while ((now & kOpen) != 0) {
    // Acquires what run() wrote before it opened the loop.
    if (entered.compare_exchange_weak(now, now + 1,
                                      std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

void ThreadPool::leave() {
  // The caller sleeps only once it has closed the loop.
  if (entered.fetch_sub(1, std::memory_order_release) == 1) {
    entered.notify_one();
  }
}

void ThreadPool::drain(int thread) {
  for (;;) {
    const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
    if (task >= tasks) {
      return;
    }
    function(closure, task, {scratch[thread].get(), scratchBytes});
  }
}

void ThreadPool::work(int thread) {
  flushDenormals();
  uint32_t seen = 0;
  for (;;) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (generation.load(std::memory_order_acquire) != seen) {
        break;
      }
      pause();
    }
    generation.wait(seen, std::memory_order_acquire);
    // May be several loops later: the one to help with is the one that is open.
    seen = generation.load(std::memory_order_acquire);
    if (stopping.load(std::memory_order_relaxed)) {
      return;
    }
    if (enter()) {
      drain(thread);
      leave();
    }
  }
}

} // namespace mega
