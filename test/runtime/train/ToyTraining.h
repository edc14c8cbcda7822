//===- ToyTraining.h - The toy plan, with data ------------------*- C++ -*-===//
#ifndef MEGA_TEST_RUNTIME_TRAIN_TOYTRAINING_H
#define MEGA_TEST_RUNTIME_TRAIN_TOYTRAINING_H

#include "runtime/train/Session.h"
#include "test/runtime/data/IndexBytes.h"
#include "test/runtime/plan/ToyPlan.h"

#include <gtest/gtest.h>

namespace mega::test {

/// The toy plan (vocabulary 7, 2 micro-batches of 2 x 3 tokens) and a dataset
/// of 61 tokens, thus 20 samples.
class ToyTraining {
protected:
  explicit ToyTraining(std::unique_ptr<plan::PlanT> toy = toyPlan())
      : plan(load(*toy)) {
    std::vector<int32_t> tokens(61);
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<int32_t>((i * i + 3 * i) % 7);
    }
    writeTokens(prefix(), tokens);
  }

  static LoadedPlan load(const plan::PlanT &toy) {
    auto loaded = loadPlan(packPlan(toy));
    EXPECT_TRUE(loaded.isOk()) << loaded.status().message();
    return std::move(loaded).take();
  }
  std::string prefix() const { return directory.file("text"); }

  std::unique_ptr<Session> session(int threads = 2) {
    worlds.push_back(
        RankWorld::ofThreads(plan.root(), std::chrono::seconds(20)).take());
    auto created = Session::create(plan, *worlds.back(), threads, /*seed=*/7);
    EXPECT_TRUE(created.isOk()) << created.status().message();
    return std::move(created).take();
  }
  BatchLoader loader(const Session &session, bool once = false) const {
    auto opened = session.openData(prefix(), /*seed=*/7, std::nullopt, once);
    EXPECT_TRUE(opened.isOk()) << opened.status().message();
    return std::move(opened).take();
  }

  TemporaryDirectory directory;
  LoadedPlan plan;
  /// Of the sessions, which they outlive.
  std::vector<std::unique_ptr<RankWorld>> worlds;
};

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_TRAIN_TOYTRAINING_H
