#include "runtime/data/Split.h"

#include "test/runtime/data/IndexBytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

using namespace mega;
using namespace mega::test;
using testing::HasSubstr;

namespace {

/// A dataset with documents of these lengths, one sequence each.
IndexedDataset dataset(const std::string &prefix,
                       const std::vector<int32_t> &lengths) {
  IndexBytes index;
  index.lengths = lengths;
  index.offsets.clear();
  index.documents = {0};
  int64_t tokens = 0;
  for (const int32_t length : lengths) {
    index.offsets.push_back(2 * tokens);
    tokens += length;
    index.documents.push_back(std::ssize(index.offsets));
  }
  writeDataset(prefix, index, raw(std::vector<uint16_t>(tokens, 1)));
  return IndexedDataset::open(prefix).take();
}

Split split(const std::string &text) { return Split::parse(text).take(); }

} // namespace

TEST(Split, CutsAtTheNearestDocumentBoundary) {
  const TemporaryDirectory directory;
  const IndexedDataset data =
      dataset(directory.file("a"), {10, 0, 7, 30, 1, 1, 0, 40, 11});
  for (const char *text :
       {"969,30,1", "1,1,1", "0.5,0.25,0.25", "80,10,10", "1,0,0", "1,0,3"}) {
    const Split subject = split(text);
    int64_t next = 0;
    double share = 0;
    std::array<double, 3> weights{};
    ASSERT_EQ(
        std::sscanf(text, "%lf,%lf,%lf", &weights[0], &weights[1], &weights[2]),
        3);
    for (const Part part : {Part::Train, Part::Valid, Part::Test}) {
      const auto [first, last] = subject.documents(data, part);
      // Every document is in exactly one part.
      EXPECT_EQ(first, next) << text;
      EXPECT_LE(first, last) << text;
      next = last;
      share += weights[static_cast<int>(part)];
      const double target = share / (weights[0] + weights[1] + weights[2]) *
                            static_cast<double>(data.tokens());
      const auto off = [&](int64_t document) {
        return std::abs(static_cast<double>(data.documentStart(document)) -
                        target);
      };
      for (int64_t other = 0; other <= data.documents(); ++other) {
        EXPECT_LE(off(last), off(other)) << text << " " << other;
      }
      if (!subject.has(part)) {
        EXPECT_EQ(first, last) << text;
      }
    }
    EXPECT_EQ(next, data.documents());
  }
}

TEST(Split, RefusesAnythingButThreeNumbers) {
  for (const char *text : {"", "1", "1,2", "1,2,3,4", "1,2,x", "1,-2,3",
                           "0,1,1", "nan,1,1", "inf,0,0", "1, 2,3", "1,2,3 "}) {
    const auto parsed = Split::parse(text);
    EXPECT_EQ(parsed.status().code(), Code::Usage) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr("such as 969,30,1"));
  }
  EXPECT_EQ(parsePart("dev").status().message(),
            "--part dev is none of train, valid, test");
}
