#include "runtime/tokenizer/BpeTokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

using namespace mega;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// A small file without pre-tokenizer: a=0 b=1 c=2 ab=3 abc=4 bc=5, <unk>=6.
Json file() {
  return Json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 7, "content": "</s>", "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null,
    "decoder": null,
    "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>",
      "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "bc": 5,
                "<unk>": 6},
      "merges": [["b", "c"], "a b", ["ab", "c"]]}})");
}

StatusOr<BpeTokenizer> parse(const Json &json) {
  return BpeTokenizer::parse(json.dump());
}

std::vector<int32_t> encode(const Json &json, std::string_view text) {
  const auto tokenizer = parse(json);
  EXPECT_TRUE(tokenizer.isOk()) << tokenizer.status().message();
  std::vector<int32_t> ids;
  const Status status = (*tokenizer).encode(text, ids);
  EXPECT_TRUE(status.isOk()) << status.message();
  return ids;
}

std::string refused(const Json &json) {
  const auto parsed = parse(json);
  EXPECT_EQ(parsed.status().code(), Code::BadInput) << json.dump();
  return parsed.status().message();
}

/// `file()` with one value changed.
Json with(const char *pointer, const Json &value) {
  Json json = file();
  json[Json::json_pointer(pointer)] = value;
  return json;
}

} // namespace

TEST(BpeTokenizer, MergesByRankThenFromTheLeft) {
  // b c goes before a b, so "ab c" is never reached.
  EXPECT_THAT(encode(file(), "abc"), ElementsAre(0, 5));
  EXPECT_THAT(encode(file(), "abab"), ElementsAre(3, 3));
  EXPECT_THAT(encode(file(), ""), ElementsAre());
  // The word as a whole, with ignore_merges.
  EXPECT_THAT(encode(with("/model/ignore_merges", true), "abc"),
              ElementsAre(4));
}

TEST(BpeTokenizer, FindsSpecialTokensInTheText) {
  EXPECT_THAT(encode(file(), "ab</s>c"), ElementsAre(3, 7, 2));
  const auto tokenizer = parse(file());
  EXPECT_EQ((*tokenizer).vocabulary(), 8);
  EXPECT_EQ((*tokenizer).endOfDocument(), 7);
  EXPECT_EQ((*tokenizer).decode(std::vector<int32_t>{3, 99, 7}), "ab</s>");
}

TEST(BpeTokenizer, UnknownCharactersAreNeverDropped) {
  EXPECT_THAT(encode(file(), "axyb"), ElementsAre(0, 6, 6, 1));
  EXPECT_THAT(encode(with("/model/fuse_unk", true), "axyb"),
              ElementsAre(0, 6, 1));
  const auto none = parse(with("/model/unk_token", nullptr));
  std::vector<int32_t> ids;
  EXPECT_THAT((*none).encode("ax", ids).message(),
              HasSubstr("no token for \"x\", and no unk_token"));
  Json bytes = with("/model/byte_fallback", true);
  bytes["model"]["vocab"]["<0xC3>"] = 10;
  bytes["model"]["vocab"]["<0xA9>"] = 11;
  EXPECT_THAT(encode(bytes, "a\u00e9"), ElementsAre(0, 10, 11));
  EXPECT_EQ((*parse(bytes)).decode(std::vector<int32_t>{10, 11}), "\u00e9");
}

TEST(BpeTokenizer, RefusesTextThatIsNoUtf8) {
  const auto tokenizer = parse(file());
  std::vector<int32_t> ids;
  const Status status = (*tokenizer).encode("ab\xff", ids);
  EXPECT_EQ(status.code(), Code::BadInput);
  EXPECT_THAT(status.message(), HasSubstr("not UTF-8 at byte 2 (0xff)"));
  EXPECT_FALSE((*tokenizer).encode("\xed\xa0\x80", ids).isOk());
}

TEST(BpeTokenizer, RefusesWhatChangesIdsByName) {
  EXPECT_THAT(refused(with("/model/type", "Unigram")),
              HasSubstr("model.type \"Unigram\" is not supported"));
  EXPECT_THAT(refused(with("/model/dropout", 0.1)),
              HasSubstr("model.dropout is 0.1"));
  EXPECT_TRUE(parse(with("/model/dropout", 0.0)).isOk());
  EXPECT_THAT(refused(with("/model/end_of_word_suffix", "</w>")),
              HasSubstr("model.end_of_word_suffix \"</w>\" is not supported"));
  EXPECT_THAT(refused(with("/model/magic", 1)),
              HasSubstr("model.magic is not supported"));
  EXPECT_THAT(refused(with("/normalizer", {{"type", "Lowercase"}})),
              HasSubstr("normalizer.type \"Lowercase\" is not supported "
                        "(supported: NFC"));
  EXPECT_THAT(refused(with("/pre_tokenizer", {{"type", "Whitespace"}})),
              HasSubstr("pre_tokenizer.type \"Whitespace\" is not supported"));
  EXPECT_THAT(refused(with("/pre_tokenizer", {{"type", "Split"},
                                              {"pattern", {{"Regex", "a"}}},
                                              {"behavior", "MergedWithNext"}})),
              HasSubstr("pre_tokenizer.behavior \"MergedWithNext\""));
  EXPECT_THAT(refused(with("/truncation", {{"max_length", 8}})),
              HasSubstr("truncation"));
  EXPECT_THAT(refused(with("/padding", {{"strategy", {{"Fixed", 8}}}})),
              HasSubstr("padding"));
  EXPECT_THAT(refused(with("/extra", 1)), HasSubstr("extra is not supported"));
}

TEST(BpeTokenizer, RefusesContradictions) {
  EXPECT_THAT(refused(with("/model/unk_token", "<none>")),
              HasSubstr("model.unk_token \"<none>\" is not in model.vocab"));
  EXPECT_THAT(refused(with("/model/vocab/c", 1)), HasSubstr("both have id 1"));
  EXPECT_THAT(refused(with("/model/vocab/c", -1)), HasSubstr("model.vocab.c"));
  EXPECT_THAT(refused(with("/model/merges/1", "a b c")),
              HasSubstr("model.merges[1] is \"a b c\""));
  EXPECT_THAT(refused(with("/model/merges/1", "a x")),
              HasSubstr("model.merges[1]: \"x\" is not in model.vocab"));
  EXPECT_THAT(refused(with("/added_tokens/0/id", 3)),
              HasSubstr("in model.vocab that is \"ab\""));
  EXPECT_THAT(refused(with("/added_tokens/0/content", "ab")),
              HasSubstr("has id 7, but in model.vocab it has 3"));
}

TEST(BpeTokenizer, HostileFilesEndInAnError) {
  for (const std::string &text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"),
        std::string("\xff"), std::string(1 << 20, '['),
        "{\"model\":" + std::string(100000, '{')}) {
    EXPECT_EQ(BpeTokenizer::parse(text).status().code(), Code::BadInput);
  }
  // Any value in the place of any other.
  const Json flat = file().flatten();
  for (const auto &[pointer, value] : flat.items()) {
    for (const Json &other :
         {Json(), Json(-1), Json(1e300), Json("\u00e9"), Json(""), Json(true),
          Json::array(), Json::object(), Json(uint64_t{1} << 63)}) {
      const auto parsed = parse(with(pointer.c_str(), other));
      if (parsed.isOk()) {
        std::vector<int32_t> ids;
        (void)(*parsed).encode("ab c</s>", ids);
      }
    }
  }
  // Cut anywhere.
  const std::string whole = file().dump();
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(BpeTokenizer::parse(whole.substr(0, length)).isOk());
  }
}

TEST(BpeTokenizer, AWordOfAMegabyteTakesSeconds) {
  std::string word;
  while (word.size() < 1 << 20) {
    word += "abacbc";
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_GT(encode(file(), word).size(), word.size() / 3);
  // Quadratic would be hours.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(BpeTokenizer, MetaspaceMarksWords) {
  Json json = file();
  json["model"]["vocab"]["\u2581"] = 20;
  json["model"]["vocab"]["\u2581a"] = 21;
  json["model"]["merges"].push_back({"\u2581", "a"});
  json["pre_tokenizer"] = {{"type", "Metaspace"},
                           {"replacement", "\u2581"},
                           {"prepend_scheme", "first"}};
  EXPECT_THAT(encode(json, "a  a"), ElementsAre(21, 20, 21));
  EXPECT_THAT(encode(json, "a</s>a"), ElementsAre(21, 7, 0));
  json["pre_tokenizer"]["prepend_scheme"] = "always";
  EXPECT_THAT(encode(json, "a</s>a"), ElementsAre(21, 7, 21));
  json["pre_tokenizer"]["prepend_scheme"] = "never";
  EXPECT_THAT(encode(json, "a</s>a"), ElementsAre(0, 7, 0));
  EXPECT_EQ((*parse(json)).decode(std::vector<int32_t>{21, 20, 21}), " a  a");
}

TEST(BpeTokenizer, RemovedAndInvertedSplits) {
  Json split = {{"type", "Split"},
                {"pattern", {{"String", "c"}}},
                {"behavior", "Removed"},
                {"invert", false}};
  EXPECT_THAT(encode(with("/pre_tokenizer", split), "abcab"),
              ElementsAre(3, 3));
  split["invert"] = true;
  EXPECT_THAT(encode(with("/pre_tokenizer", split), "abcab"), ElementsAre(2));
}
