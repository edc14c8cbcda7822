#include "runtime/data/IndexedDatasetWriter.h"

#include "test/runtime/data/IndexBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

using namespace mega;
using namespace mega::test;
using testing::HasSubstr;

namespace {

IndexedDatasetWriter writer(const std::string &prefix, int64_t vocabulary) {
  auto created = IndexedDatasetWriter::create(prefix, vocabulary);
  EXPECT_TRUE(created.isOk()) << created.status().message();
  return std::move(created).take();
}

Status add(IndexedDatasetWriter &writer, std::vector<int32_t> tokens) {
  MEGA_RETURN_IF_ERROR(writer.append(tokens));
  writer.endDocument();
  return Status::ok();
}

} // namespace

TEST(IndexedDatasetWriter, WritesMegatronsBytes) {
  TemporaryDirectory directory;
  const std::string prefix = directory.file("text");
  auto out = writer(prefix, 257);
  ASSERT_TRUE(add(out, {10, 11, 12}).isOk());
  ASSERT_TRUE(add(out, {13}).isOk());
  ASSERT_TRUE(out.append(std::vector<int32_t>{14, 256}).isOk());
  EXPECT_FALSE(std::filesystem::exists(prefix + ".bin"));
  ASSERT_TRUE(out.finish().isOk());

  IndexBytes expected;
  expected.documents = {0, 1, 2, 3};
  EXPECT_EQ(readFile(prefix + ".idx"), expected.bytes());
  EXPECT_EQ(readFile(prefix + ".bin"),
            raw<uint16_t>({10, 11, 12, 13, 14, 256}));
  EXPECT_EQ(directory.count(), 3);
  EXPECT_TRUE(IndexedDataset::open(prefix).isOk());
}

TEST(IndexedDatasetWriter, PicksTheTypeByMegatronsThreshold) {
  TemporaryDirectory directory;
  EXPECT_EQ(writer(directory.file("a"), 65499).type(), TokenType::U16);
  EXPECT_EQ(writer(directory.file("a"), 65500).type(), TokenType::I32);
  EXPECT_EQ(directory.count(), 0);
}

TEST(IndexedDatasetWriter, RoundTripsLongAndEmptyDocuments) {
  for (int64_t vocabulary : {int64_t{60'000}, int64_t{100'000}}) {
    TemporaryDirectory directory;
    std::vector<int32_t> tokens(50'000);
    std::iota(tokens.begin(), tokens.end(), 7);
    auto out = writer(directory.file("a"), vocabulary);
    ASSERT_TRUE(add(out, {}).isOk());
    ASSERT_TRUE(add(out, tokens).isOk());
    ASSERT_TRUE(add(out, {}).isOk());
    ASSERT_TRUE(out.finish().isOk());
    auto dataset = IndexedDataset::open(directory.file("a"));
    ASSERT_TRUE(dataset.isOk()) << dataset.status().message();
    EXPECT_EQ(dataset->documents(), 3);
    std::vector<int32_t> read(tokens.size());
    dataset->read(0, read);
    EXPECT_EQ(read, tokens);
  }
}

TEST(IndexedDatasetWriter, LeavesTheOldFilesWhenAbandoned) {
  TemporaryDirectory directory;
  writeDataset(directory.file("a"), {}, sixTokens());
  {
    auto out = writer(directory.file("a"), 257);
    ASSERT_TRUE(add(out, {1, 2, 3}).isOk());
    EXPECT_EQ(directory.count(), 4);
  }
  EXPECT_EQ(directory.count(), 2);
  EXPECT_EQ(readFile(directory.file("a.bin")), sixTokens());
}

TEST(IndexedDatasetWriter, RefusesTokensOutsideTheVocabulary) {
  TemporaryDirectory directory;
  auto out = writer(directory.file("a"), 257);
  ASSERT_TRUE(add(out, {1}).isOk());
  ASSERT_TRUE(out.append(std::vector<int32_t>{1}).isOk());
  const Status status = out.append(std::vector<int32_t>{2, 257});
  EXPECT_EQ(status.code(), Code::BadInput);
  EXPECT_EQ(status.message(), directory.file("a.bin") +
                                  ": token 2 of document 1 (both from 0) is "
                                  "257, outside the vocabulary of 257");
  EXPECT_EQ(out.append(std::vector<int32_t>{-1}).code(), Code::BadInput);
}

TEST(IndexedDatasetWriter, ReportsAFolderThatIsMissing) {
  const auto created = IndexedDatasetWriter::create("/nonexistent/a", 257);
  EXPECT_EQ(created.status().code(), Code::Io);
  EXPECT_THAT(created.status().message(), HasSubstr("/nonexistent/a.bin.tmp-"));
}

TEST(IndexedDatasetWriter, LeavesNoBinWithoutItsIndex) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.file("a.idx"));
  {
    auto out = writer(directory.file("a"), 257);
    ASSERT_TRUE(add(out, {1, 2, 3}).isOk());
    EXPECT_EQ(out.finish().code(), Code::Io);
  }
  EXPECT_EQ(directory.count(), 1);
}

TEST(IndexedDatasetWriter, EveryIdOfALargeVocabularyIsReadBackEqual) {
  TemporaryDirectory directory;
  for (const int32_t vocabulary : {65499, 65500, 65536, 70000}) {
    std::vector<int32_t> ids(vocabulary);
    std::iota(ids.begin(), ids.end(), 0);
    auto subject = writer(directory.file("v"), vocabulary);
    ASSERT_TRUE(subject.append(ids).isOk());
    // One more is none of the vocabulary's.
    EXPECT_EQ(subject.append(std::span(&vocabulary, 1)).code(), Code::BadInput);
    ASSERT_TRUE(subject.finish().isOk());
    const auto dataset = IndexedDataset::open(directory.file("v"));
    ASSERT_TRUE(dataset.isOk()) << dataset.status().message();
    EXPECT_EQ(dataset->type(),
              vocabulary < 65500 ? TokenType::U16 : TokenType::I32);
    std::vector<int32_t> found(vocabulary);
    dataset->read(0, found);
    EXPECT_EQ(found, ids) << vocabulary;
    EXPECT_TRUE(dataset->checkVocabulary(vocabulary).isOk());
    EXPECT_FALSE(dataset->checkVocabulary(vocabulary - 1).isOk());
  }
}
