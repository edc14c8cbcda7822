#include "runtime/data/IndexedDataset.h"

#include "test/runtime/Exhaustive.h"
#include "test/runtime/data/IndexBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

using namespace mega;
using namespace mega::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

class IndexedDatasetTest : public testing::Test {
protected:
  std::string prefix() const { return directory.file("text"); }

  StatusOr<IndexedDataset> open(const IndexBytes &index,
                                std::string_view bin) const {
    writeDataset(prefix(), index, bin);
    return IndexedDataset::open(prefix());
  }

  /// Expects BadInput that names a file of the dataset and says `what`.
  void refuses(const IndexBytes &index, std::string_view bin,
               const std::string &what) const {
    const auto dataset = open(index, bin);
    EXPECT_EQ(dataset.status().code(), Code::BadInput) << what;
    EXPECT_THAT(dataset.status().message(),
                AllOf(HasSubstr(prefix()), HasSubstr(what)));
  }

  TemporaryDirectory directory;
};

} // namespace

TEST_F(IndexedDatasetTest, ReadsTokensAndDocuments) {
  auto opened = open({}, sixTokens());
  ASSERT_TRUE(opened.isOk()) << opened.status().message();
  const IndexedDataset dataset = std::move(opened).take();
  EXPECT_EQ(dataset.type(), TokenType::U16);
  EXPECT_EQ(dataset.tokens(), 6);
  EXPECT_EQ(dataset.sequences(), 3);
  EXPECT_EQ(dataset.documents(), 2);
  EXPECT_EQ(dataset.documentStart(0), 0);
  EXPECT_EQ(dataset.documentStart(1), 4);
  EXPECT_EQ(dataset.documentStart(2), 6);
  EXPECT_EQ(dataset.documentOf(3), 0);
  EXPECT_EQ(dataset.documentOf(4), 1);
  EXPECT_EQ(dataset.token(5), 65535);
  int32_t tokens[4];
  dataset.read(2, tokens);
  EXPECT_THAT(tokens, testing::ElementsAre(12, 13, 14, 65535));
}

TEST_F(IndexedDatasetTest, TrustsTheTypeCode) {
  struct Case {
    uint8_t code;
    std::string bin;
    std::vector<int64_t> tokens;
  };
  const Case cases[] = {
      {1, raw<uint8_t>({1, 255}), {1, 255}},
      {2, raw<int8_t>({1, 127}), {1, 127}},
      {3, raw<int16_t>({1, 32767}), {1, 32767}},
      {4, raw<int32_t>({1, 1 << 30}), {1, 1 << 30}},
      {5, raw<int64_t>({1, int64_t{1} << 40}), {1, int64_t{1} << 40}},
      {8, raw<uint16_t>({1, 65535}), {1, 65535}}};
  for (const Case &item : cases) {
    IndexBytes index;
    index.code = item.code;
    index.lengths = {2};
    index.offsets = {0};
    index.documents = {0, 1};
    const auto dataset = open(index, item.bin);
    ASSERT_TRUE(dataset.isOk()) << dataset.status().message();
    EXPECT_EQ(dataset->token(0), item.tokens[0]);
    EXPECT_EQ(dataset->token(1), item.tokens[1]);
  }
}

TEST_F(IndexedDatasetTest, RefusesFloatAndUnknownTypes) {
  for (int code : {0, 6, 7, 9, 255}) {
    IndexBytes index;
    index.code = static_cast<uint8_t>(code);
    refuses(index, sixTokens(), fmt::format("token type code {}", code));
  }
}

TEST_F(IndexedDatasetTest, HoldsEmptyDocumentsAndNoneAtAll) {
  IndexBytes index;
  index.documents = {0, 0, 2, 2, 3, 3};
  const auto dataset = open(index, sixTokens());
  ASSERT_TRUE(dataset.isOk()) << dataset.status().message();
  EXPECT_EQ(dataset->documents(), 5);
  EXPECT_EQ(dataset->documentOf(0), 1);
  EXPECT_EQ(dataset->documentOf(5), 3);

  index.lengths.clear();
  index.offsets.clear();
  index.documents = {0};
  const auto empty = open(index, "");
  ASSERT_TRUE(empty.isOk()) << empty.status().message();
  EXPECT_EQ(empty->tokens(), 0);
  EXPECT_EQ(empty->documents(), 0);
}

TEST_F(IndexedDatasetTest, NamesTheMissingFile) {
  const auto neither = IndexedDataset::open(prefix());
  EXPECT_EQ(neither.status().code(), Code::Io);
  EXPECT_EQ(neither.status().message(),
            "cannot open " + prefix() + ".idx: No such file or directory");
  writeFile(prefix() + ".idx", IndexBytes().bytes());
  EXPECT_THAT(IndexedDataset::open(prefix()).status().message(),
              HasSubstr("text.bin: No such file"));
}

TEST_F(IndexedDatasetTest, RefusesAnIndexCutAtAnyByte) {
  const std::string whole = IndexBytes().bytes();
  writeFile(prefix() + ".bin", sixTokens());
  for (size_t length = 0; length < whole.size(); ++length) {
    writeFile(prefix() + ".idx", whole.substr(0, length));
    EXPECT_EQ(IndexedDataset::open(prefix()).status().code(), Code::BadInput)
        << length;
  }
}

TEST_F(IndexedDatasetTest, NeverCrashesOnAFlippedByte) {
  const std::string whole = IndexBytes().bytes();
  writeFile(prefix() + ".bin", sixTokens());
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int flip = 1; flip < 256; flip += test::sweep(127, 1)) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      writeFile(prefix() + ".idx", damaged);
      const auto dataset = IndexedDataset::open(prefix());
      if (!dataset.isOk()) {
        EXPECT_EQ(dataset.status().code(), Code::BadInput) << at;
        continue;
      }
      // Only a code of the same width, or another split into documents.
      EXPECT_EQ(dataset->tokens(), 6) << at;
      for (int64_t i = 0; i < 6; ++i) {
        (void)dataset->token(i);
        EXPECT_LT(dataset->documentOf(i), 2);
      }
    }
  }
}

TEST_F(IndexedDatasetTest, RefusesAnIndexWithBytesAfterItsEnd) {
  IndexBytes index;
  index.modes = {0, 0};
  refuses(index, sixTokens(), "damaged or cut short");
}

TEST_F(IndexedDatasetTest, TakesModesOnlyIfAllAreText) {
  IndexBytes index;
  index.modes = {0, 0, 0};
  EXPECT_TRUE(open(index, sixTokens()).isOk());
  index.modes = {0, 1, 0};
  refuses(index, sixTokens(), "sequence 1 has mode 1");
}

TEST_F(IndexedDatasetTest, RefusesForeignFilesAndVersions) {
  IndexBytes index;
  index.magic = std::string("PARQUET\0\0", 9);
  refuses(index, sixTokens(), "not a Megatron index");
  index = {};
  index.version = 2;
  refuses(index, sixTokens(), "version 2, this program reads version 1");
}

TEST_F(IndexedDatasetTest, RefusesCountsThatOverflow) {
  for (int64_t count :
       {int64_t{4}, int64_t{1} << 32, int64_t{1} << 61, int64_t{1} << 62,
        std::numeric_limits<int64_t>::max()}) {
    IndexBytes index;
    index.sequenceCount = count;
    refuses(index, sixTokens(), fmt::format("{} sequences", count));
    index = {};
    index.documentCount = count;
    refuses(index, sixTokens(), fmt::format("{} document indices", count));
  }
  // 12 S + 8 D wraps to the true size in 64 bits.
  IndexBytes index;
  index.sequenceCount = 3 + (int64_t{1} << 62);
  refuses(index, sixTokens(), "take more than 2^64");
}

TEST_F(IndexedDatasetTest, RefusesNoDocumentIndices) {
  IndexBytes index;
  index.documents = {};
  refuses(index, sixTokens(), "no document indices");
}

TEST_F(IndexedDatasetTest, RefusesNegativeLengths) {
  IndexBytes index;
  index.lengths = {3, -1, 2};
  refuses(index, sixTokens(), "sequence 1 has -1 tokens");
}

TEST_F(IndexedDatasetTest, RefusesOffsetsThatDoNotFollowEachOther) {
  for (int64_t offset : {int64_t{7}, int64_t{4}, int64_t{-6}, int64_t{1} << 62,
                         std::numeric_limits<int64_t>::min()}) {
    IndexBytes index;
    index.offsets[1] = offset;
    refuses(index, sixTokens(),
            fmt::format("sequence 1 is at byte {} of the .bin", offset));
  }
}

TEST_F(IndexedDatasetTest, RefusesABinOfAnotherSize) {
  const std::string bin = sixTokens();
  for (size_t size : {size_t{0}, size_t{11}, size_t{10}}) {
    refuses({}, bin.substr(0, size),
            fmt::format("text.bin: {} bytes, but its index {}.idx describes 12",
                        size, prefix()));
  }
  refuses({}, bin + "xx", "14 bytes");
}

TEST_F(IndexedDatasetTest, RefusesDocumentIndicesOutOfOrder) {
  IndexBytes index;
  index.documents = {1, 2, 3};
  refuses(index, sixTokens(), "document index 0 is 1, expected 0 to 0");
  index.documents = {0, 3, 2, 3};
  refuses(index, sixTokens(), "document index 2 is 2, expected 3 to 3");
  index.documents = {0, -1, 3};
  refuses(index, sixTokens(), "document index 1 is -1");
  index.documents = {0, 4, 3};
  refuses(index, sixTokens(), "document index 1 is 4");
  index.documents = {0, 2};
  refuses(index, sixTokens(), "last document index is 2, expected 3");
}

TEST_F(IndexedDatasetTest, FindsTheTokenOutsideTheVocabulary) {
  const auto dataset = open({}, sixTokens());
  ASSERT_TRUE(dataset.isOk());
  EXPECT_TRUE(dataset->checkVocabulary(65536).isOk());
  const Status status = dataset->checkVocabulary(65535);
  EXPECT_EQ(status.code(), Code::BadInput);
  EXPECT_EQ(status.message(),
            prefix() + ".bin: token 1 of document 1 (both from 0) is 65535, "
                       "outside the vocabulary of 65535: tokenize with the "
                       "model's tokenizer");
}

TEST_F(IndexedDatasetTest, FindsNegativeTokensFarIn) {
  std::vector<int32_t> tokens(10'000, 5);
  tokens[9'000] = -1;
  writeTokens(prefix(), tokens);
  const auto dataset = IndexedDataset::open(prefix());
  ASSERT_TRUE(dataset.isOk());
  EXPECT_THAT(dataset->checkVocabulary(100).message(),
              HasSubstr("token 9000 of document 0 (both from 0) is -1"));
}
