#include "test/runtime/cpu/Conformance.h"

#include <cmath>

using namespace mega;
using reference::HeadShape;
using reference::Values;

namespace {

class HeadTest : public Conformance {
protected:
  /// Labels over twice the shard, so that about half are elsewhere.
  static std::vector<int> labelsFor(const HeadShape &s) {
    std::vector<int> labels;
    for (int64_t t = 0; t < s.tokens; ++t) {
      labels.push_back(t % 7 == 3
                           ? s.ignore
                           : static_cast<int>(t * 97 % (2 * s.vocabulary)));
    }
    return labels;
  }

  void compare(const HeadShape &s, int64_t batch) {
    const int64_t sequence = s.tokens / batch;
    const std::vector<int> ids = labelsFor(s);
    Buffer x = random({batch, sequence, s.hidden}, 1, 5);
    Buffer w = random({s.vocabulary, s.hidden}, 2, 0, 0.3);
    Buffer labels = Buffer::ids({batch, sequence}, ids);
    Buffer max = Buffer::zeros({batch, sequence}), sum = max, target = max;
    Buffer scratch = Buffer::zeros({headScratch(s.tokens, s.vocabulary)});
    Buffer gradScratch = Buffer::zeros(
        {headGradScratch(s.tokens, s.vocabulary, s.hidden, GetParam().type)});
    launch(Kernel::HeadStats, {&x, &w, &labels, &max, &sum, &target, &scratch},
           {s.ignore, s.firstRow, s.wholeRows()}, {s.softcap});
    const auto expected = reference::headStats(s, x.values(), w.values(), ids);
    // A logit is a sum of `hidden` products; exp turns its absolute error
    // into a relative one.
    expectClose(max, expected.max, 32);
    expectClose(target, expected.target, 32);
    expectClose(sum, expected.sum, 128);

    Buffer gradSum = Buffer::random({batch, sequence}, 3);
    Buffer gradTarget = Buffer::random({batch, sequence}, 4);
    Buffer gradX = zeros({batch, sequence, s.hidden}, 7);
    Buffer gradW = Buffer::random({s.vocabulary, s.hidden}, 5);
    const Values before = gradW.values();
    auto grad =
        reference::headStatsGrad(s, x.values(), w.values(), ids, max.values(),
                                 gradSum.values(), gradTarget.values());
    for (size_t i = 0; i < before.size(); ++i) {
      grad.w[i] += before[i];
    }
    launch(Kernel::HeadStatsGrad,
           {&x, &w, &labels, &max, &gradSum, &gradTarget, &gradX, &gradW,
            &gradScratch},
           {s.ignore, s.firstRow, s.wholeRows()}, {s.softcap});
    expectClose(gradX, grad.x, 128);
    expectClose(gradW, grad.w, 128);
  }
};
MEGA_FOR_EVERY_DEVICE_AND_TYPE(HeadTest);

TEST_P(HeadTest, OneTile) {
  compare({.tokens = 111,
           .hidden = 72,
           .vocabulary = 257,
           .ignore = -100,
           .firstRow = 0},
          3);
}

TEST_P(HeadTest, ManyTilesAndASecondShard) {
  compare({.tokens = 602,
           .hidden = 20,
           .vocabulary = 2051,
           .ignore = -100,
           .firstRow = 1000},
          2);
}

TEST_P(HeadTest, SoftcapOfTheLogits) {
  // Logits have a spread of 2.5 and of 1.3.
  compare({.tokens = 111,
           .hidden = 72,
           .vocabulary = 257,
           .ignore = -100,
           .firstRow = 0,
           .softcap = 3},
          3);
  compare({.tokens = 602,
           .hidden = 20,
           .vocabulary = 2051,
           .ignore = -100,
           .firstRow = 1000,
           .softcap = 1},
          2);
}

TEST_P(HeadTest, IgnoredLabelInsideTheVocabulary) {
  compare({.tokens = 111,
           .hidden = 24,
           .vocabulary = 53,
           .ignore = 97,
           .firstRow = 10},
          3);
}

TEST_P(HeadTest, ShardsCombineToTheUnshardedLoss) {
  const HeadShape s = {.tokens = 111,
                       .hidden = 72,
                       .vocabulary = 257,
                       .ignore = -100,
                       .firstRow = 0};
  std::vector<int> ids = labelsFor(s);
  for (int &id : ids) {
    id = id == s.ignore ? id : id % 257;
  }
  Buffer x = random({3, 37, 72}, 1), w = random({257, 72}, 2);
  Buffer labels = Buffer::ids({3, 37}, ids);
  Buffer max = Buffer::zeros({3, 37}), sum = max, target = max;
  Values maxes[2], sums[2], targets[2];
  const int64_t cut[3] = {0, 129, 257};
  for (int shard : {0, 1}) {
    const int64_t rows = cut[shard + 1] - cut[shard];
    Buffer part = zeros({rows, 72});
    const Values all = w.values();
    part.set(Values(all.begin() + cut[shard] * 72,
                    all.begin() + cut[shard + 1] * 72));
    Buffer scratch = Buffer::zeros({111 * rows});
    launch(Kernel::HeadStats,
           {&x, &part, &labels, &max, &sum, &target, &scratch},
           {s.ignore, cut[shard], 257}, {0});
    maxes[shard] = max.values();
    sums[shard] = sum.values();
    targets[shard] = target.values();
  }
  Values global, total, hit;
  Buffer globalMax = Buffer::zeros({3, 37}), localMax = globalMax;
  for (int t = 0; t < 111; ++t) {
    global.push_back(std::max(maxes[0][t], maxes[1][t]));
    hit.push_back(targets[0][t] + targets[1][t]);
  }
  globalMax.set(global);
  total.assign(111, 0.0);
  for (int shard : {0, 1}) {
    localMax.set(maxes[shard]);
    sum.set(sums[shard]);
    launch(Kernel::HeadRescale, {&sum, &localMax, &globalMax, &sum});
    for (int t = 0; t < 111; ++t) {
      total[t] += sum.values()[t];
    }
  }
  sum.set(total);
  target.set(hit);
  Buffer loss = Buffer::zeros({});
  launch(Kernel::HeadLoss, {&globalMax, &sum, &target, &labels, &loss},
         {s.ignore});
  const double expected = reference::headLoss(
      s, reference::headStats(s, x.values(), w.values(), ids), ids);
  EXPECT_NEAR(loss.values()[0], expected, 1e-6 * expected);
}

TEST_P(HeadTest, LossGradientIsZeroWhereIgnored) {
  Buffer seed = Buffer::zeros({}), sum = Buffer::zeros({1, 4});
  seed.set({0.5});
  sum.set({2, 4, 8, 16});
  Buffer labels = Buffer::ids({1, 4}, {1, -100, 3, 0});
  Buffer gradSum = Buffer::zeros({1, 4}), gradTarget = gradSum;
  launch(Kernel::HeadLossGrad, {&seed, &sum, &labels, &gradSum, &gradTarget},
         {-100});
  EXPECT_EQ(gradSum.values(), Values({0.25, 0, 0.0625, 0.03125}));
  EXPECT_EQ(gradTarget.values(), Values({-0.5, 0, -0.5, -0.5}));
}

TEST_P(HeadTest, RescaledGradientMatches) {
  Buffer grad = Buffer::random({3, 37}, 1), local = Buffer::random({3, 37}, 2);
  Buffer global = Buffer::random({3, 37}, 3), out = Buffer::zeros({3, 37});
  Values expected;
  for (int t = 0; t < 111; ++t) {
    expected.push_back(grad.values()[t] *
                       std::exp(local.values()[t] - global.values()[t]));
  }
  launch(Kernel::HeadRescaleGrad, {&grad, &local, &global, &out});
  expectClose(out, expected, 8);
}

TEST_P(HeadTest, CountsValidLabelsAndSeedsTheLoss) {
  Buffer labels = Buffer::ids({2, 3}, {4, -100, 0, -100, -1, 7});
  Buffer count(DataType::I64, {}), seed = Buffer::zeros({});
  launch(Kernel::CountValid, {&labels, &count}, {-100, 0});
  EXPECT_EQ(count.values(), Values({4}));
  launch(Kernel::CountValid, {&labels, &count}, {-100, 1});
  EXPECT_EQ(count.values(), Values({8}));
  launch(Kernel::LossSeed, {&count, &seed}, {}, {2.0});
  EXPECT_EQ(seed.values(), Values({0.25}));
  count.set({0});
  launch(Kernel::LossSeed, {&count, &seed}, {}, {2.0});
  EXPECT_EQ(seed.values(), Values({2.0}));
}

} // namespace
