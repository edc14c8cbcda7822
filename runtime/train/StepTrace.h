//===- StepTrace.h - What the ranks did when --------------------*- C++ -*-===//
//
// Records when the actions of training steps ran, on all ranks of this process,
// and shows it: as a trace that Perfetto and chrome://tracing open, or as the
// times of the last step, to be held against the planned ones.
//
// In the trace a rank is a process. Its actions are on threads: one computes,
// and there is one for what it sends to, and for what it receives from, every
// rank it has transfers with. An arrow leads from the start of a send to the
// end of the wait of its receive; both ends have a name that all ranks agree
// on, so traces of several processes can be joined.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TRAIN_STEPTRACE_H
#define MEGA_RUNTIME_TRAIN_STEPTRACE_H

#include "runtime/core/Files.h"
#include "runtime/plan/StepTimes.h"
#include "runtime/train/LocalRanks.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mega {

/// Steps a trace has at most: the first ones.
inline constexpr size_t kTracedSteps = 20;

class StepTrace {
public:
  /// From now on `ranks`, which it does not outlive, record the steps of the
  /// entry point: `steps` that can be written, and the last one. The memory for
  /// that is there when this returns.
  StepTrace(LocalRanks &ranks, uint32_t entryPoint, size_t steps);
  StepTrace(const StepTrace &) = delete;
  StepTrace &operator=(const StepTrace &) = delete;
  ~StepTrace();

  /// Writes the trace into `file`, which is not committed.
  Status write(AtomicFile &file) const;
  /// The last step, on the first rank of each stage; time 0 is when the first
  /// of them began. All ranks are here, and there was a step.
  StepTimes lastStep() const;

private:
  LocalRanks &ranks;
  /// By local rank.
  std::vector<std::unique_ptr<ActionLog>> logs;
};

/// Where a process that is one rank of several writes what would go to `path`:
/// `out.rank3.json` for `out.json`.
std::string pathOfRank(const std::string &path, int64_t rank);

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_STEPTRACE_H
