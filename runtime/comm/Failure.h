//===- Failure.h - The first error of a world -------------------*- C++ -*-===//
//
// Holds the root cause that all communicators of a world report. Set once;
// later errors are consequences and dropped. All methods may be called from any
// thread. failed() is one load.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_FAILURE_H
#define MEGA_RUNTIME_COMM_FAILURE_H

#include "runtime/comm/Operation.h"

#include <atomic>
#include <cassert>
#include <mutex>

namespace mega {

class Failure {
public:
  bool failed() const { return failed_.load(std::memory_order_seq_cst); }

  /// The root cause, or Ok.
  Status status() const {
    const std::scoped_lock lock(mutex);
    return copy(cause);
  }

  /// Whether `status` has become the root cause.
  bool set(const Status &status) {
    assert(!status.isOk());
    const std::scoped_lock lock(mutex);
    if (!cause.isOk()) {
      return false;
    }
    cause = copy(status);
    failed_.store(true, std::memory_order_seq_cst);
    return true;
  }

private:
  mutable std::mutex mutex;
  Status cause;
  std::atomic<bool> failed_{false};
};

} // namespace mega

#endif // MEGA_RUNTIME_COMM_FAILURE_H
