#include "passes/Partition.h"

#include "test/runtime/Exhaustive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <utility>

using namespace mega;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Units = std::vector<PartitionUnit>;
using Begin = std::vector<int64_t>;

/// An embedding, `layers` layers of cost 1 and a head.
Units model(int64_t layers, double embedding = 0, double head = 0) {
  Units units = {{embedding, 'E'}};
  units.insert(units.end(), static_cast<size_t>(layers), {1, 'L'});
  units.push_back({head, 'H'});
  return units;
}

Units layers(const std::vector<double> &costs) {
  Units units;
  for (const double cost : costs) {
    units.push_back({cost, 'L'});
  }
  return units;
}

/// The best cuts by trying all: least maximum, least squares, first in order.
Begin bruteForce(const Units &units, int64_t parts) {
  using Score = std::pair<double, double>; // largest part, squares
  Score bestScore = {std::numeric_limits<double>::infinity(), 0};
  Begin best, begin = {0};
  const auto count = static_cast<int64_t>(units.size());
  const auto visit = [&](auto &&self, Score score) -> void {
    const auto left = parts - static_cast<int64_t>(begin.size()) + 1;
    if (left == 0) {
      if (begin.back() == count && score < bestScore) {
        bestScore = score;
        best = begin;
      }
      return;
    }
    double cost = 0;
    for (int64_t end = begin.back() + 1; end <= count - left + 1; ++end) {
      cost += units[end - 1].cost;
      begin.push_back(end);
      self(self, {std::max(score.first, cost), score.second + cost * cost});
      begin.pop_back();
    }
  };
  visit(visit, {0, 0});
  return best;
}

Begin balanced(const Units &units, int64_t parts) {
  StatusOr<Begin> begin = balance(units, parts);
  EXPECT_TRUE(begin.isOk()) << begin.status().message();
  return begin.isOk() ? std::move(begin).take() : Begin{};
}

Status balanceError(const Units &units, int64_t parts) {
  return balance(units, parts).takeStatus();
}

Status parseError(std::string_view text, const Units &units, int64_t parts) {
  return parseStages(text, units, parts).takeStatus();
}

} // namespace

TEST(Partition, SevenLayers) {
  EXPECT_THAT(balanced(model(7), 2), ElementsAre(0, 4, 9));
  EXPECT_THAT(balanced(model(7), 3), ElementsAre(0, 3, 5, 9));
  EXPECT_THAT(balanced(model(7), 4), ElementsAre(0, 2, 4, 6, 9));
}

TEST(Partition, TenLayers) {
  EXPECT_THAT(balanced(model(10), 3), ElementsAre(0, 4, 7, 12));
}

TEST(Partition, ACostlyHeadHasFewLayersBesideIt) {
  EXPECT_THAT(balanced(model(10, 0.1, 3), 3), ElementsAre(0, 5, 9, 12));
}

TEST(Partition, PartsBelowTheLargestAreEvenAsWell) {
  // One unit alone is the largest; the rest could lie 5 and 1.
  EXPECT_THAT(balanced(layers({1, 1, 1, 1, 1, 1, 6}), 3),
              ElementsAre(0, 3, 6, 7));
}

TEST(Partition, UnitsWithoutCostMakePartsToo) {
  EXPECT_THAT(balanced(layers({0, 0, 0}), 3), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(balanced(layers({5, 0, 0}), 3), ElementsAre(0, 1, 2, 3));
}

TEST(Partition, RoundingOfCostsMovesNoCut) {
  // Sums of tenths differ in their last bits; three parts of four do not.
  EXPECT_THAT(balanced(layers(std::vector<double>(12, 0.1)), 3),
              ElementsAre(0, 4, 8, 12));
  EXPECT_THAT(balanced(layers(std::vector<double>(12, 1e15 / 7)), 3),
              ElementsAre(0, 4, 8, 12));
}

TEST(Partition, EqualsBruteForce) {
  std::mt19937 random(1);
  const int trials = test::sweep(2000, 20000);
  for (int trial = 0; trial < trials; ++trial) {
    const auto count = 1 + static_cast<int64_t>(random() % 10);
    const auto parts = 1 + static_cast<int64_t>(random() % count);
    // Few different costs make ties, many do not; zeros occur in both.
    const unsigned different = trial % 2 == 0 ? 3 : 1000;
    std::vector<double> costs(static_cast<size_t>(count));
    for (double &cost : costs) {
      cost = static_cast<double>(random() % different);
    }
    const Units units = layers(costs);
    ASSERT_EQ(balanced(units, parts), bruteForce(units, parts))
        << "costs " << testing::PrintToString(costs) << ", " << parts
        << " parts";
  }
}

TEST(Partition, IsFastOnTheLargest) {
  std::mt19937 random(1);
  Units units = model(998, 500, 4000);
  for (PartitionUnit &unit : units) {
    unit.cost += static_cast<double>(random() % 3);
  }
  const auto start = std::chrono::steady_clock::now();
  const Begin begin = balanced(units, 128);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(begin.size(), 129U);
  // 5 ms, with room for sanitizers and busy machines.
  EXPECT_LT(took, std::chrono::milliseconds(500));
}

TEST(Partition, NamesTheLargestLegalNumberOfParts) {
  const Status status = balanceError(model(3), 6);
  EXPECT_EQ(status.code(), Code::Failed);
  EXPECT_EQ(status.message(),
            "6 pipeline parts (stages x chunks) need as many units of the "
            "model, which has 5: 1 embedding, 3 layers, 1 head (legal: 1 to 5 "
            "parts)");
  EXPECT_THAT(balanceError(model(3), 0).message(), HasSubstr("1 to 5"));
  EXPECT_FALSE(balanceError({}, 1).isOk());
}

TEST(Partition, RefusesCostsThatAreNone) {
  for (const double cost : {-1.0, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(balanceError(layers({1, cost}), 2).code(), Code::Internal);
  }
}

TEST(ParseStages, PlacesWhatIsWritten) {
  const auto parse = [](std::string_view text) {
    StatusOr<Begin> begin = parseStages(text, model(14), 4);
    EXPECT_TRUE(begin.isOk()) << begin.status().message();
    return begin.isOk() ? std::move(begin).take() : Begin{};
  };
  EXPECT_THAT(parse("E 3L | 4L | 4L | 3L H"), ElementsAre(0, 4, 8, 12, 16));
  EXPECT_THAT(parse("E3L|4L|4L|3LH"), ElementsAre(0, 4, 8, 12, 16));
  EXPECT_THAT(parse(" 1E|L 12L|L|H "), ElementsAre(0, 1, 14, 15, 16));
}

TEST(ParseStages, SaysWhatDoesNotFitTheModel) {
  const auto expect = [](std::string_view text, const char *message) {
    const Status status = parseError(text, model(14), 4);
    EXPECT_EQ(status.code(), Code::Failed) << text;
    EXPECT_EQ(status.message(), message) << text;
  };
  expect("E 10L | L | 2L 3L | H", "part 2 has 5 layers: 16 of 14");
  expect(
      "E 3L | 4L | 4L H | 3L",
      "part 2 has H where the model has L (in order: 1 embedding, 14 layers, "
      "1 head)");
  expect(
      "3L | E 4L | 4L | 3L H",
      "part 0 has L where the model has E (in order: 1 embedding, 14 layers, "
      "1 head)");
  expect("E 3L | 4L | 4L | 3L H H", "part 3 has 2 heads: 2 of 1");
  expect("E | 99999999999999999999L | L | H",
         "part 1 has 1073741824 layers: 1073741824 of 14");
  expect("E 3L | 4L | 7L H",
         "3 parts are written, 4 (stages x chunks) are needed");
  expect("E 3L | 4L | 4L | 2L",
         "the parts hold 14 of the 16 units of the model; without a part: "
         "1 layer, 1 head");
}

TEST(ParseStages, SaysWhatIsNoPart) {
  const auto expect = [](std::string_view text, const char *message) {
    const Status status = parseError(text, model(14), 4);
    EXPECT_EQ(status.code(), Code::Usage) << text;
    EXPECT_EQ(status.message(), message) << text;
  };
  const std::string hint =
      " (a part is written as E, H, L or a count of these as in 3L)";
  expect("E 3L | 4K | 7L H",
         ("unknown token '4K' at character 8" + hint).c_str());
  expect("E 3L | 4L | 7", ("unknown token '7' at character 13" + hint).c_str());
  expect("E 3L | -4L", ("unknown token '-4L' at character 8" + hint).c_str());
  expect("E 3L | 0L", "'0L' at character 8 places nothing");
  expect("E 3L || 4L", "part 1 is empty");
  expect("E 3L | ", "part 1 is empty");
  expect("", "part 0 is empty");
}
