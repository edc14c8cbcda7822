#include "runtime/data/BatchLoader.h"
#include "test/runtime/data/IndexBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

using namespace mega;
using namespace mega::test;
using testing::HasSubstr;

namespace {

class SampleStreamTest : public testing::Test {
protected:
  /// A dataset of one document whose token i is first + i.
  std::string write(const std::string &name, int32_t first,
                    int32_t tokens) const {
    std::vector<int32_t> values(tokens);
    std::iota(values.begin(), values.end(), first);
    writeTokens(directory.file(name), values);
    return directory.file(name);
  }

  DataSource blend() const {
    DataSource source;
    source.datasets = {{0.5, write("a", 0, 3 * 17 + 1)},
                       {0.3, write("b", 1000, 3 * 5 + 2)},
                       {0.2, write("c", 2000, 3 * 11 + 3)}};
    return source;
  }

  /// Tokens and labels of `rows` rows of the run, in the order of the rows.
  std::vector<std::vector<int32_t>> rows(const DataSource &source,
                                         int64_t microBatch, int64_t dp,
                                         int64_t rows) const {
    const BatchLoaderOptions options{.sequenceLength = 3,
                                     .microBatchSize = microBatch,
                                     .globalBatchSize = 12,
                                     .dataParallel = dp,
                                     .vocabulary = 10000,
                                     .seed = 77};
    auto opened = BatchLoader::open(source, options);
    EXPECT_TRUE(opened.isOk()) << opened.status().message();
    const BatchLoader loader = std::move(opened).take();
    std::vector<std::vector<int32_t>> result(rows);
    std::vector<int32_t> tokens(microBatch * 3), labels(microBatch * 3);
    for (int64_t step = 0; step < rows / 12; ++step) {
      for (int64_t m = 0; m < loader.microBatches(); ++m) {
        for (int64_t r = 0; r < dp; ++r) {
          EXPECT_TRUE(
              loader.fill(step, m, r, 0, {tokens, labels, {}, {}}).isOk());
          for (int64_t j = 0; j < microBatch; ++j) {
            auto &row = result[loader.firstRow(step, m, r) + j];
            row.assign(tokens.begin() + j * 3, tokens.begin() + j * 3 + 3);
            row.push_back(labels[j * 3 + 2]);
          }
        }
      }
    }
    return result;
  }

  TemporaryDirectory directory;
};

} // namespace

TEST_F(SampleStreamTest, IsTheSameForEveryLayout) {
  // Three epochs and more: of 17 samples; of a blend of 17, 5 and 11.
  for (const DataSource &source :
       {DataSource(write("a", 0, 3 * 17 + 1)), blend()}) {
    const int64_t count = source.datasets.size() == 1 ? 60 : 144;
    const auto expected = rows(source, 1, 1, count);
    for (const int64_t dp : {1, 2, 3, 4, 6, 12}) {
      for (const int64_t microBatch : {1, 2, 3, 4, 6, 12}) {
        if (12 % (dp * microBatch) == 0) {
          EXPECT_EQ(rows(source, microBatch, dp, count), expected)
              << dp << " " << microBatch;
        }
      }
    }
  }
}

TEST_F(SampleStreamTest, EveryDatasetOfABlendRunsThroughItsEpochs) {
  const DataSource source = blend();
  const SampleStream stream =
      SampleStream::open(source, {.sequenceLength = 3, .seed = 5}).take();
  const std::vector<int64_t> samples = {17, 5, 11};
  EXPECT_EQ(stream.samples(), 33);
  std::vector<std::vector<int64_t>> read(3);
  for (int64_t row = 0; row < 5000; ++row) {
    const auto sample = *stream.at(row);
    read[sample.dataset].push_back(sample.sample);
    EXPECT_EQ(sample.firstToken, 3 * sample.sample);
  }
  EXPECT_THAT(read[0].size(),
              testing::AllOf(testing::Ge(2499u), testing::Le(2501u)));
  EXPECT_THAT(read[1].size(),
              testing::AllOf(testing::Ge(1499u), testing::Le(1501u)));
  std::set<std::vector<int64_t>> orders;
  for (size_t d = 0; d < 3; ++d) {
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      const auto begin = read[d].begin() + epoch * samples[d];
      const std::vector<int64_t> order(begin, begin + samples[d]);
      EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(),
                static_cast<size_t>(samples[d]));
      orders.insert(order);
    }
  }
  EXPECT_EQ(orders.size(), 9u);
}

TEST_F(SampleStreamTest, EvaluationReadsEachSampleOfEachOnce) {
  const SampleStream stream =
      SampleStream::open(blend(), {.sequenceLength = 3, .once = true}).take();
  std::map<int32_t, int64_t> next;
  for (int64_t row = 0; row < 33; ++row) {
    const auto sample = stream.at(row);
    ASSERT_TRUE(sample.has_value());
    EXPECT_EQ(sample->sample, next[sample->dataset]++);
  }
  EXPECT_FALSE(stream.at(33).has_value());
  EXPECT_EQ(next, (std::map<int32_t, int64_t>{{0, 17}, {1, 5}, {2, 11}}));
}

TEST_F(SampleStreamTest, PartsOfASplitShareNoToken) {
  IndexBytes index;
  index.code = 4;
  index.lengths = {20, 20, 20, 20, 10, 10};
  index.offsets = {0, 80, 160, 240, 320, 360};
  index.documents = {0, 1, 2, 3, 4, 5, 6};
  std::vector<int32_t> values(100);
  std::iota(values.begin(), values.end(), 0);
  writeDataset(directory.file("d"), index, raw(values));
  DataSource source(directory.file("d"));
  source.split = Split::parse("80,10,10").take();
  std::set<int64_t> seen;
  for (const auto &[part, first, last] :
       {std::tuple{Part::Train, 0, 80}, std::tuple{Part::Valid, 80, 90},
        std::tuple{Part::Test, 90, 100}}) {
    source.part = part;
    const SampleStream stream =
        SampleStream::open(source, {.sequenceLength = 3, .once = true}).take();
    EXPECT_EQ(stream.samples(), (last - first - 1) / 3);
    for (int64_t row = 0; row < stream.samples(); ++row) {
      const int64_t token = stream.at(row)->firstToken;
      EXPECT_GE(token, first);
      // Its last label included.
      EXPECT_LT(token + 3, last);
      EXPECT_TRUE(seen.insert(token).second);
    }
  }
}

TEST_F(SampleStreamTest, NamesAnEmptyPart) {
  DataSource source(write("a", 0, 100));
  source.split = Split::parse("969,30,1").take();
  source.part = Part::Valid;
  const auto opened = SampleStream::open(source, {.sequenceLength = 3});
  EXPECT_EQ(opened.status().code(), Code::BadInput);
  EXPECT_EQ(opened.status().message(),
            directory.file("a") +
                ".bin (the valid part of --split 969,30,1: 0 of 1 documents): "
                "a dataset smaller than one sample: 0 tokens make 0 samples "
                "of 3 tokens, at least 1 needed");
}

TEST_F(SampleStreamTest, DescribesSharesAndEpochs) {
  const SampleStream stream =
      SampleStream::open(blend(), {.sequenceLength = 3}).take();
  EXPECT_THAT(stream.describe(1000), HasSubstr("b, 5 samples, 60.00 epochs\n"));
  EXPECT_THAT(stream.describe(1000), HasSubstr("data: 0.5000 of the rows"));
}

TEST_F(SampleStreamTest, PackedRowsMatchABruteForceReference) {
  // Empty documents, documents of one token, boundaries at row boundaries.
  IndexBytes index;
  index.code = 4;
  index.lengths = {1, 4, 0, 7, 0, 0, 1, 1, 3, 12, 0, 5};
  index.documents = {0, 0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 12};
  index.offsets.clear();
  std::vector<int32_t> documentOf;
  int64_t tokens = 0;
  for (size_t i = 0; i < index.lengths.size(); ++i) {
    index.offsets.push_back(4 * tokens);
    tokens += index.lengths[i];
    documentOf.insert(documentOf.end(), index.lengths[i],
                      static_cast<int32_t>(i));
  }
  writeDataset(directory.file("p"), index,
               raw(std::vector<int32_t>(tokens, 5)));
  for (const int64_t length : {1, 3, 4, 5, 11, 33}) {
    const BatchLoaderOptions options{.sequenceLength = length,
                                     .vocabulary = 6,
                                     .once = true,
                                     .packed = true};
    const BatchLoader loader =
        BatchLoader::open(directory.file("p"), options).take();
    for (int64_t row = 0; row < loader.samples(); ++row) {
      std::vector<int32_t> out[4];
      for (auto &vector : out) {
        vector.assign(length, -9);
      }
      ASSERT_TRUE(
          loader.fill(row, 0, 0, 0, {out[0], out[1], out[2], out[3]}).isOk());
      int32_t position = -1;
      int32_t segment = 0;
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = row * length + i;
        const bool begins = i > 0 && documentOf[at] != documentOf[at - 1];
        position = begins ? 0 : position + 1;
        segment = begins ? static_cast<int32_t>(i) : segment;
        EXPECT_EQ(out[2][i], position) << length << " " << at;
        EXPECT_EQ(out[3][i], segment) << length << " " << at;
      }
      // Either alone.
      std::vector<int32_t> alone(length, -9);
      ASSERT_TRUE(
          loader.fill(row, 0, 0, 0, {out[0], out[1], {}, alone}).isOk());
      EXPECT_EQ(alone, out[3]);
    }
  }
}
