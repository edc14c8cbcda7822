#include "runtime/data/TokenizeFiles.h"

#include "runtime/data/DescribeDataset.h"
#include "runtime/tokenizer/ByteTokenizer.h"
#include "test/runtime/data/IndexBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

using namespace mega;
using namespace mega::test;
using testing::HasSubstr;

namespace {

class TokenizeFilesTest : public testing::Test {
protected:
  std::string input(std::string_view name, std::string_view text) const {
    writeFile(directory.file(name), text);
    return directory.file(name);
  }

  /// The documents of the dataset, 256 as `$`.
  std::vector<std::string> documents() const {
    const auto dataset = IndexedDataset::open(directory.file("out"));
    EXPECT_TRUE(dataset.isOk()) << dataset.status().message();
    std::vector<std::string> result;
    for (int64_t i = 0; i < dataset->documents(); ++i) {
      result.emplace_back();
      for (int64_t j = dataset->documentStart(i);
           j < dataset->documentStart(i + 1); ++j) {
        const int64_t token = dataset->token(j);
        result.back() += token == 256 ? '$' : static_cast<char>(token);
      }
    }
    return result;
  }

  StatusOr<TokenizeCounts> tokenize(const std::vector<std::string> &inputs,
                                    const std::string &separator = "") const {
    TokenizeOptions options;
    options.inputs = inputs;
    options.prefix = directory.file("out");
    options.documentSeparator = separator;
    options.endOfDocument = ByteTokenizer::kEndOfDocument;
    return tokenizeFiles(options, ByteTokenizer());
  }

  TemporaryDirectory directory;
};

} // namespace

TEST_F(TokenizeFilesTest, AFileIsADocument) {
  const auto counts =
      tokenize({input("a", "hello"), input("b", "x\ny\n"), input("c", "")});
  ASSERT_TRUE(counts.isOk()) << counts.status().message();
  EXPECT_EQ(counts->documents, 2);
  EXPECT_EQ(counts->tokens, 11);
  EXPECT_EQ(counts->emptyDocuments, 1);
  EXPECT_EQ(counts->type, TokenType::U16);
  EXPECT_THAT(documents(), testing::ElementsAre("hello$", "x\ny\n$"));
}

TEST_F(TokenizeFilesTest, ASeparatorEndsADocument) {
  const auto counts = tokenize(
      {input("a", "one||two|three||||four|"), input("b", "five||")}, "||");
  ASSERT_TRUE(counts.isOk()) << counts.status().message();
  EXPECT_EQ(counts->emptyDocuments, 1);
  EXPECT_THAT(documents(),
              testing::ElementsAre("one$", "two|three$", "four|$", "five$"));
}

TEST_F(TokenizeFilesTest, ASeparatorMayStraddleTwoPieces) {
  // Pieces end at multiples of 256 KiB.
  for (size_t offset = 0; offset < 5; ++offset) {
    const std::string first((size_t{1} << 18) - offset, 'a');
    ASSERT_TRUE(tokenize({input("a", first + "<|>" + "b")}, "<|>").isOk());
    EXPECT_EQ(documents(), (std::vector<std::string>{first + "$", "b$"}));
  }
}

TEST_F(TokenizeFilesTest, FailureLeavesNothingBehind) {
  const auto missing = tokenize({input("a", "text"), directory.file("b")});
  EXPECT_EQ(missing.status().code(), Code::Io);
  EXPECT_EQ(missing.status().message(), "cannot open " + directory.file("b") +
                                            ": No such file or directory");
  const auto empty = tokenize({input("a", "")});
  EXPECT_EQ(empty.status().code(), Code::BadInput);
  EXPECT_EQ(empty.status().message(), "no text in " + directory.file("a"));
  EXPECT_EQ(directory.count(), 1);
}

TEST_F(TokenizeFilesTest, AFolderIsNoText) {
  EXPECT_EQ(tokenize({directory.path}).status().message(),
            "cannot read " + directory.path + ": Is a directory");
}

TEST_F(TokenizeFilesTest, TheDescriptionShowsTheText) {
  ASSERT_TRUE(tokenize({input("a", "a \"q\"\n\x1b"), input("b", "b")}).isOk());
  const auto dataset = IndexedDataset::open(directory.file("out"));
  ASSERT_TRUE(dataset.isOk());
  EXPECT_EQ(describeDataset(*dataset, 8),
            "token type    u16\n"
            "documents     2\n"
            "sequences     2\n"
            "tokens        10\n"
            "lengths       2 to 8 tokens, 5.0 on average\n"
            "token ids     10 to 256\n"
            "first tokens  97 32 34 113 34 10 27 256\n"
            "as bytes      \"a \\\"q\\\"\\n\\x1b\"\n");
}

TEST_F(TokenizeFilesTest, TheDescriptionOfNothingIsShort) {
  IndexBytes index;
  index.lengths.clear();
  index.offsets.clear();
  index.documents = {0};
  writeDataset(directory.file("out"), index, "");
  const auto dataset = IndexedDataset::open(directory.file("out"));
  ASSERT_TRUE(dataset.isOk());
  EXPECT_EQ(describeDataset(*dataset), "token type    u16\n"
                                       "documents     0\n"
                                       "sequences     0\n"
                                       "tokens        0\n");
}

namespace {

/// Ids are the lengths of words; refuses the word `bad`. Not in pieces.
class WordTokenizer : public Tokenizer {
public:
  std::string_view kind() const override { return "word"; }
  int64_t vocabulary() const override { return 70000; }
  Status encode(std::string_view text,
                std::vector<int32_t> &ids) const override {
    if (text.find("bad") != std::string_view::npos) {
      return badInput("a bad word");
    }
    int32_t length = 0;
    for (const char c : std::string(text) + " ") {
      if (c != ' ') {
        ++length;
      } else if (length > 0) {
        ids.push_back(std::exchange(length, 0));
      }
    }
    return Status::ok();
  }
  std::string decode(std::span<const int32_t>) const override { return ""; }
  std::optional<int32_t> findToken(std::string_view) const override {
    return std::nullopt;
  }
  std::string token(int32_t) const override { return ""; }
  std::optional<int32_t> endOfDocument() const override { return 0; }
  std::vector<std::string> specialTokens() const override { return {}; }
};

} // namespace

TEST_F(TokenizeFilesTest, JsonLinesAreDocuments) {
  const auto counts =
      tokenize({input("a.jsonl", "{\"text\": \"on\\u0065\"}\n\n"
                                 "{\"id\": [{}], \"text\": \"two\\n\"}\r\n"
                                 "{\"text\": \"\"}\n{\"text\": \"three\"}")});
  ASSERT_TRUE(counts.isOk()) << counts.status().message();
  EXPECT_EQ(counts->emptyDocuments, 1);
  EXPECT_THAT(documents(), testing::ElementsAre("one$", "two\n$", "three$"));
}

TEST_F(TokenizeFilesTest, BadJsonLinesAreNamedByLine) {
  const auto refused = [&](std::string_view text) {
    const auto counts = tokenize({input("a.jsonl", text)});
    EXPECT_EQ(counts.status().code(), Code::BadInput) << text;
    return counts.status().message();
  };
  EXPECT_THAT(refused("{\"text\": \"a\"}\n{\"text\": "),
              HasSubstr("a.jsonl:2: not valid JSON"));
  EXPECT_THAT(refused("{\"body\": \"a\", \"n\": 1}"),
              HasSubstr("a.jsonl:1: no key text; choose the text with "
                        "--json-key (keys with text: body)"));
  EXPECT_THAT(refused("{\"text\": 1}"), HasSubstr("no text under the key"));
  EXPECT_THAT(refused("[1]"), HasSubstr("expected an object"));
  EXPECT_THAT(refused(std::string(1000, '[')), HasSubstr("nested 1000 deep"));
  EXPECT_EQ(tokenize({input("a.jsonl", "{}")}, "|").status().code(),
            Code::Usage);
}

TEST_F(TokenizeFilesTest, WorkersDoNotChangeTheOutput) {
  std::string text;
  for (int i = 0; i < 40000; ++i) {
    text += std::string(1 + i * 7919 % 97, 'x') + (i % 3 == 0 ? "|" : " ");
  }
  const std::string path = input("a", text);
  std::string expected;
  for (const int workers : {1, 2, 5}) {
    TokenizeOptions options;
    options.inputs = {path};
    options.prefix = directory.file("out");
    options.documentSeparator = "|";
    options.workers = workers;
    const auto counts = tokenizeFiles(options, WordTokenizer());
    ASSERT_TRUE(counts.isOk()) << counts.status().message();
    EXPECT_EQ(counts->tokens, 40000 + counts->documents);
    EXPECT_EQ(counts->type, TokenType::I32);
    const std::string bytes = readFile(directory.file("out.bin")) +
                              readFile(directory.file("out.idx"));
    EXPECT_TRUE(expected.empty() || bytes == expected) << workers;
    expected = bytes;
  }
}

TEST_F(TokenizeFilesTest, NamesTheDocumentTheTokenizerRefuses) {
  TokenizeOptions options;
  options.inputs = {input("a", "good|bad|good")};
  options.prefix = directory.file("out");
  options.documentSeparator = "|";
  const auto counts = tokenizeFiles(options, WordTokenizer());
  EXPECT_EQ(counts.status().message(),
            directory.file("a") + ": document 1 (from 0): a bad word");
  EXPECT_FALSE(std::filesystem::exists(directory.file("out.bin")));
}
