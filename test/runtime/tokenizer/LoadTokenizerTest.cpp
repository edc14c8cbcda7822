#include "runtime/tokenizer/LoadTokenizer.h"

#include "runtime/tokenizer/ByteTokenizer.h"
#include "test/runtime/TemporaryDirectory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mega;
using namespace mega::test;
using testing::HasSubstr;

namespace {

constexpr const char *kFile = R"({
  "added_tokens": [{"id": 5, "content": "<stop>", "special": true}],
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})";

std::unique_ptr<Tokenizer> load(const TemporaryDirectory &directory) {
  writeFile(directory.file("t.json"), kFile);
  auto loaded = loadTokenizer(directory.file("t.json"));
  EXPECT_TRUE(loaded.isOk()) << loaded.status().message();
  return std::move(loaded).take();
}

} // namespace

TEST(LoadTokenizer, TellsFilesByContent) {
  const TemporaryDirectory directory;
  EXPECT_EQ(load(directory)->kind(), "bpe");
  EXPECT_EQ((*loadTokenizer("byte"))->kind(), "byte");
  writeFile(directory.file("none"), "no tokenizer");
  const auto neither = loadTokenizer(directory.file("none"));
  EXPECT_EQ(neither.status().code(), Code::BadInput);
  EXPECT_THAT(neither.status().message(),
              HasSubstr("neither a tokenizer.json nor a sentencepiece model"));
  EXPECT_EQ(loadTokenizer(directory.file("missing")).status().code(), Code::Io);
  EXPECT_THAT(loadTokenizer(directory.file(".")).status().message(),
              HasSubstr("name tokenizer.json or tokenizer.model in it"));
}

TEST(LoadTokenizer, ChoosesTheEndOfDocument) {
  const TemporaryDirectory directory;
  const auto tokenizer = load(directory);
  EXPECT_EQ(*chooseEndOfDocument(*tokenizer, "<stop>"), 5);
  EXPECT_EQ(*chooseEndOfDocument(*tokenizer, "1"), 1);
  EXPECT_EQ(*chooseEndOfDocument(ByteTokenizer(), ""), 256);
  const auto refused = [&](const std::string &wanted) {
    const auto chosen = chooseEndOfDocument(*tokenizer, wanted);
    EXPECT_EQ(chosen.status().code(), Code::Usage);
    return chosen.status().message();
  };
  EXPECT_THAT(refused(""), HasSubstr("give --eod TOKEN or --eod ID (its "
                                     "special tokens: <stop>)"));
  EXPECT_THAT(refused("<eos>"), HasSubstr("--eod <eos>: the tokenizer has no "
                                          "such token"));
  EXPECT_THAT(refused("6"), HasSubstr("ids of the tokenizer are 0 to 5"));
  EXPECT_THAT(refused("99999999999"), HasSubstr("ids of the tokenizer"));
}
