#include "runtime/data/BatchLoader.h"

#include "test/runtime/data/IndexBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

using namespace mega;
using namespace mega::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// A dataset whose token i is i.
class BatchLoaderTest : public testing::Test {
protected:
  std::string prefix() const { return directory.file("text"); }

  void write(int32_t tokens) const {
    std::vector<int32_t> values(tokens);
    std::iota(values.begin(), values.end(), 0);
    writeTokens(prefix(), values);
  }

  BatchLoader open(const BatchLoaderOptions &options) const {
    auto opened = BatchLoader::open(prefix(), options);
    EXPECT_TRUE(opened.isOk()) << opened.status().message();
    return std::move(opened).take();
  }

  TemporaryDirectory directory;
};

struct Batch {
  std::vector<int32_t> tokens;
  std::vector<int32_t> labels;
};

Batch fill(const BatchLoader &loader, const BatchLoaderOptions &options,
           int64_t step, int64_t microBatch, int64_t dpRank) {
  const int64_t size = options.microBatchSize * options.sequenceLength;
  Batch batch{std::vector<int32_t>(size, -1), std::vector<int32_t>(size, -1)};
  EXPECT_TRUE(loader
                  .fill(step, microBatch, dpRank, 0,
                        {.tokens = batch.tokens, .labels = batch.labels})
                  .isOk());
  return batch;
}

} // namespace

TEST_F(BatchLoaderTest, LabelsAreTheNextTokens) {
  write(9);
  const BatchLoaderOptions options{
      .sequenceLength = 4, .globalBatchSize = 2, .vocabulary = 9, .once = true};
  const BatchLoader loader = open(options);
  EXPECT_EQ(loader.samples(), 2);
  EXPECT_EQ(loader.microBatches(), 2);
  EXPECT_EQ(loader.stepsPerPass(), 1);
  const Batch batch = fill(loader, options, 0, 1, 0);
  EXPECT_THAT(batch.tokens, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(batch.labels, ElementsAre(5, 6, 7, 8));
}

TEST_F(BatchLoaderTest, RowsFollowTheFormulaForEveryLayout) {
  write(3 * 29 + 1);
  for (int64_t dp : {1, 2, 3}) {
    for (int64_t rows : {1, 2}) {
      const BatchLoaderOptions options{.sequenceLength = 3,
                                       .microBatchSize = rows,
                                       .globalBatchSize = 12,
                                       .dataParallel = dp,
                                       .vocabulary = 1000,
                                       .seed = 5};
      const BatchLoader loader = open(options);
      const SampleOrder order{29, 5};
      for (int64_t step = 0; step < 5; ++step) {
        for (int64_t m = 0; m < loader.microBatches(); ++m) {
          for (int64_t r = 0; r < dp; ++r) {
            const Batch batch = fill(loader, options, step, m, r);
            const int64_t first = step * 12 + m * rows * dp + r * rows;
            EXPECT_EQ(loader.firstRow(step, m, r), first);
            for (int64_t j = 0; j < rows; ++j) {
              EXPECT_EQ(batch.tokens[j * 3], order.sample(first + j) * 3);
            }
          }
        }
      }
    }
  }
}

TEST_F(BatchLoaderTest, IgnoredTokensLoseTheirLabelOnly) {
  writeTokens(prefix(), {7, 1, 7, 2, 7});
  const BatchLoaderOptions options{
      .sequenceLength = 4, .vocabulary = 8, .ignoreToken = 7, .once = true};
  const Batch batch = fill(open(options), options, 0, 0, 0);
  EXPECT_THAT(batch.tokens, ElementsAre(7, 1, 7, 2));
  EXPECT_THAT(batch.labels, ElementsAre(1, -100, 2, -100));
}

TEST_F(BatchLoaderTest, EvaluationPadsPastTheLastSample) {
  write(7 * 2 + 1);
  const BatchLoaderOptions options{.sequenceLength = 2,
                                   .microBatchSize = 2,
                                   .globalBatchSize = 4,
                                   .vocabulary = 15,
                                   .once = true};
  const BatchLoader loader = open(options);
  EXPECT_EQ(loader.stepsPerPass(), 2);
  const Batch batch = fill(loader, options, 1, 1, 0);
  EXPECT_THAT(batch.tokens, ElementsAre(12, 13, 0, 0));
  EXPECT_THAT(batch.labels, ElementsAre(13, 14, -100, -100));
}

TEST_F(BatchLoaderTest, EvaluationTakesASetSmallerThanABatch) {
  write(5);
  const BatchLoaderOptions options{
      .sequenceLength = 4, .globalBatchSize = 8, .vocabulary = 5, .once = true};
  EXPECT_EQ(open(options).samples(), 1);
}

TEST_F(BatchLoaderTest, RefusesADatasetSmallerThanOneBatch) {
  write(16);
  const auto training = BatchLoader::open(
      prefix(), {.sequenceLength = 4, .globalBatchSize = 4, .vocabulary = 16});
  EXPECT_EQ(training.status().code(), Code::BadInput);
  EXPECT_EQ(training.status().message(),
            prefix() + ".bin: a dataset smaller than one batch: 16 tokens make "
                       "3 samples of 4 tokens, at least 4 needed");
  const auto evaluation = BatchLoader::open(
      prefix(), {.sequenceLength = 16, .vocabulary = 16, .once = true});
  EXPECT_THAT(evaluation.status().message(),
              HasSubstr("a dataset smaller than one sample: 16 tokens make 0 "
                        "samples of 16 tokens, at least 1 needed"));
}

TEST_F(BatchLoaderTest, RefusesTokensOutsideTheVocabularyAtOpen) {
  write(20);
  const auto opened =
      BatchLoader::open(prefix(), {.sequenceLength = 4, .vocabulary = 19});
  EXPECT_EQ(opened.status().code(), Code::BadInput);
  EXPECT_THAT(opened.status().message(),
              HasSubstr("token 19 of document 0 (both from 0) is 19, outside "
                        "the vocabulary of 19"));
}

TEST_F(BatchLoaderTest, RefusesOptionsThatContradictEachOther) {
  write(100);
  const auto refused = [&](const BatchLoaderOptions &options) {
    const auto opened = BatchLoader::open(prefix(), options);
    EXPECT_EQ(opened.status().code(), Code::BadInput);
    return opened.status().message();
  };
  EXPECT_THAT(refused({.sequenceLength = 0}),
              HasSubstr("sequence length is 0"));
  EXPECT_THAT(refused({.vocabulary = int64_t{1} << 40}),
              HasSubstr("the vocabulary is 1099511627776"));
  EXPECT_EQ(
      refused({.microBatchSize = 2, .globalBatchSize = 9, .dataParallel = 3}),
      "the global batch of 9 is no multiple of 6 = micro-batch 2 x 3 "
      "data-parallel ranks");
}
