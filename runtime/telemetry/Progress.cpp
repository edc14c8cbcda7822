#include "runtime/telemetry/Progress.h"

#include "runtime/core/Files.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>

namespace mega {

namespace {

/// `999`, `12.3k`, `4.56M`: three digits that matter.
char *formatRate(char *out, double rate) {
  constexpr std::string_view units[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  while (rate >= 999.5 && unit + 1 < std::size(units)) {
    rate /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || rate >= 99.95 ? 0 : rate >= 9.995 ? 1 : 2;
  return fmt::format_to(out, "{:.{}f}{}", rate, decimals, units[unit]);
}

/// `0:07`, `12:34`, `1:02:03`, `4d 05h`.
char *formatDuration(char *out, double seconds) {
  // Also catches NaN.
  if (!(seconds < 100.0 * 365 * 86400)) {
    return fmt::format_to(out, "-");
  }
  const int64_t whole = std::llround(std::max(seconds, 0.0));
  if (whole >= 86400) {
    return fmt::format_to(out, "{}d {:02}h", whole / 86400, whole / 3600 % 24);
  }
  if (whole >= 3600) {
    return fmt::format_to(out, "{}:{:02}:{:02}", whole / 3600, whole / 60 % 60,
                          whole % 60);
  }
  return fmt::format_to(out, "{}:{:02}", whole / 60, whole % 60);
}

/// At most six characters: `1.234`, `12345`, `1e+07`, `nan`.
char *formatNorm(char *out, double norm) {
  const bool fits = !(norm >= 999'999.5);
  return !std::isfinite(norm) ? fmt::format_to(out, "{}", norm)
         : !fits              ? fmt::format_to(out, "{:.0e}", norm)
         : norm >= 99.9995    ? fmt::format_to(out, "{:.0f}", norm)
                              : fmt::format_to(out, "{:.3f}", norm);
}

/// At most eight characters; the loss of a diverged run needs exponents.
char *formatLoss(char *out, double loss) {
  return std::isfinite(loss) && std::abs(loss) >= 99.99995
             ? fmt::format_to(out, "{:.1e}", loss)
             : fmt::format_to(out, "{:.4f}", loss);
}

size_t columns(int descriptor) {
  winsize size = {};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return 80;
  }
  return size.ws_col;
}

bool isSet(const char *variable) {
  const char *value = std::getenv(variable);
  return value && *value;
}

} // namespace

bool isInteractive(int descriptor) {
  return ::isatty(descriptor) && !isSet("NO_COLOR") && !isSet("CI");
}

double steadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string_view formatProgress(std::span<char> buffer,
                                const StepMetrics &metrics, int64_t totalSteps,
                                double secondsLeft) {
  std::array<char, 32> loss;
  std::array<char, 32> norm;
  std::array<char, 32> rate;
  std::array<char, 32> left;
  const auto text = [](std::array<char, 32> &array, char *end) {
    return std::string_view(array.data(), end);
  };
  const auto format = [&](std::string_view learningRate) {
    return fmt::format_to_n(
               buffer.data(), buffer.size(),
               "step {:>{}}/{}  loss {:>7}  grad {:>6}{}  {:>5} tok/s  {} left",
               metrics.step, fmt::formatted_size("{}", totalSteps), totalSteps,
               text(loss, formatLoss(loss.data(), metrics.loss)),
               text(norm, formatNorm(norm.data(), metrics.gradientNorm)),
               learningRate,
               text(rate, formatRate(rate.data(), metrics.tokensPerSecond())),
               text(left, formatDuration(left.data(), secondsLeft)))
        .size;
  };
  std::array<char, 32> lr;
  size_t size = format(
      text(lr, fmt::format_to(lr.data(), "  lr {:.2e}", metrics.learningRate)));
  if (size > buffer.size()) {
    size = format("");
  }
  return {buffer.data(), std::min(size, buffer.size())};
}

void Progress::update(const StepMetrics &metrics, double now) {
  latest = metrics;
  secondsPerStep =
      any ? 0.9 * secondsPerStep + 0.1 * metrics.seconds : metrics.seconds;
  stale = true;
  if (isDue(metrics.step, now)) {
    lastShown = now;
    show(metrics);
  }
  any = true;
}

bool Progress::isDue(int64_t step, double now) const {
  if (!any || step >= totalSteps) {
    return true;
  }
  if (interactive) {
    return now - lastShown >= 0.1;
  }
  return step % std::max<int64_t>(totalSteps / 20, 1) == 0 ||
         now - lastShown >= 10;
}

void Progress::show(const StepMetrics &metrics) {
  std::array<char, 256> buffer;
  // A line as wide as the terminal may wrap: stay one short. Room is left for
  // what goes around the text.
  const size_t width = std::min<size_t>(
      interactive ? columns(descriptor) - 1 : buffer.size(), 240);
  const int64_t steps = std::max<int64_t>(totalSteps - metrics.step, 0);
  const std::string_view line =
      formatProgress(std::span(buffer).subspan(1, width), metrics, totalSteps,
                     static_cast<double>(steps) * secondsPerStep);
  stale = false;
  if (!interactive) {
    buffer[1 + line.size()] = '\n';
    write({line.data(), line.size() + 1});
    return;
  }
  // Return, text, erase what an older, longer line left.
  constexpr std::string_view kErase = "\x1b[K";
  buffer[0] = '\r';
  std::ranges::copy(kErase, buffer.begin() + 1 + line.size());
  write({buffer.data(), 1 + line.size() + kErase.size()});
  open = true;
}

void Progress::clear() {
  if (open) {
    write("\r\x1b[K");
    open = false;
    stale = true;
  }
}

void Progress::finish() {
  if (!interactive || (!open && !stale)) {
    return;
  }
  if (stale) {
    show(latest);
  }
  write("\n");
  open = false;
}

void Progress::write(std::string_view text) const {
  (void)writeFully(descriptor, std::as_bytes(std::span(text)),
                   "standard error");
}

EvaluationProgress::~EvaluationProgress() {
  if (interactive && any) {
    (void)writeFully(descriptor, std::as_bytes(std::span("\r\x1b[K", 4)),
                     "standard error");
  }
}

void EvaluationProgress::update(int64_t done, double now) {
  const double elapsed = now - start;
  const double left = elapsed * static_cast<double>(batches - done) /
                      static_cast<double>(std::max<int64_t>(done, 1));
  const bool due = interactive ? elapsed >= 0.5 && now - lastShown >= 0.1
                   : any       ? now - lastShown >= 30
                               : elapsed + left >= 10;
  if (!due || done >= batches) {
    return;
  }
  any = true;
  lastShown = now;
  std::array<char, 32> duration;
  std::array<char, 128> line;
  const char *end = fmt::format_to(
      line.data(), "{}evaluating {}/{}  {} left{}", interactive ? "\r" : "",
      done, batches,
      std::string_view(duration.data(), formatDuration(duration.data(), left)),
      interactive ? "\x1b[K" : "\n");
  (void)writeFully(descriptor,
                   std::as_bytes(std::span<const char>(line.data(), end)),
                   "standard error");
}

} // namespace mega
