#include "test/runtime/cpu/Trial.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mega::test {

double dot(const Values &a, const Values &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}
static double largest(const Values &values) {
  double most = 0;
  for (double value : values) {
    most = std::max(most, std::abs(value));
  }
  return most;
}

Trial::Trial(const Case &c, const Mesh &mesh) : c(c), ranks(mesh) {
  ranks.scalars = caseScalars();
  ranks.application = kCaseApplication;
  ranks.firstSample = kCaseFirstSample;
}

Trial::Outcome Trial::check(const std::vector<Layout> &layouts) {
  for (size_t i = 0; i < layouts.size(); ++i) {
    const Case::Operand &operand = c.operands[i];
    if (!layouts[i].verify(ranks.mesh, shapeOf(operand.type)).isOk()) {
      return Outcome::Refused;
    }
    use.operands.push_back(ranks.cut(operand.type, layouts[i],
                                     operand.fixed.empty()
                                         ? ranks.random(operand.type.elements())
                                         : operand.fixed));
    wholes.push_back(ranks.together(use.operands.back()));
  }
  const Status status = forward();
  if (!status.isOk()) {
    reason_ = status.message();
    return Outcome::Refused;
  }
  compareResults();
  return checkTranspose();
}

Status Trial::forward() {
  if (c.forward) {
    return c.forward(ranks, use);
  }
  std::vector<const Sharded *> read;
  std::vector<Sharded *> operands;
  for (Sharded &operand : use.operands) {
    read.push_back(&operand);
    operands.push_back(&operand);
  }
  MEGA_ASSIGN_OR_RETURN(const std::vector<Layout> layouts,
                        ranks.infer(c.kernel, read, c.results, c.integers));
  for (size_t i = 0; i < layouts.size(); ++i) {
    use.results.push_back(ranks.zeros(c.results[i], layouts[i]));
  }
  for (Sharded &result : use.results) {
    operands.push_back(&result);
  }
  // Scratch comes last.
  operands.resize(kernelSpec(c.kernel).operands.size());
  return ranks.launch(c.kernel, operands, c.integers, c.floats);
}

void Trial::compareResults() {
  const Case::Wholes expected = c.reference(wholes);
  ASSERT_EQ(expected.size(), use.results.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Values actual = ranks.together(use.results[i]);
    ASSERT_EQ(actual.size(), expected[i].size());
    double worst = 0;
    for (size_t j = 0; j < actual.size(); ++j) {
      const double error = std::abs(actual[j] - expected[i][j]);
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
    EXPECT_LE(worst, c.roundings * 0x1p-24 * largest(expected[i]))
        << "result " << i << ", " << use.results[i].layout.str();
  }
}

Trial::Outcome Trial::checkTranspose() {
  use.gradResults.resize(use.results.size());
  std::vector<Values> gradients(use.results.size());
  for (const size_t i : c.active) {
    const Sharded &result = use.results[i];
    use.gradResults[i] = ranks.cut(result.type, result.layout.dual().take(),
                                   ranks.random(result.type.elements()));
    gradients[i] = ranks.together(use.gradResults[i]);
  }
  for (const Sharded &operand : use.operands) {
    use.gradOperands.push_back(
        ranks.zeros(operand.type, operand.layout.dual().take()));
  }
  const Status status = c.backward(ranks, use);
  if (!status.isOk()) {
    reason_ = status.message();
    return Outcome::ForwardOnly;
  }
  for (size_t i = 0; i < use.operands.size(); ++i) {
    if (c.operands[i].fixed.empty()) {
      checkAdjoint(i, gradients);
    }
  }
  return Outcome::Checked;
}

void Trial::checkAdjoint(size_t operand, const std::vector<Values> &gradients) {
  const Sharded &gradient = use.gradOperands[operand];
  ASSERT_EQ(gradient.layout, use.operands[operand].layout.dual().take());
  const Values whole = ranks.together(gradient);
  const Values direction = ranks.random(std::ssize(whole));
  double expected = 0, length = 0;
  const Case::Wholes derivative = differentiate(operand, direction);
  for (const size_t i : c.active) {
    expected += dot(gradients[i], derivative[i]);
  }
  for (const double value : direction) {
    length += std::abs(value);
  }
  // Every element of the gradient is off by so many roundings at the most.
  EXPECT_NEAR(dot(whole, direction), expected,
              c.gradRoundings * 0x1p-24 * largest(whole) * length)
      << "operand " << operand << ", its gradient " << gradient.layout.str();
}

/// J dx by differences of fourth order: what they neglect, 1e-12, and what
/// cancels in them, 1e-13, is far below f32's roundings.
Case::Wholes Trial::differentiate(size_t operand,
                                  const Values &direction) const {
  constexpr double kStep = 1e-3;
  Case::Wholes sum;
  for (const auto &[steps, weight] :
       {std::pair(1, 8.0), {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
    Case::Wholes at = wholes;
    for (size_t i = 0; i < direction.size(); ++i) {
      at[operand][i] += steps * kStep * direction[i];
    }
    const Case::Wholes values = c.reference(at);
    sum.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      sum[i].resize(values[i].size());
      for (size_t j = 0; j < values[i].size(); ++j) {
        sum[i][j] += weight / (12 * kStep) * values[i][j];
      }
    }
  }
  return sum;
}

} // namespace mega::test
