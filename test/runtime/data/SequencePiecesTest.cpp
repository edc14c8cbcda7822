// The pieces of the ranks of cp, put together, are the rows.
#include "runtime/data/BatchLoader.h"
#include "test/runtime/data/IndexBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace mega;
using namespace mega::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Ids = std::vector<int32_t>;

struct Batch {
  Ids tokens, labels, positions, segments;
};

class SequencePiecesTest : public testing::Test {
protected:
  static constexpr int64_t kTokens = 24 * 13 + 1, kRows = 2;

  /// Documents of these lengths, over and over; token i of the dataset is
  /// first + i.
  std::string write(const std::string &name,
                    const std::vector<int32_t> &lengths, int32_t first) const {
    IndexBytes index;
    index.code = 4;
    index.lengths.clear();
    index.documents = {0};
    index.offsets.clear();
    for (int64_t tokens = 0; tokens < kTokens;) {
      const auto length = std::min<int64_t>(
          lengths[index.lengths.size() % lengths.size()], kTokens - tokens);
      index.offsets.push_back(4 * tokens);
      index.lengths.push_back(static_cast<int32_t>(length));
      index.documents.push_back(std::ssize(index.lengths));
      tokens += length;
    }
    Ids ids(kTokens);
    std::iota(ids.begin(), ids.end(), first);
    writeDataset(directory.file(name), index, raw(ids));
    return directory.file(name);
  }

  static BatchLoaderOptions options(int64_t cp, SequenceOrder order,
                                    bool once = false) {
    return {.sequenceLength = 24,
            .microBatchSize = kRows,
            .globalBatchSize = kRows,
            .vocabulary = 1000,
            .seed = 4,
            .once = once,
            .packed = true,
            .contextParallel = cp,
            .order = order};
  }

  static BatchLoader open(const std::string &prefix,
                          const BatchLoaderOptions &options) {
    auto opened = BatchLoader::open(prefix, options);
    EXPECT_TRUE(opened.isOk()) << opened.status().message();
    return std::move(opened).take();
  }

  static Batch fill(const BatchLoader &loader, int64_t cp, int64_t step,
                    int64_t rank) {
    const int64_t all = kRows * 24;
    Batch b{Ids(all / cp, -9), Ids(all / cp, -9), Ids(all, -9), Ids(all, -9)};
    const Status filled = loader.fill(step, 0, 0, rank,
                                      {.tokens = b.tokens,
                                       .labels = b.labels,
                                       .positions = b.positions,
                                       .segments = b.segments});
    EXPECT_TRUE(filled.isOk()) << filled.message();
    return b;
  }

  /// The pieces one after another in each row: the order of balanced rows.
  static Batch together(const BatchLoader &loader, int64_t cp, int64_t step) {
    const int64_t piece = 24 / cp;
    Batch all;
    all.tokens.resize(kRows * 24);
    all.labels = all.tokens;
    for (int64_t rank = 0; rank < cp; ++rank) {
      const Batch b = fill(loader, cp, step, rank);
      for (int64_t row = 0; row < kRows; ++row) {
        for (const auto &[from, to] :
             {std::pair(&b.tokens, &all.tokens), {&b.labels, &all.labels}}) {
          std::copy_n(from->begin() + row * piece, piece,
                      to->begin() + row * 24 + rank * piece);
        }
      }
      if (rank != 0) {
        EXPECT_EQ(b.positions, all.positions);
        EXPECT_EQ(b.segments, all.segments);
      }
      all.positions = b.positions;
      all.segments = b.segments;
    }
    return all;
  }

  TemporaryDirectory directory;
};

TEST_F(SequencePiecesTest, OfAllRanksAreTheRow) {
  const std::string prefix = write("p", {5, 1, 9, 30, 2}, 0);
  const BatchLoader whole = open(prefix, options(1, SequenceOrder::Contiguous));
  for (const int64_t cp : {1, 2, 3, 4}) {
    for (const SequenceOrder order :
         {SequenceOrder::Contiguous, SequenceOrder::Zigzag}) {
      const BatchLoader loader = open(prefix, options(cp, order));
      for (int64_t step = 0; step < 4; ++step) {
        const Batch expected = fill(whole, 1, step, 0);
        for (int64_t rank = 0; rank < cp; ++rank) {
          const Batch b = fill(loader, cp, step, rank);
          Ids tokens, labels;
          for (int64_t row = 0; row < kRows; ++row) {
            const bool zigzag = order == SequenceOrder::Zigzag;
            const int64_t run = zigzag ? 12 / cp : 24 / cp;
            std::vector<int64_t> begins = {rank * run};
            if (zigzag) {
              begins.push_back(24 - (rank + 1) * run);
            }
            for (const int64_t begin : begins) {
              const auto at = row * 24 + begin;
              tokens.insert(tokens.end(), expected.tokens.begin() + at,
                            expected.tokens.begin() + at + run);
              labels.insert(labels.end(), expected.labels.begin() + at,
                            expected.labels.begin() + at + run);
            }
          }
          EXPECT_EQ(b.tokens, tokens);
          EXPECT_EQ(b.labels, labels);
          EXPECT_EQ(b.positions, expected.positions);
          EXPECT_EQ(b.segments, expected.segments);
        }
      }
    }
  }
}

TEST_F(SequencePiecesTest, OfBalancedRowsArePermutationsOfThem) {
  const std::string prefix = write("p", {5, 1, 9, 30, 2}, 0);
  const BatchLoader whole = open(prefix, options(1, SequenceOrder::Contiguous));
  int moved = 0;
  for (const int64_t cp : {1, 2, 3, 4, 24}) {
    const BatchLoader loader =
        open(prefix, options(cp, SequenceOrder::Balanced));
    for (int64_t step = 0; step < 6; ++step) {
      const Batch expected = fill(whole, 1, step, 0);
      const Batch b = together(loader, cp, step);
      moved += b.tokens != expected.tokens ? 1 : 0;
      for (int64_t row = 0; row < kRows; ++row) {
        const int64_t at = row * 24;
        Ids places(24);
        for (int64_t i = 0; i < 24; ++i) {
          const int32_t place = b.positions[at + i] + b.segments[at + i];
          places[i] = place;
          ASSERT_TRUE(place >= 0 && place < 24);
          // Every token keeps its label and its description.
          EXPECT_EQ(b.tokens[at + i], expected.tokens[at + place]);
          EXPECT_EQ(b.labels[at + i], expected.labels[at + place]);
          EXPECT_EQ(b.positions[at + i], expected.positions[at + place]);
          EXPECT_EQ(b.segments[at + i], expected.segments[at + place]);
        }
        std::ranges::sort(places);
        Ids all(24);
        std::iota(all.begin(), all.end(), 0);
        EXPECT_EQ(places, all);
      }
    }
  }
  EXPECT_GT(moved, 0);
}

TEST_F(SequencePiecesTest, ArePlacedByTheLengthsOfDocumentsAlone) {
  const std::string one = write("one", {5, 1, 9, 30, 2}, 0);
  const std::string other = write("other", {5, 1, 9, 30, 2}, 500);
  const BatchLoaderOptions balanced = options(4, SequenceOrder::Balanced);
  const BatchLoader a = open(one, balanced), b = open(other, balanced);
  for (int64_t step = 0; step < 6; ++step) {
    const Batch first = together(a, 4, step), second = together(b, 4, step);
    EXPECT_EQ(first.positions, second.positions);
    EXPECT_EQ(first.segments, second.segments);
    EXPECT_NE(first.tokens, second.tokens);
  }
}

TEST_F(SequencePiecesTest, RowsThatAreNotPackedAreOneDocument) {
  const std::string prefix = write("p", {5, 1, 9}, 0);
  BatchLoaderOptions o = options(2, SequenceOrder::Zigzag);
  o.packed = false;
  const Batch b = fill(open(prefix, o), 2, 0, 1);
  Ids positions(48);
  for (int64_t i = 0; i < 48; ++i) {
    positions[i] = static_cast<int32_t>(i % 24);
  }
  EXPECT_EQ(b.positions, positions);
  EXPECT_EQ(b.segments, Ids(48, 0));
  // A balanced row is permuted, and still one document.
  o.order = SequenceOrder::Balanced;
  o.contextParallel = 4;
  const Batch balanced = fill(open(prefix, o), 4, 0, 0);
  EXPECT_EQ(balanced.segments, Ids(48, 0));
  Ids sorted(balanced.positions.begin(), balanced.positions.begin() + 24);
  std::ranges::sort(sorted);
  EXPECT_TRUE(std::equal(sorted.begin(), sorted.end(), positions.begin()));
}

TEST_F(SequencePiecesTest, PaddingHasNoLabels) {
  // 13 rows of one pass: the second of the last step is padding.
  const std::string prefix = write("p", {5, 1, 9, 30, 2}, 1);
  for (const SequenceOrder order :
       {SequenceOrder::Contiguous, SequenceOrder::Zigzag,
        SequenceOrder::Balanced}) {
    const BatchLoader loader = open(prefix, options(3, order, /*once=*/true));
    EXPECT_EQ(loader.stepsPerPass(), 7);
    Ids places;
    for (int64_t rank = 0; rank < 3; ++rank) {
      const Batch b = fill(loader, 3, 6, rank);
      for (int64_t i = 0; i < 8; ++i) {
        EXPECT_NE(b.tokens[i], 0);
        EXPECT_EQ(b.labels[i], b.tokens[i] + 1);
        EXPECT_EQ(b.tokens[8 + i], 0);
        EXPECT_EQ(b.labels[8 + i], kIgnoredLabel);
      }
      places.assign(b.positions.begin() + 24, b.positions.end());
      EXPECT_EQ(Ids(b.segments.begin() + 24, b.segments.end()), Ids(24, 0));
    }
    std::ranges::sort(places);
    Ids all(24);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(places, all);
  }
}

TEST_F(SequencePiecesTest, IgnoredTokensLoseTheirLabelInEveryPiece) {
  const std::string prefix = write("p", {40}, 0);
  for (const SequenceOrder order :
       {SequenceOrder::Contiguous, SequenceOrder::Zigzag,
        SequenceOrder::Balanced}) {
    BatchLoaderOptions o = options(4, order, /*once=*/true);
    // The label of the last token of the first row.
    o.ignoreToken = 24;
    int64_t ignored = 0;
    const BatchLoader loader = open(prefix, o);
    for (int64_t rank = 0; rank < 4; ++rank) {
      const Batch b = fill(loader, 4, 0, rank);
      for (size_t i = 0; i < b.tokens.size(); ++i) {
        const bool is = b.tokens[i] == 23;
        ignored += is ? 1 : 0;
        EXPECT_EQ(b.labels[i], is ? kIgnoredLabel : b.tokens[i] + 1);
      }
    }
    EXPECT_EQ(ignored, 1);
  }
}

TEST_F(SequencePiecesTest, RefusesLengthsThatDoNotDivide) {
  const std::string prefix = write("p", {5}, 0);
  const auto refused = [&](int64_t cp, SequenceOrder order) {
    const auto opened = BatchLoader::open(prefix, options(cp, order));
    return opened.isOk() ? "" : opened.status().message();
  };
  EXPECT_EQ(refused(5, SequenceOrder::Contiguous),
            "the sequence length: 24 does not divide into 5 pieces (nearest: "
            "20, 25)");
  EXPECT_EQ(refused(8, SequenceOrder::Balanced), "");
  EXPECT_EQ(refused(8, SequenceOrder::Zigzag),
            "the sequence length: 24 does not divide into the two runs each of "
            "8 pieces in zigzag (nearest: 16, 32)");
  EXPECT_EQ(refused(25, SequenceOrder::Contiguous),
            "the sequence length: 24 does not divide into 25 pieces (nearest: "
            "25)");
  EXPECT_THAT(refused(0, SequenceOrder::Contiguous),
              HasSubstr("the number of context-parallel ranks is 0"));
}

} // namespace
