#include "runtime/telemetry/MetricsLog.h"

#include "test/runtime/TemporaryDirectory.h"
#include "test/runtime/telemetry/CountedNew.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

using namespace mega;
using namespace mega::test;

namespace {

const StepMetrics kStep{3, 5.55, 1.25, 1e-5, 4096, 0.5};
const std::string kLine =
    R"({"step":3,"loss":5.55,"grad_norm":1.25,"lr":1e-05,"tokens":4096,)"
    R"("tokens_per_second":8192,"step_seconds":0.5})"
    "\n";

MetricsLog open(const std::string &path, MetricsLog::Mode mode) {
  auto opened = MetricsLog::open(path, mode);
  EXPECT_TRUE(opened.isOk()) << opened.status().message();
  return std::move(opened).take();
}

} // namespace

TEST(MetricsLog, WritesOneLinePerStepAtOnce) {
  TemporaryDirectory directory;
  const std::string path = directory.file("metrics.jsonl");
  MetricsLog log = open(path, MetricsLog::Mode::Replace);
  ASSERT_TRUE(log.write(kStep).isOk());
  EXPECT_EQ(readFile(path), kLine);
  ASSERT_TRUE(log.write(kStep).isOk());
  EXPECT_EQ(readFile(path), kLine + kLine);
}

TEST(MetricsLog, ReplacesOrAppends) {
  TemporaryDirectory directory;
  const std::string path = directory.file("metrics.jsonl");
  writeFile(path, "old\n");
  ASSERT_TRUE(open(path, MetricsLog::Mode::Append).write(kStep).isOk());
  EXPECT_EQ(readFile(path), "old\n" + kLine);
  ASSERT_TRUE(open(path, MetricsLog::Mode::Replace).write(kStep).isOk());
  EXPECT_EQ(readFile(path), kLine);
}

TEST(MetricsLog, NumbersThatJsonCannotHoldAreNull) {
  TemporaryDirectory directory;
  const std::string path = directory.file("metrics.jsonl");
  StepMetrics step = kStep;
  step.loss = std::numeric_limits<double>::quiet_NaN();
  step.gradientNorm = -std::numeric_limits<double>::infinity();
  MetricsLog log = open(path, MetricsLog::Mode::Replace);
  ASSERT_TRUE(log.write(step).isOk());
  EXPECT_EQ(readFile(path),
            R"({"step":3,"loss":null,"grad_norm":null,"lr":1e-05,)"
            R"("tokens":4096,"tokens_per_second":8192,"step_seconds":0.5,)"
            R"("nan":true})"
            "\n");
}

TEST(MetricsLog, TheLongestLineFits) {
  TemporaryDirectory directory;
  const double big = -1.7976931348623157e308;
  const auto most = std::numeric_limits<int64_t>::min();
  MetricsLog log = open(directory.file("m"), MetricsLog::Mode::Replace);
  ASSERT_TRUE(log.write({most, big, big, big, most, 4.9e-324}).isOk());
  EXPECT_LT(readFile(directory.file("m")).size(), 400u);
}

TEST(MetricsLog, ALineAllocatesNothing) {
  TemporaryDirectory directory;
  MetricsLog log = open(directory.file("m"), MetricsLog::Mode::Replace);
  const int64_t before = allocations();
  for (int i = 0; i < 100; ++i) {
    (void)log.write(kStep);
  }
  EXPECT_EQ(allocations(), before);
}

TEST(MetricsLog, ReportsWhatCannotBeWritten) {
  const auto missing =
      MetricsLog::open("/nonexistent/m", MetricsLog::Mode::Append);
  EXPECT_EQ(missing.status().code(), Code::Io);
  EXPECT_EQ(missing.status().message(),
            "cannot open /nonexistent/m: No such file or directory");
  auto full = MetricsLog::open("/dev/full", MetricsLog::Mode::Append);
  if (full.isOk()) {
    EXPECT_EQ(full->write(kStep).message(),
              "cannot write /dev/full: No space left on device");
  }
}
