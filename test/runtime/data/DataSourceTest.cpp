#include "runtime/data/DataSource.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mega;
using testing::HasSubstr;

namespace {

std::string refused(const std::vector<std::string> &values) {
  const auto parsed = DataSource::parse("--data", values);
  EXPECT_EQ(parsed.status().code(), Code::Usage);
  return parsed.status().message();
}

} // namespace

TEST(DataSource, IsOnePrefixOrPairs) {
  const auto one = DataSource::parse("--data", std::vector<std::string>{"a"});
  ASSERT_TRUE(one.isOk());
  EXPECT_EQ(one->datasets[0].prefix, "a");
  const auto pairs = DataSource::parse(
      "--data", std::vector<std::string>{"0.5", "a", "2e1", "b/c"});
  ASSERT_TRUE(pairs.isOk()) << pairs.status().message();
  ASSERT_EQ(pairs->datasets.size(), 2u);
  EXPECT_EQ(pairs->datasets[1].weight, 20);
  EXPECT_EQ(pairs->datasets[1].prefix, "b/c");
}

TEST(DataSource, NamesWhatIsWrongAndTheFix) {
  EXPECT_EQ(refused({"0.7"}), "--data 0.7 is a weight without a PREFIX (a "
                              "dataset of that name is ./0.7)");
  EXPECT_EQ(refused({"1", "a", "b"}),
            "--data 1 a b: 3 values, expected one PREFIX or pairs of weight "
            "and PREFIX: W1 PREFIX1 W2 PREFIX2 ...");
  EXPECT_THAT(refused({"a", "b"}),
              HasSubstr("a is not a number, several datasets need a weight"));
  EXPECT_THAT(refused({"a", "1"}), HasSubstr("a is not a number, the weight "
                                             "stands before its PREFIX"));
  for (const char *weight : {"0", "-1", "nan", "inf", "1e999"}) {
    EXPECT_EQ(refused({"1", "a", weight, "b"}),
              fmt::format("--data {0} b: the weight {0} is not a finite number "
                          "above 0; leave the dataset out if it is not to be "
                          "read",
                          weight));
  }
  EXPECT_THAT(refused({"1", "a", "2", "3"}),
              HasSubstr("3 is a number where a PREFIX should stand"));
  EXPECT_EQ(refused({"0.5", "a", "0.25", "a"}),
            "--data: a is there twice, with weights 0.5 and 0.25: give it once "
            "with weight 0.75");
}
