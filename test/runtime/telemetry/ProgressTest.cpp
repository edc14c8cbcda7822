#include "runtime/telemetry/Progress.h"

#include "test/runtime/TemporaryDirectory.h"
#include "test/runtime/telemetry/CountedNew.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

using namespace mega;
using namespace mega::test;

namespace {

/// A file in place of standard error.
class ProgressTest : public testing::Test {
protected:
  ProgressTest()
      : descriptor(::open(directory.file("err").c_str(),
                          O_WRONLY | O_CREAT | O_APPEND, 0600)) {}
  ~ProgressTest() override { ::close(descriptor); }

  std::string output() const { return readFile(directory.file("err")); }
  int64_t lines() const { return std::ranges::count(output(), '\n'); }

  TemporaryDirectory directory;
  const int descriptor;
};

StepMetrics step(int64_t number, double seconds = 0.5) {
  return {number, 3.45678, 1.2341, 3e-4, 6150, seconds};
}

std::string format(const StepMetrics &metrics, int64_t total, double left) {
  char buffer[128];
  return std::string(formatProgress(buffer, metrics, total, left));
}

} // namespace

TEST(FormatProgress, IsReadableAndAligned) {
  EXPECT_EQ(format(step(12), 1000, 3723),
            "step   12/1000  loss  3.4568  grad  1.234  lr 3.00e-04  12.3k "
            "tok/s  1:02:03 left");
  EXPECT_EQ(format({1000, 12.5, 0.25, 0, 500, 1}, 1000, 0),
            "step 1000/1000  loss 12.5000  grad  0.250  lr 0.00e+00    500 "
            "tok/s  0:00 left");
}

TEST(FormatProgress, ShowsNumbersOfAnySize) {
  const auto contains = [](double rate, double left, const char *text) {
    StepMetrics metrics = step(1, 1);
    metrics.tokens = static_cast<int64_t>(rate);
    EXPECT_THAT(format(metrics, 9, left), testing::HasSubstr(text));
  };
  contains(999, 7, "  999 tok/s  0:07 left");
  contains(9'996, 754, "10.0k tok/s  12:34 left");
  contains(99'960, 86400 * 4 + 3600 * 5, " 100k tok/s  4d 05h left");
  contains(4'560'000, 1e300, "4.56M tok/s  - left");
  contains(1e18, NAN, "1000000T tok/s  - left");
  EXPECT_THAT(format({1, NAN, INFINITY, 1, 1, 1}, 9, 0),
              testing::HasSubstr("loss     nan  grad    inf"));
  EXPECT_THAT(format({1, 1e30, 123456, 1, 1, 1}, 9, 0),
              testing::HasSubstr("loss 1.0e+30  grad 123456"));
}

TEST(FormatProgress, FitsItsBuffer) {
  char eighty[80];
  EXPECT_EQ(formatProgress(eighty, step(12), 1000, 3723),
            "step   12/1000  loss  3.4568  grad  1.234  12.3k tok/s  1:02:03 "
            "left");
  char ten[10];
  EXPECT_EQ(formatProgress(ten, step(12), 1000, 0), "step   12/");
}

TEST_F(ProgressTest, PlainShowsFirstLastAndAboutTwentyBetween) {
  {
    Progress progress(1000, descriptor, false);
    for (int64_t i = 1; i <= 1000; ++i) {
      progress.update(step(i), 0.001 * static_cast<double>(i));
    }
  }
  EXPECT_EQ(lines(), 21);
  EXPECT_THAT(output(), testing::StartsWith("step    1/1000"));
  EXPECT_THAT(output(), testing::HasSubstr("\nstep   50/1000"));
  EXPECT_THAT(output(), testing::HasSubstr("\nstep 1000/1000"));
  EXPECT_THAT(output(), testing::Not(testing::HasSubstr("\x1b")));
}

TEST_F(ProgressTest, PlainBreaksALongSilence) {
  Progress progress(1'000'000, descriptor, false);
  for (int64_t i = 1; i <= 100; ++i) {
    progress.update(step(i), static_cast<double>(i));
  }
  EXPECT_EQ(lines(), 10);
}

TEST_F(ProgressTest, TerminalRewritesOneLine) {
  {
    Progress progress(100, descriptor, true);
    progress.update(step(1), 1.00);
    progress.update(step(2), 1.05);
    progress.update(step(3), 1.10);
    EXPECT_EQ(lines(), 0);
    EXPECT_EQ(std::ranges::count(output(), '\r'), 2);
    progress.update(step(4), 1.11);
  }
  // The last step is shown even if it came too early for a refresh.
  EXPECT_THAT(output(), testing::HasSubstr("\rstep   4/100"));
  EXPECT_THAT(output(), testing::EndsWith("\x1b[K\n"));
  EXPECT_EQ(lines(), 1);
}

TEST_F(ProgressTest, TerminalLineStaysWithinTheWidth) {
  Progress progress(1'000'000'000'000'000, descriptor, true);
  progress.update(step(1), 0);
  // No terminal behind the descriptor: 80 columns.
  EXPECT_EQ(output().size(), 79 + std::string("\r\x1b[K").size());
}

TEST_F(ProgressTest, ClearMakesRoomForAMessage) {
  Progress progress(100, descriptor, true);
  progress.clear();
  EXPECT_EQ(output(), "");
  progress.update(step(1), 0);
  progress.clear();
  EXPECT_THAT(output(), testing::EndsWith("\r\x1b[K"));
}

TEST_F(ProgressTest, FinishTwiceEndsTheLineOnce) {
  Progress progress(100, descriptor, true);
  progress.update(step(1), 0);
  progress.finish();
  progress.finish();
  EXPECT_EQ(lines(), 1);
}

TEST_F(ProgressTest, AnUpdateAllocatesNothing) {
  for (bool interactive : {false, true}) {
    Progress progress(100, descriptor, interactive);
    const int64_t before = allocations();
    for (int64_t i = 1; i <= 100; ++i) {
      progress.update(step(i), static_cast<double>(i));
    }
    EXPECT_EQ(allocations(), before);
  }
}

TEST_F(ProgressTest, AFileIsNotInteractive) {
  EXPECT_FALSE(isInteractive(descriptor));
}

TEST(IsInteractive, RespectsNoColorAndCi) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) {
    GTEST_SKIP() << "no pseudo-terminals here";
  }
  ::unsetenv("NO_COLOR");
  ::unsetenv("CI");
  EXPECT_TRUE(isInteractive(terminal));
  for (const char *variable : {"NO_COLOR", "CI"}) {
    ::setenv(variable, "1", 1);
    EXPECT_FALSE(isInteractive(terminal)) << variable;
    ::setenv(variable, "", 1);
    EXPECT_TRUE(isInteractive(terminal)) << variable;
    ::unsetenv(variable);
  }
  ::close(terminal);
}
