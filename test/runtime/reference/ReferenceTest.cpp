//===- ReferenceTest.cpp - The references against central differences -----===//
#include "test/runtime/reference/Reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

using namespace mega;
using namespace mega::reference;

namespace {

Values randomValues(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Values values(n);
  for (double &value : values) {
    value = normal(generator);
  }
  return values;
}

double dot(const Values &a, const Values &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/// `gradient` is that of `f` at x: a difference over 2h errs by h^2 f''' and by
/// 1e-16 f / h, both far below the bound.
void expectGradient(const std::function<double(const Values &)> &f, Values x,
                    const Values &gradient) {
  ASSERT_EQ(x.size(), gradient.size());
  const double h = 1e-5;
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    x[i] = at + h;
    const double above = f(x);
    x[i] = at - h;
    const double below = f(x);
    x[i] = at;
    EXPECT_NEAR((above - below) / (2 * h), gradient[i], 1e-7)
        << "element " << i;
  }
}

TEST(Reference, LayerNormGradIsTheDerivative) {
  const Values x = randomValues(4 * 7, 1), gamma = randomValues(7, 2);
  const Values beta = randomValues(7, 3), y = randomValues(4 * 7, 4);
  const NormGrad grad = layerNormGrad(y, x, gamma, 1e-3);
  expectGradient(
      [&](const Values &x) {
        return dot(y, layerNorm(x, gamma, beta, 1e-3).y);
      },
      x, grad.x);
  expectGradient(
      [&](const Values &g) { return dot(y, layerNorm(x, g, beta, 1e-3).y); },
      gamma, grad.gamma);
  expectGradient(
      [&](const Values &b) { return dot(y, layerNorm(x, gamma, b, 1e-3).y); },
      beta, grad.beta);
}

TEST(Reference, RmsNormGradIsTheDerivative) {
  const Values x = randomValues(4 * 7, 1), gamma = randomValues(7, 2);
  const Values y = randomValues(4 * 7, 4);
  const NormGrad grad = rmsNormGrad(y, x, gamma, 1e-3, 1.0);
  expectGradient(
      [&](const Values &x) { return dot(y, rmsNorm(x, gamma, 1e-3, 1.0).y); },
      x, grad.x);
  expectGradient(
      [&](const Values &g) { return dot(y, rmsNorm(x, g, 1e-3, 1.0).y); },
      gamma, grad.gamma);
}

TEST(Reference, ActivationSlopesAreDerivatives) {
  for (double x = -6; x <= 6; x += 0.37) {
    for (GateKind kind :
         {GateKind::Silu, GateKind::GeluTanh, GateKind::GeluErf}) {
      expectGradient([&](const Values &v) { return gate(kind, v[0]); }, {x},
                     {gateGrad(kind, x)});
    }
  }
}

TEST(Reference, LinearGradientsAreDerivatives) {
  const Values gradOut = randomValues(6 * 4, 1);
  const std::vector<int> ids = {2, 0, 2, 1, 0, 2};
  expectGradient(
      [&](const Values &t) { return dot(gradOut, embedding(ids, t, 4)); },
      randomValues(3 * 4, 2), embeddingGrad(ids, gradOut, 3, 4));
  expectGradient(
      [&](const Values &t) {
        return dot(gradOut, addPositions(Values(6 * 4, 0.0), t, 3, 4));
      },
      randomValues(5 * 4, 3), positionsGrad(gradOut, 3, 4, 5));
  expectGradient(
      [&](const Values &b) {
        return dot(gradOut, addBias(Values(6 * 4, 0.0), b));
      },
      randomValues(4, 4), columnSums(gradOut, 4));
}

TEST(Reference, AttentionGradIsTheDerivative) {
  for (const auto &[causal, window, dropout, softcap] :
       {std::tuple(false, 0, 0.0, 0.0),
        {true, 0, 0.0, 0.0},
        {true, 2, 0.3, 0.0},
        {false, 3, 0.0, 0.0},
        {true, 0, 0.0, 1.5},
        {true, 3, 0.3, 0.8}}) {
    const AttentionShape shape = {.batch = 2,
                                  .sequence = 5,
                                  .heads = 4,
                                  .kvHeads = 2,
                                  .dim = 3,
                                  .causal = causal,
                                  .window = window,
                                  .scale = 0.7,
                                  .dropout = dropout,
                                  .softcap = softcap,
                                  .dropoutKey = 99};
    const Values q = randomValues(2 * 5 * 4 * 3, 1);
    const Values k = randomValues(2 * 5 * 2 * 3, 2);
    const Values v = randomValues(2 * 5 * 2 * 3, 3);
    const Values y = randomValues(q.size(), 4);
    const AttentionGrad grad =
        attentionGrad(shape, y, q, k, v, attention(shape, q, k, v).out);
    expectGradient(
        [&](const Values &q) { return dot(y, attention(shape, q, k, v).out); },
        q, grad.q);
    expectGradient(
        [&](const Values &k) { return dot(y, attention(shape, q, k, v).out); },
        k, grad.k);
    expectGradient(
        [&](const Values &v) { return dot(y, attention(shape, q, k, v).out); },
        v, grad.v);
  }
}

TEST(Reference, PackedAttentionGradIsTheDerivative) {
  // Query 4 of the first sample sees no key.
  const AttentionShape shape = {
      .batch = 2,
      .sequence = 5,
      .heads = 4,
      .kvHeads = 2,
      .dim = 3,
      .causal = true,
      .window = 3,
      .scale = 0.7,
      .dropout = 0.3,
      .dropoutKey = 99,
      .keys = 4,
      .queryPlaces = {{0, 1, 0, 1, 0, 3, 2, 1, 0, 0},
                      {0, 0, 1, 1, 7, 2, 2, 2, 2, 3}},
      .keyPlaces = {{1, 0, 1, 0, 0, 1, 2, 3}, {1, 1, 0, 0, 2, 2, 2, 2}}};
  const Values q = randomValues(2 * 5 * 4 * 3, 1);
  const Values k = randomValues(2 * 4 * 2 * 3, 2);
  const Values v = randomValues(2 * 4 * 2 * 3, 3);
  const Values y = randomValues(q.size(), 4);
  const AttentionGrad grad =
      attentionGrad(shape, y, q, k, v, attention(shape, q, k, v).out);
  expectGradient(
      [&](const Values &q) { return dot(y, attention(shape, q, k, v).out); }, q,
      grad.q);
  expectGradient(
      [&](const Values &k) { return dot(y, attention(shape, q, k, v).out); }, k,
      grad.k);
  expectGradient(
      [&](const Values &v) { return dot(y, attention(shape, q, k, v).out); }, v,
      grad.v);
}

TEST(Reference, RopeInverseIsTheTranspose) {
  const Values table = ropeTable(5, 6, 100), x = randomValues(2 * 5 * 3 * 6, 1);
  const Values y = randomValues(x.size(), 2);
  expectGradient(
      [&](const Values &x) { return dot(y, rope(x, table, 5, 3, 6, false)); },
      x, rope(y, table, 5, 3, 6, true));
}

TEST(Reference, HeadGradIsTheDerivativeOfTheLoss) {
  for (double softcap : {0.0, 1.5}) {
    const HeadShape shape = {.tokens = 5,
                             .hidden = 4,
                             .vocabulary = 7,
                             .ignore = -100,
                             .firstRow = 0,
                             .softcap = softcap};
    const Values x = randomValues(5 * 4, 1), w = randomValues(7 * 4, 2);
    const std::vector<int> labels = {3, -100, 0, 6, 3};
    const HeadStats stats = headStats(shape, x, w, labels);
    const double seed = 0.4;
    Values gradSum, gradTarget;
    for (size_t t = 0; t < labels.size(); ++t) {
      const bool valid = labels[t] != shape.ignore;
      gradSum.push_back(valid ? seed / stats.sum[t] : 0);
      gradTarget.push_back(valid ? -seed : 0);
    }
    const HeadGrad grad =
        headStatsGrad(shape, x, w, labels, stats.max, gradSum, gradTarget);
    const auto loss = [&](const Values &x, const Values &w) {
      return seed * headLoss(shape, headStats(shape, x, w, labels), labels);
    };
    expectGradient([&](const Values &x) { return loss(x, w); }, x, grad.x);
    expectGradient([&](const Values &w) { return loss(x, w); }, w, grad.w);
  }
}

} // namespace
