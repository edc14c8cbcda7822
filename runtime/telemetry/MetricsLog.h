//===- MetricsLog.h - Steps as JSON lines -----------------------*- C++ -*-===//
//
// One JSON object per line and step, each written with one write(2), so that a
// reader that follows the file never sees half a line:
//
//   {"step":1,"loss":5.55,"grad_norm":1.2,"lr":0.001,"tokens":4096,
//    "tokens_per_second":81920,"step_seconds":0.05}
//
// Numbers are the shortest text that reads back as the same double. What is NaN
// or infinite is null, and such a line ends with "nan":true.
//
// A line allocates nothing and makes no system call but the write. Move-only,
// one thread; rank 0 only.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TELEMETRY_METRICSLOG_H
#define MEGA_RUNTIME_TELEMETRY_METRICSLOG_H

#include "runtime/plan/Status.h"
#include "runtime/telemetry/StepMetrics.h"

#include <string>
#include <string_view>

namespace mega {

class MetricsLog {
public:
  enum class Mode {
    /// A new run: an existing file is emptied.
    Replace,
    /// A resumed run.
    Append,
  };

  /// Code::Io if the file cannot be opened.
  static StatusOr<MetricsLog> open(const std::string &path, Mode mode);

  MetricsLog(MetricsLog &&other) noexcept
      : path(std::move(other.path)),
        descriptor(std::exchange(other.descriptor, -1)) {}
  MetricsLog &operator=(MetricsLog &&other) noexcept {
    std::swap(path, other.path);
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~MetricsLog();

  /// Code::Io if the line cannot be written.
  Status write(const StepMetrics &metrics);
  /// `{"step":..,"valid_loss":..,"valid_tokens":..}`: the mean over `tokens`
  /// valid tokens after `step`.
  Status writeEvaluation(int64_t step, double loss, int64_t tokens);

private:
  MetricsLog(std::string path, int descriptor)
      : path(std::move(path)), descriptor(descriptor) {}

  std::string path;
  int descriptor;
};

} // namespace mega

#endif // MEGA_RUNTIME_TELEMETRY_METRICSLOG_H
