#include "test/plan-mutants/Mutants.h"

#include "test/runtime/plan/ToyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

using namespace mega;

namespace {

std::vector<std::byte> bytesOf(const Mutant &mutant, const plan::PlanT &plan) {
  plan::PlanT changed(plan);
  mutant.apply(changed);
  return packPlan(changed);
}

} // namespace

TEST(Mutants, AreManyDifferentAndNamed) {
  const std::unique_ptr<plan::PlanT> toy = toyPlan();
  const std::vector<std::byte> original = packPlan(*toy);
  std::set<std::string> names;
  std::set<std::string> kinds;
  for (const Mutant &mutant : mutantsOf(*toy)) {
    EXPECT_TRUE(names.insert(mutant.name()).second) << mutant.name();
    EXPECT_NE(bytesOf(mutant, *toy), original) << mutant.name();
    kinds.insert(mutant.kind);
  }
  EXPECT_GT(names.size(), 400u);
  EXPECT_GT(kinds.size(), 100u);
  // The plan they were made from is as it was.
  EXPECT_EQ(packPlan(*toy), original);
}

TEST(Mutants, AreTheSameEveryTime) {
  const std::unique_ptr<plan::PlanT> toy = toyPlan();
  const std::vector<Mutant> first = mutantsOf(*toy);
  const std::vector<Mutant> second = mutantsOf(*toy);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].name(), second[i].name());
    EXPECT_EQ(bytesOf(first[i], *toy), bytesOf(second[i], *toy));
  }
}

TEST(Mutants, OfTheToyAreRefused) {
  const std::unique_ptr<plan::PlanT> toy = toyPlan();
  for (const Mutant &mutant : mutantsOf(*toy)) {
    plan::PlanT changed(*toy);
    mutant.apply(changed);
    EXPECT_EQ(judge(changed).code(), Code::BadInput) << mutant.name();
  }
}

/// The list is spread over its sites, first one included.
TEST(Mutants, AreSampledEvenly) {
  MutantList list;
  for (int i = 0; i < 100; ++i) {
    list.add("kind", std::to_string(i), [](auto &) {});
  }
  list.add("other", "only", [](auto &) {});
  const std::vector<Mutant> all = list.take();
  ASSERT_EQ(all.size(), MutantList::kMaxSites + 1);
  EXPECT_EQ(all[0].site, "0");
  EXPECT_EQ(all[1].site, "4");
  EXPECT_EQ(all[23].site, "95");
  EXPECT_EQ(all[24].name(), "other: only");
}

/// Doing nothing is seen to survive: the judge is not deaf.
TEST(Mutants, WouldSurviveIfTheyDidNothing) {
  EXPECT_TRUE(judge(*toyPlan()).isOk());
}
