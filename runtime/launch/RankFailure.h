//===- RankFailure.h - Why a run ended, in one line -------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_LAUNCH_RANKFAILURE_H
#define MEGA_RUNTIME_LAUNCH_RANKFAILURE_H

#include "runtime/plan/Status.h"

#include <cstdint>
#include <string>

namespace mega {

/// Where a rank is, from time to time: what is known of one that is stopped.
struct RankState {
  int stage = -1;
  int64_t step = -1;
  int64_t action = -1;
  /// The rank whose data it waits for; -1 if it does not wait.
  int waitsFor = -1;
  /// The operation it waits in.
  std::string operation;
};

/// The failure of a rank, as all ranks report it. -1 where it is not known.
struct RankFailure {
  int rank = -1;
  int stage = -1;
  int64_t step = -1;
  int64_t action = -1;
  Code code = Code::Failed;
  std::string message;

  /// `rank 3 (stage 1, step 17, action 42): cannot read ...`
  std::string describe() const {
    std::string where;
    const auto add = [&](std::string_view what, int64_t value) {
      if (value >= 0) {
        where += fmt::format("{}{} {}", where.empty() ? "" : ", ", what, value);
      }
    };
    add("stage", stage);
    add("step", step);
    add("action", action);
    return fmt::format("rank {}{}: {}", rank,
                       where.empty() ? "" : " (" + where + ")", message);
  }
  Status status() const { return {code, describe()}; }
};

} // namespace mega

#endif // MEGA_RUNTIME_LAUNCH_RANKFAILURE_H
