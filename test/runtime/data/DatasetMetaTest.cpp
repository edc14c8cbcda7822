#include "runtime/data/DatasetMeta.h"

#include "runtime/data/BatchLoader.h"
#include "runtime/data/IndexedDatasetWriter.h"
#include "test/runtime/data/IndexBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

using namespace mega;
using namespace mega::test;
using testing::HasSubstr;

namespace {

class DatasetMetaTest : public testing::Test {
protected:
  std::string prefix() const { return directory.file("text"); }

  void write(const std::vector<int32_t> &tokens) const {
    auto writer = IndexedDatasetWriter::create(prefix(), 1000).take();
    ASSERT_TRUE(writer.append(tokens).isOk());
    ASSERT_TRUE(writer.finish().isOk());
  }

  StatusOr<std::optional<DatasetMeta>> load() const {
    return DatasetMeta::load(IndexedDataset::open(prefix()).take());
  }

  Status open(int64_t vocabulary) const {
    return BatchLoader::open(prefix(),
                             {.sequenceLength = 2, .vocabulary = vocabulary})
        .takeStatus();
  }

  TemporaryDirectory directory;
};

} // namespace

TEST_F(DatasetMetaTest, TheWriterLeavesWhatAScanFinds) {
  write({7, 3, 999, 5});
  const auto meta = load();
  ASSERT_TRUE(meta.isOk()) << meta.status().message();
  ASSERT_TRUE(meta->has_value());
  EXPECT_EQ((*meta)->lowest, 3);
  EXPECT_EQ((*meta)->highest, 999);
  const DatasetMeta scanned =
      DatasetMeta::scan(IndexedDataset::open(prefix()).take());
  EXPECT_EQ(scanned.lowest, 3);
  EXPECT_EQ(scanned.highest, 999);
}

TEST_F(DatasetMetaTest, IsNothingIfThereIsNone) {
  writeTokens(prefix(), {1, 2, 3});
  const auto meta = load();
  ASSERT_TRUE(meta.isOk());
  EXPECT_FALSE(meta->has_value());
}

TEST_F(DatasetMetaTest, SparesTheScanAndNothingElse) {
  write({1, 2, 3, 4, 5});
  EXPECT_TRUE(open(6).isOk());
  EXPECT_THAT(open(5).message(), HasSubstr("token 4 of document 0"));
  // Changed under the same size: opened without a scan, and the batch says so.
  writeFile(prefix() + ".bin", raw<uint16_t>({1, 2, 900, 4, 5}));
  const BatchLoaderOptions options{
      .sequenceLength = 4, .vocabulary = 6, .once = true};
  const BatchLoader loader = BatchLoader::open(prefix(), options).take();
  std::vector<int32_t> tokens(4), labels(4);
  const Status filled = loader.fill(0, 0, 0, 0, {tokens, labels, {}, {}});
  EXPECT_EQ(filled.code(), Code::BadInput);
  EXPECT_THAT(filled.message(),
              HasSubstr("token 900 among those from 0 on is outside the "
                        "vocabulary of 6"));
  // The last label as well.
  writeFile(prefix() + ".bin", raw<uint16_t>({1, 2, 3, 4, 6}));
  EXPECT_FALSE(loader.fill(0, 0, 0, 0, {tokens, labels, {}, {}}).isOk());
}

TEST_F(DatasetMetaTest, RefusesOneOfOtherFiles) {
  write({1, 2, 3, 4});
  const std::string old = readFile(prefix() + ".meta");
  write({1, 2, 3});
  writeFile(prefix() + ".meta", old);
  const Status stale = open(10);
  EXPECT_EQ(stale.code(), Code::BadInput);
  EXPECT_THAT(stale.message(), HasSubstr("tokens is 4, theirs is 3"));
  EXPECT_THAT(stale.message(),
              HasSubstr("make it again with mega-data index " + prefix()));
  // Same sizes, other documents.
  IndexBytes index;
  index.documents = {0, 2, 3};
  writeDataset(prefix(), index, sixTokens());
  const auto dataset = IndexedDataset::open(prefix()).take();
  ASSERT_TRUE(DatasetMeta::scan(dataset).write(dataset).isOk());
  index.documents = {0, 1, 3};
  writeDataset(prefix(), index, sixTokens());
  EXPECT_THAT(load().status().message(), HasSubstr("idx_xxh3 is"));
}

TEST_F(DatasetMetaTest, RefusesDamageAtAnyByte) {
  write({1, 2, 3, 4});
  const std::string whole = readFile(prefix() + ".meta");
  for (size_t length = 0; length + 1 < whole.size(); ++length) {
    writeFile(prefix() + ".meta", whole.substr(0, length));
    EXPECT_EQ(load().status().code(), Code::BadInput) << length;
  }
  for (const char *text : {"[]", "{}", "{\"version\": 2}", "[[[[[[", "null"}) {
    writeFile(prefix() + ".meta", text);
    EXPECT_EQ(load().status().code(), Code::BadInput) << text;
  }
  writeFile(prefix() + ".meta", std::string(10000, ' '));
  EXPECT_THAT(load().status().message(), HasSubstr("too long"));
}

TEST_F(DatasetMetaTest, ARewrittenDatasetLosesTheOldOneFirst) {
  write({1, 2, 3, 4});
  // The same sizes and index, so only the writer can know.
  write({9, 9, 9, 9});
  EXPECT_EQ((*load())->highest, 9);
}
