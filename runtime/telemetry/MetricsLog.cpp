#include "runtime/telemetry/MetricsLog.h"

#include "runtime/core/Files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <utility>

namespace mega {

StatusOr<MetricsLog> MetricsLog::open(const std::string &path, Mode mode) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
                    (mode == Mode::Replace ? O_TRUNC : 0);
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor < 0) {
    return osError("open", path);
  }
  return MetricsLog(path, descriptor);
}

MetricsLog::~MetricsLog() {
  if (descriptor >= 0) {
    ::close(descriptor);
  }
}

Status MetricsLog::write(const StepMetrics &metrics) {
  const std::pair<std::string_view, double> fields[] = {
      {"loss", metrics.loss},
      {"grad_norm", metrics.gradientNorm},
      {"lr", metrics.learningRate},
      {"tokens", static_cast<double>(metrics.tokens)},
      {"tokens_per_second", metrics.tokensPerSecond()},
      {"step_seconds", metrics.seconds}};
  // Six names and six numbers of at most 24 characters each.
  std::array<char, 512> line;
  char *end = fmt::format_to(line.data(), "{{\"step\":{}", metrics.step);
  bool finite = true;
  for (const auto &[name, value] : fields) {
    if (std::isfinite(value)) {
      end = fmt::format_to(end, ",\"{}\":{}", name, value);
    } else {
      end = fmt::format_to(end, ",\"{}\":null", name);
      finite = false;
    }
  }
  end = fmt::format_to(end, "{}}}\n", finite ? "" : ",\"nan\":true");
  return writeFully(descriptor, std::as_bytes(std::span(line.data(), end)),
                    path);
}

Status MetricsLog::writeEvaluation(int64_t step, double loss, int64_t tokens) {
  std::array<char, 128> line;
  char *end =
      fmt::format_to(line.data(), "{{\"step\":{},\"valid_loss\":", step);
  end = std::isfinite(loss) ? fmt::format_to(end, "{}", loss)
                            : fmt::format_to(end, "null");
  end = fmt::format_to(end, ",\"valid_tokens\":{}}}\n", tokens);
  return writeFully(descriptor, std::as_bytes(std::span(line.data(), end)),
                    path);
}

} // namespace mega
