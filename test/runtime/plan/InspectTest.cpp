#include "runtime/plan/Inspect.h"

#include "test/runtime/plan/ToyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace mega;
using testing::HasSubstr;

TEST(Inspect, PrintsWhatAPersonLooksFor) {
  const LoadedPlan plan = loadPlan(packPlan(*toyPlan())).take();
  const std::string text = inspectText(plan);
  EXPECT_THAT(text, HasSubstr("hash        " + plan.hash()));
  EXPECT_THAT(text,
              HasSubstr("inputs      tokens (below 7), labels (below 7)\n"));
  EXPECT_THAT(text, HasSubstr("memory: 5 KiB (5120 bytes)"));
  EXPECT_THAT(text, HasSubstr("parameters: 120 (120)"));
  EXPECT_THAT(text, HasSubstr("h.0.fc.weight .. h.1.fc.weight"));
  EXPECT_THAT(text, HasSubstr("gemm(%0, parameters[140 + 100i], "
                              "saved.layer[128 + 512s + 256f]; 0 1 0)"));
  EXPECT_THAT(text, HasSubstr("layer.backward(carry[0], carry[0]) x2 reverse"));
  EXPECT_THAT(text, HasSubstr("stage 0: 6 actions: begin, forward x2, backward "
                              "x2, end"));
  EXPECT_THAT(text, HasSubstr("lm: 1 * counters[0] / counters[8]"));
}

TEST(Inspect, JsonStatesTheSameFacts) {
  const LoadedPlan plan = loadPlan(packPlan(*toyPlan())).take();
  const auto json = nlohmann::json::parse(inspectJson(plan));
  EXPECT_EQ(json["hash"], plan.hash());
  EXPECT_EQ(json["memory"]["bytes"], 5120);
  EXPECT_EQ(json["memory"]["parts"]["Input"], 512);
  EXPECT_EQ(json["parameter_count"], 120);
  EXPECT_EQ(json["inputs"][1]["name"], "labels");
  EXPECT_EQ(json["inputs"][1]["limit"], 7);
  EXPECT_EQ(json["functions"][1]["launches"][1]["kernel"], "gemm");
  EXPECT_EQ(json["functions"][1]["launches"][1]["integers"]["transpose_b"], 1);
  EXPECT_EQ(json["entry_points"][0]["stages"][0]["actions"], 6);
}

TEST(Inspect, Units) {
  EXPECT_EQ(humanCount(512), "512");
  EXPECT_EQ(humanCount(124439808), "124.4 M");
}
