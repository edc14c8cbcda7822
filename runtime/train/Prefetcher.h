//===- Prefetcher.h - Loads the next batch during a step --------*- C++ -*-===//
//
// One thread that fills the inputs of step k + 1 while step k runs. It sleeps
// on a futex between batches.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TRAIN_PREFETCHER_H
#define MEGA_RUNTIME_TRAIN_PREFETCHER_H

#include "runtime/train/Session.h"

#include <atomic>
#include <thread>

namespace mega {

class Prefetcher {
public:
  Prefetcher(Session &session, const BatchLoader &loader)
      : session(session), loader(loader), thread([this] { work(); }) {}
  ~Prefetcher() {
    // The thread's kIdle must not come after kStop, and overwrite it.
    (void)wait();
    request.store(kStop, std::memory_order_release);
    request.notify_one();
    thread.join();
  }
  Prefetcher(const Prefetcher &) = delete;
  Prefetcher &operator=(const Prefetcher &) = delete;

  /// Starts to fill the inputs that the step after the next one reads with the
  /// batch of `step` (from 0). Between steps: the one after next is settled
  /// here, because by the time the thread wakes the next may have ended.
  void start(int64_t step) {
    target = session.executor().stepsDone() + 1;
    request.store(step, std::memory_order_release);
    request.notify_one();
    pending = true;
  }
  /// Waits until the batch is there, or says why it cannot be; nothing if none
  /// was started.
  Status wait() {
    if (!pending) {
      return Status::ok();
    }
    for (int64_t now = request.load(std::memory_order_acquire); now != kIdle;
         now = request.load(std::memory_order_acquire)) {
      request.wait(now, std::memory_order_acquire);
    }
    pending = false;
    return std::move(status);
  }

private:
  static constexpr int64_t kIdle = -1;
  static constexpr int64_t kStop = -2;

  void work() {
    for (;;) {
      request.wait(kIdle, std::memory_order_acquire);
      const int64_t step = request.load(std::memory_order_acquire);
      if (step == kStop) {
        return;
      }
      if (step == kIdle) {
        continue;
      }
      status = session.fillAt(loader, step, target);
      request.store(kIdle, std::memory_order_release);
      request.notify_one();
    }
  }

  Session &session;
  const BatchLoader &loader;
  std::atomic<int64_t> request{kIdle};
  /// The step that reads the batch; handed over with `request`.
  uint64_t target = 0;
  /// Of the batch; handed back with `request`.
  Status status;
  bool pending = false;
  std::thread thread;
};

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_PREFETCHER_H
