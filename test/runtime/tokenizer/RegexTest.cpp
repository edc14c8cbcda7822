#include "runtime/tokenizer/Regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mega;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::vector<std::string> matches(std::string_view pattern,
                                 std::string_view text) {
  auto compiled = Regex::compile(pattern);
  EXPECT_TRUE(compiled.isOk()) << compiled.status().message();
  std::vector<std::string> found;
  const Status status =
      compiled->forEachMatch(text, [&](size_t begin, size_t end) {
        found.emplace_back(text.substr(begin, end - begin));
      });
  EXPECT_TRUE(status.isOk()) << status.message();
  return found;
}

} // namespace

TEST(Regex, WhiteSpaceIsUnicodes) {
  // U+0085, U+00A0 and U+3000 are; U+180E and U+200B are not.
  EXPECT_THAT(matches(R"(\s+)", "a\u0085\u00a0b\u3000c\u180ed\u200be"),
              ElementsAre("\u0085\u00a0", "\u3000"));
  EXPECT_THAT(matches(R"([^\s]+)", "a\u0085\u180e b"),
              ElementsAre("a", "\u180e", "b"));
  EXPECT_THAT(matches(R"(\S+)", "a\u3000b"), ElementsAre("a", "b"));
}

TEST(Regex, LooksAhead) {
  EXPECT_THAT(matches(R"(\s+(?!\S)|\s+)", "a   b  "),
              ElementsAre("  ", " ", "  "));
}

TEST(Regex, CaseFoldsBeyondAscii) {
  EXPECT_THAT(matches("(?i:'s|'ll)", "x'S y'LL z'\u017f"),
              ElementsAre("'S", "'LL", "'\u017f"));
}

TEST(Regex, TranslatesWhatIsSpeltInAnotherWay) {
  EXPECT_EQ(*translatePattern(R"(\p{Han}\p{^L}\P{Lu}\u4e00\x41\x{1F600}\w)"),
            R"(\p{sc:Han}\p{^L}\P{Lu}\x{4e00}\x{41}\x{1F600})"
            R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}])");
  EXPECT_THAT(matches("[\u4e00-\u9fa5\u3040-\u309f]+", "ab\u4e2d\u3042c"),
              ElementsAre("\u4e2d\u3042"));
}

TEST(Regex, RefusesWhatMayMeanSomethingElse) {
  for (const char *pattern :
       {"^a",       "a$",       "[a[b]]",  "[a&&b]",       R"(\bx)",
        R"(\ha)",   R"(\va)",   R"(\Ka)",  R"(\Xa)",       R"(\1a)",
        R"([\W]a)", "a{,3}b",   "a{2}+",   "(?i)a",        "(?<n>a)",
        "(?#c)a",   "(?R)a",    "(*UCP)a", R"(\p{Alpha})", R"(\pL)",
        R"(\p{L)",  R"(\x{}a)", R"(\u12)", "\\",           "[]a]",
        "(a",       "a)",       "[a",      "a**?*",        "a*",
        "a|",       "",         "(?=a)",   "(?:(?:a)*)*"}) {
    EXPECT_EQ(Regex::compile(pattern).status().code(), Code::BadInput)
        << pattern;
  }
  EXPECT_THAT(Regex::compile(R"(x\b)").status().message(),
              HasSubstr(R"(the escape \b at byte 1 of the pattern x\b)"));
}

TEST(Regex, BoundsHostilePatterns) {
  EXPECT_FALSE(Regex::compile(std::string(20000, 'a')).isOk());
  EXPECT_FALSE(
      Regex::compile(std::string(5000, '(') + "a" + std::string(5000, ')'))
          .isOk());
  const auto slow = Regex::compile("(?:a+)+[bc]");
  ASSERT_TRUE(slow.isOk()) << slow.status().message();
  const Status status =
      slow->forEachMatch(std::string(5000, 'a') + "d", [](size_t, size_t) {});
  EXPECT_EQ(status.code(), Code::BadInput);
  EXPECT_THAT(status.message(), HasSubstr("gives up at byte 0 of 5001"));
}

TEST(Regex, TakesLongRuns) {
  const std::string spaces(1 << 20, ' ');
  EXPECT_THAT(matches(R"(\s*[\r\n]+|\s+(?!\S)|\s+)", spaces + "x"),
              ElementsAre(spaces.substr(1), " "));
}
