//===- Signal.h - Waiting for other threads ---------------------*- C++ -*-===//
//
// "Sleep until a condition holds", for conditions on atomics that other threads
// change before they call notifyAll(). A notification costs a system call only
// if someone sleeps. Nothing is allocated.
//
//   waiter    signal.wait([&] { return done.load() >= 3; }, spins, deadline)
//   notifier  done.store(3); signal.notifyAll();
//
// No wake-up is lost: a waiter announces itself and reads the word before it
// looks at the condition, and a notifier changes the word after the condition
// and before it looks for waiters, all in one total order.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_SIGNAL_H
#define MEGA_RUNTIME_COMM_SIGNAL_H

#include <atomic>
#include <chrono>
#include <cstdint>

namespace mega {

class Signal {
public:
  using Clock = std::chrono::steady_clock;

  /// Whether `condition` held before `deadline`. Looks `spins` times and gives
  /// its processor to others kYields times before it sleeps.
  template <typename Condition>
  bool wait(Condition condition, int spins, Clock::time_point deadline) {
    for (int i = 0; i < spins; ++i) {
      if (condition()) {
        return true;
      }
      pause();
    }
    for (int i = 0; i < kYields; ++i) {
      if (condition()) {
        return true;
      }
      yield();
    }
    waiters.fetch_add(1, std::memory_order_seq_cst);
    bool inTime = true;
    bool holds = false;
    while (true) {
      const uint32_t seen = word.load(std::memory_order_seq_cst);
      holds = condition();
      if (holds || !inTime) {
        break;
      }
      inTime = sleep(seen, deadline);
    }
    waiters.fetch_sub(1, std::memory_order_relaxed);
    return holds;
  }

  void notifyAll() {
    word.fetch_add(1, std::memory_order_seq_cst);
    if (waiters.load(std::memory_order_seq_cst) > 0) {
      wake();
    }
  }

private:
  /// Where threads share processors, the ones waited for mostly need a turn
  /// each: letting them have it costs less than to sleep and be woken. Few, as
  /// a thread that computes is in nobody's way.
  static constexpr int kYields = 16;

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  static void yield();
  /// Until the word is not `seen`; false once the deadline has passed.
  bool sleep(uint32_t seen, Clock::time_point deadline);
  void wake();

  alignas(64) std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> waiters{0};
};

} // namespace mega

#endif // MEGA_RUNTIME_COMM_SIGNAL_H
