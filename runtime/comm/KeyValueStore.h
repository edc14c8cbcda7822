//===- KeyValueStore.h - How ranks find each other --------------*- C++ -*-===//
//
// What the ranks of a world tell each other before they can communicate: each
// key is set once, by one rank, and read by any. Rendezvous (runtime/launch)
// implements it between processes. All methods from any thread.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_COMM_KEYVALUESTORE_H
#define MEGA_RUNTIME_COMM_KEYVALUESTORE_H

#include "runtime/plan/Status.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

namespace mega {

class KeyValueStore {
public:
  virtual ~KeyValueStore() = default;
  virtual Status set(const std::string &key, const std::string &value) = 0;
  /// Waits until someone sets `key`; Code::Unavailable with the key after
  /// `limit`.
  virtual StatusOr<std::string> get(const std::string &key,
                                    std::chrono::milliseconds limit) = 0;
};

/// Between threads of one process.
class LocalStore final : public KeyValueStore {
public:
  Status set(const std::string &key, const std::string &value) override {
    const std::scoped_lock lock(mutex);
    values[key] = value;
    changed.notify_all();
    return Status::ok();
  }
  StatusOr<std::string> get(const std::string &key,
                            std::chrono::milliseconds limit) override {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, limit, [&] { return values.contains(key); })) {
      return makeError(Code::Unavailable, "nobody has set \"{}\" within {} ms",
                       key, limit.count());
    }
    return values[key];
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
};

} // namespace mega

#endif // MEGA_RUNTIME_COMM_KEYVALUESTORE_H
