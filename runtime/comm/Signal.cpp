#include "runtime/comm/Signal.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace mega {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void Signal::yield() { ::sched_yield(); }

bool Signal::sleep(uint32_t seen, Clock::time_point deadline) {
  // steady_clock is CLOCK_MONOTONIC, which FUTEX_WAIT_BITSET measures by.
  const auto since = deadline.time_since_epoch();
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since);
  const timespec until = {.tv_sec = whole.count(),
                          .tv_nsec =
                              std::chrono::nanoseconds(since - whole).count()};
  const long result =
      ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen,
                &until, nullptr, FUTEX_BITSET_MATCH_ANY);
  return result == 0 || errno != ETIMEDOUT;
}

void Signal::wake() {
  ::syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr,
            nullptr, 0);
}

} // namespace mega
