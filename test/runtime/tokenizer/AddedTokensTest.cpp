#include "runtime/tokenizer/AddedTokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mega;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// The pieces as text, tokens as `[id:text]`.
std::vector<std::string> split(const AddedTokenSet &set,
                               std::string_view text) {
  std::vector<std::string> pieces;
  for (const auto &piece : set.split(text)) {
    const auto part = text.substr(piece.begin, piece.end - piece.begin);
    pieces.push_back(piece.id ? fmt::format("[{}:{}]", *piece.id, part)
                              : std::string(part));
  }
  return pieces;
}

AddedTokenSet set(const std::vector<AddedToken> &tokens) {
  AddedTokenSet result;
  for (const AddedToken &token : tokens) {
    result.add(token, token.content);
  }
  return result;
}

} // namespace

TEST(AddedTokens, TheLongestCounts) {
  const AddedTokenSet tokens =
      set({{.content = "<a>", .id = 1}, {.content = "<a><b>", .id = 2}});
  EXPECT_THAT(split(tokens, "x<a><b><a>y<a"),
              ElementsAre("x", "[2:<a><b>]", "[1:<a>]", "y<a"));
  EXPECT_TRUE(split(tokens, "").empty());
}

TEST(AddedTokens, StripTakesWhiteSpaceAlong) {
  const AddedTokenSet tokens =
      set({{.content = "<l>", .id = 1, .lstrip = true},
           {.content = "<r>", .id = 2, .rstrip = true}});
  EXPECT_THAT(split(tokens, "a \u3000<l> b <r>\n\t c"),
              ElementsAre("a", "[1: \u3000<l>]", " b ", "[2:<r>\n\t ]", "c"));
  // White space already taken is not taken twice.
  EXPECT_THAT(split(tokens, "<r>  <l>"), ElementsAre("[2:<r>  ]", "[1:<l>]"));
}

TEST(AddedTokens, SingleWordsStandAlone) {
  const AddedTokenSet tokens =
      set({{.content = "word", .id = 1, .singleWord = true}});
  EXPECT_THAT(split(tokens, "word"), ElementsAre("[1:word]"));
  EXPECT_THAT(split(tokens, "a word."), ElementsAre("a ", "[1:word]", "."));
  for (const char *text :
       {"words", "aword", "\u00e9word", "word_", "word1", "word\u0301"}) {
    EXPECT_THAT(split(tokens, text), ElementsAre(text));
  }
}

TEST(AddedTokens, RefusesWhatIsMalformed) {
  const auto refused = [](const char *text) {
    const auto parsed = parseAddedTokens(Json::parse(text));
    EXPECT_EQ(parsed.status().code(), Code::BadInput) << text;
    return parsed.status().message();
  };
  EXPECT_THAT(refused("{}"), HasSubstr("expected a list"));
  EXPECT_THAT(refused(R"([{"id": -1, "content": "a"}])"),
              HasSubstr("added_tokens[0].id is -1"));
  EXPECT_THAT(refused(R"([{"id": 4294967296, "content": "a"}])"),
              HasSubstr("expected an id"));
  EXPECT_THAT(refused(R"([{"id": 1, "content": ""}])"), HasSubstr("is empty"));
  EXPECT_THAT(refused(R"([{"id": 1, "content": "a", "new": true}])"),
              HasSubstr("added_tokens[0].new is not supported"));
  EXPECT_THAT(
      refused(R"([{"id": 1, "content": "a"}, {"id": 1, "content": "b"}])"),
      HasSubstr("is there twice"));
  EXPECT_THAT(refused(R"([{"id": 1, "content": "a", "lstrip": 1}])"),
              HasSubstr("expected true or false"));
}
