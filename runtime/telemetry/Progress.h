//===- Progress.h - The running line of a training run ----------*- C++ -*-===//
//
// Tells the person at the terminal how a run is going, on standard error:
//
//   step 12/99  loss  3.4567  grad  1.234  lr 3.00e-04  12.3k tok/s  2:03 left
//
// On a terminal it is one line, rewritten at most ten times a second and fitted
// to the terminal's width. Elsewhere (a file, CI, NO_COLOR) lines are plain:
// the first and the last step, about twenty in between, and one after ten
// seconds of silence.
//
// An update allocates nothing and makes no system calls but write and, on a
// terminal, ioctl. Errors of writing are ignored: they must not stop a run. One
// thread; rank 0 only.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TELEMETRY_PROGRESS_H
#define MEGA_RUNTIME_TELEMETRY_PROGRESS_H

#include "runtime/telemetry/StepMetrics.h"

#include <span>
#include <string_view>

namespace mega {

/// Whether `descriptor` is a terminal whose line may be rewritten: not with
/// NO_COLOR or CI in the environment (set and not empty).
bool isInteractive(int descriptor);

/// Seconds of a clock that never goes back.
double steadySeconds();

/// Writes the line above, without line break, into `buffer` and returns the
/// part used. In a short buffer the learning rate is left out first; then the
/// line is cut.
std::string_view formatProgress(std::span<char> buffer,
                                const StepMetrics &metrics, int64_t totalSteps,
                                double secondsLeft);

class Progress {
public:
  /// `totalSteps` is the number of the run's last step. The descriptor is not
  /// owned.
  explicit Progress(int64_t totalSteps, int descriptor = 2)
      : Progress(totalSteps, descriptor, isInteractive(descriptor)) {}
  Progress(int64_t totalSteps, int descriptor, bool interactive)
      : totalSteps(totalSteps), descriptor(descriptor),
        interactive(interactive) {}
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  /// Ends the open line.
  ~Progress() { finish(); }

  /// Reports a finished step; `now` as from steadySeconds().
  void update(const StepMetrics &metrics, double now);
  void update(const StepMetrics &metrics) { update(metrics, steadySeconds()); }

  /// Removes the open line, so that a message can be written in its place. The
  /// next update brings it back.
  void clear();
  /// Ends the open line with the latest step on it; further updates open a new
  /// one.
  void finish();

private:
  bool isDue(int64_t step, double now) const;
  void show(const StepMetrics &metrics);
  void write(std::string_view text) const;

  int64_t totalSteps;
  int descriptor;
  bool interactive;
  StepMetrics latest;
  /// Smoothed over about ten steps, so that the estimate is calm.
  double secondsPerStep = 0;
  double lastShown = 0;
  bool any = false;
  /// A line without line break is on the terminal.
  bool open = false;
  /// The latest step is not on it.
  bool stale = false;
};

/// The same for an evaluation, which is silent unless it takes long: on a
/// terminal a line that is rewritten and at the end removed, elsewhere a plain
/// line when the first batches promise more than ten seconds, and every thirty.
///
///   evaluating 12/345  0:20 left
class EvaluationProgress {
public:
  explicit EvaluationProgress(int64_t batches, int descriptor = 2)
      : EvaluationProgress(batches, descriptor, isInteractive(descriptor),
                           steadySeconds()) {}
  EvaluationProgress(int64_t batches, int descriptor, bool interactive,
                     double now)
      : batches(batches), descriptor(descriptor), interactive(interactive),
        start(now) {}
  EvaluationProgress(const EvaluationProgress &) = delete;
  EvaluationProgress &operator=(const EvaluationProgress &) = delete;
  /// Removes the open line.
  ~EvaluationProgress();

  /// Reports that `done` batches are done.
  void update(int64_t done, double now);
  void update(int64_t done) { update(done, steadySeconds()); }

private:
  int64_t batches;
  int descriptor;
  bool interactive;
  double start;
  double lastShown = 0;
  bool any = false;
};

} // namespace mega

#endif // MEGA_RUNTIME_TELEMETRY_PROGRESS_H
