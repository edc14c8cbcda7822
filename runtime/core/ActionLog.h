//===- ActionLog.h - When the actions of steps ran --------------*- C++ -*-===//
//
// An executor that has one writes the time in front of and behind every action
// of one entry point into memory that is there from the beginning: nothing is
// allocated while a step runs. Kept are the first steps, and the last one.
//
// The clock is steady_clock, which all processes of a host share.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CORE_ACTIONLOG_H
#define MEGA_RUNTIME_CORE_ACTIONLOG_H

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace mega {

class ActionLog {
public:
  /// In nanoseconds.
  struct Interval {
    int64_t begin;
    int64_t end;
  };

  /// For `actions` actions of the entry point; keeps the first `steps` steps.
  ActionLog(uint32_t entryPoint, size_t actions, size_t steps)
      : entryPoint_(entryPoint), actions(actions), most(steps),
        intervals((steps + 1) * actions) {}

  uint32_t entryPoint() const { return entryPoint_; }

  /// Where the step that begins writes; it counts once it is over.
  std::span<Interval> beginStep() { return row(std::min(done, most)); }
  void endStep() { ++done; }

  /// How many of the first steps there are.
  size_t steps() const { return std::min(done, most); }
  /// Of the step after `index` others.
  std::span<const Interval> step(size_t index) const { return row(index); }
  /// Of the last step; there was one.
  std::span<const Interval> last() const {
    return row(std::min(done - 1, most));
  }

  static int64_t now() {
    return std::chrono::nanoseconds(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

private:
  std::span<Interval> row(size_t index) {
    return std::span(intervals).subspan(index * actions, actions);
  }
  std::span<const Interval> row(size_t index) const {
    return std::span(intervals).subspan(index * actions, actions);
  }

  const uint32_t entryPoint_;
  const size_t actions;
  const size_t most;
  size_t done = 0;
  std::vector<Interval> intervals;
};

} // namespace mega

#endif // MEGA_RUNTIME_CORE_ACTIONLOG_H
