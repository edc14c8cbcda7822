#include "passes/Placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mega;
using testing::HasSubstr;

namespace {

const std::vector<std::string> kBlocks = {"embed", "layer", "layer",
                                          "layer", "layer", "head"};

/// Two stages, each with a part of three applications.
plan::PlanT twoStages() {
  plan::PlanT whole;
  for (uint32_t s = 0; s < 2; ++s) {
    auto stage = std::make_unique<plan::PlanT>();
    stage->stage = s;
    const auto function = [&](const std::string &name) {
      stage->functions.push_back(std::make_unique<plan::FunctionT>());
      stage->functions.back()->name = name;
      return static_cast<uint32_t>(stage->functions.size() - 1);
    };
    for (const std::string entryName : {"train", "eval"}) {
      auto entry = std::make_unique<plan::EntryPointT>();
      entry->name = entryName;
      entry->stages.push_back(std::make_unique<plan::StageT>());
      for (const bool backward : {false, true}) {
        if (backward && entryName == "eval") {
          continue;
        }
        auto program = std::make_unique<plan::ProgramT>();
        program->name = entryName + (backward ? ".backward" : ".forward");
        program->kind =
            backward ? plan::ActionKind::Backward : plan::ActionKind::Forward;
        program->part = s;
        const std::string suffix = entryName == "eval" ? ".eval"
                                   : backward          ? ".backward"
                                                       : ".forward";
        const uint32_t layer = function("layer" + suffix);
        const uint32_t end = function((s == 0 ? "embed" : "head") + suffix);
        const uint32_t loss = function("loss.lm");
        program->calls = {
            plan::Call(layer, 2, s == 0 ? 1 : 3, 0, 0, 0, backward),
            plan::Call(end, 1, s == 0 ? 0 : 5, 0, 0, 0, 0)};
        if ((s == 0) != backward) {
          std::swap(program->calls[0], program->calls[1]);
        } else if (s == 1 && !backward) {
          program->calls.emplace_back(loss, 1, 0, 0, 0, 0, 0);
        }
        const auto number = static_cast<uint32_t>(stage->programs.size());
        stage->programs.push_back(std::move(program));
        for (uint32_t m = 0; m < 2; ++m) {
          entry->stages.front()->actions.emplace_back(number, m, 0, 0);
        }
      }
      stage->entry_points.push_back(std::move(entry));
    }
    whole.stages.push_back(std::move(stage));
  }
  return whole;
}

} // namespace

TEST(Placement, OnceAndInOrder) {
  const plan::PlanT whole = twoStages();
  EXPECT_TRUE(verifyPlacement(whole, kBlocks).isOk())
      << verifyPlacement(whole, kBlocks).message();
}

TEST(Placement, AnApplicationIsOnNoStage) {
  plan::PlanT whole = twoStages();
  whole.stages[0]->programs[0]->calls[1].mutate_count(1);
  EXPECT_THAT(
      verifyPlacement(whole, kBlocks).message(),
      HasSubstr("stage 1: train.forward: it runs application 3 of block "
                "layer, expected 2 of block layer"));
}

TEST(Placement, AnApplicationIsOnTwoStages) {
  plan::PlanT whole = twoStages();
  plan::Call &call = whole.stages[1]->programs[2]->calls[0];
  call.mutate_first_application(2);
  call.mutate_count(3);
  EXPECT_THAT(verifyPlacement(whole, kBlocks).message(),
              HasSubstr("stage 1: eval.forward: it runs application 2"));
}

TEST(Placement, BackwardInTheOrderOfTheForward) {
  plan::PlanT whole = twoStages();
  whole.stages[1]->programs[1]->calls[1].mutate_reverse(0);
  EXPECT_THAT(verifyPlacement(whole, kBlocks).message(),
              HasSubstr("stage 1: train.backward: it runs application 3 of "
                        "block layer, expected 4 of block layer"));
}

TEST(Placement, AnotherBlock) {
  EXPECT_THAT(
      verifyPlacement(twoStages(),
                      std::vector<std::string>{"embed", "layer", "other",
                                               "layer", "layer", "head"})
          .message(),
      HasSubstr("application 2 of block layer, expected 2 of block "
                "other"));
}

TEST(Placement, TheLastIsMissing) {
  std::vector<std::string> more = kBlocks;
  more.emplace_back("extra");
  EXPECT_THAT(verifyPlacement(twoStages(), more).message(),
              HasSubstr("application 6 of block extra is on no stage"));
}
