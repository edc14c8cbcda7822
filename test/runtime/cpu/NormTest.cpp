#include "test/runtime/cpu/Conformance.h"

using namespace mega;
using reference::Values;

namespace {

class LayerNormTest : public Conformance {};
class RmsNormTest : public Conformance {};
MEGA_FOR_EVERY_DEVICE_AND_TYPE(LayerNormTest);
MEGA_FOR_EVERY_DEVICE_AND_TYPE(RmsNormTest);

constexpr double kEpsilon = 1e-5;
// A row's sums run through a few lanes and their own additions: about 72 / 8
// roundings, and a dozen operations follow.
constexpr double kRow = 24;
// A parameter's gradient adds 111 rows (or 111 * 6) in partial sums of 64.
constexpr double kColumn = 128;

Values plus(Values a, const Values &b) {
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] += b[i];
  }
  return a;
}

TEST_P(LayerNormTest, NormalisesStridedRows) {
  Buffer x = random({3, 37, 72}, 1, 5);
  Buffer gamma = Buffer::random({72}, 2), beta = Buffer::random({72}, 3);
  Buffer y = zeros({3, 37, 72}, 9);
  Buffer mean = Buffer::zeros({3, 37}), rstd = Buffer::zeros({3, 37});
  launch(Kernel::LayerNorm, {&x, &gamma, &beta, &y, &mean, &rstd}, {},
         {kEpsilon});
  const reference::Norm expected =
      reference::layerNorm(x.values(), gamma.values(), beta.values(), kEpsilon);
  expectClose(y, expected.y, kRow);
  expectClose(mean, expected.mean, kRow);
  expectClose(rstd, expected.rstd, kRow);
}

TEST_P(LayerNormTest, AddsFirstAlsoInPlace) {
  Buffer a = random({3, 37, 72}, 1, 5);
  Buffer b = random({3, 37, 72}, 2, 6);
  Buffer gamma = Buffer::random({72}, 3), beta = Buffer::random({72}, 4);
  Buffer sum = zeros({3, 37, 72}, 7), y = zeros({3, 37, 72}, 8);
  Buffer mean = Buffer::zeros({3, 37}), rstd = Buffer::zeros({3, 37});
  const Values expectedSum = plus(a.values(), b.values());
  const Buffer savedA = a, savedB = b;
  for (Buffer *target : {&sum, &a, &b}) {
    a = savedA;
    b = savedB;
    launch(Kernel::AddLayerNorm,
           {&a, &b, &gamma, &beta, target, &y, &mean, &rstd}, {}, {kEpsilon});
    expectClose(*target, expectedSum, 1);
    // Of the sum as it is kept.
    const reference::Norm expected = reference::layerNorm(
        target->values(), gamma.values(), beta.values(), kEpsilon);
    expectClose(y, expected.y, kRow);
    expectClose(mean, expected.mean, kRow);
    expectClose(rstd, expected.rstd, kRow);
  }
}

TEST_P(LayerNormTest, GradientMatchesAndAccumulates) {
  for (int64_t accumulate : {0, 1}) {
    Buffer gradY = random({3, 37, 72}, 1, 5);
    Buffer x = random({3, 37, 72}, 2, 6);
    Buffer gamma = Buffer::random({72}, 3), beta = Buffer::zeros({72});
    Buffer y = zeros({3, 37, 72});
    Buffer mean = Buffer::zeros({3, 37}), rstd = Buffer::zeros({3, 37});
    launch(Kernel::LayerNorm, {&x, &gamma, &beta, &y, &mean, &rstd}, {},
           {kEpsilon});
    Buffer gradX = random({3, 37, 72}, 4, 7);
    Buffer gradGamma = Buffer::random({72}, 5);
    Buffer gradBeta = Buffer::random({72}, 6);
    const reference::NormGrad expected = reference::layerNormGrad(
        gradY.values(), x.values(), gamma.values(), kEpsilon);
    const Values expectedX =
        accumulate ? plus(expected.x, gradX.values()) : expected.x;
    const Values expectedGamma = plus(expected.gamma, gradGamma.values());
    const Values expectedBeta = plus(expected.beta, gradBeta.values());
    launch(Kernel::LayerNormGrad,
           {&gradY, &x, &gamma, &mean, &rstd, &gradX, &gradGamma, &gradBeta},
           {accumulate});
    expectClose(gradX, expectedX, 2 * kRow);
    expectClose(gradGamma, expectedGamma, kColumn);
    expectClose(gradBeta, expectedBeta, kColumn);
  }
}

TEST_P(RmsNormTest, NormalisesRowsAndHeads) {
  for (double offset : {0.0, 1.0}) {
    Buffer x = random({3, 37, 6, 12}, 1, 5);
    Buffer gamma = Buffer::random({12}, 2);
    Buffer y = zeros({3, 37, 6, 12}, 9);
    Buffer rstd = Buffer::zeros({3, 37, 6});
    launch(Kernel::RmsNorm, {&x, &gamma, &y, &rstd}, {}, {kEpsilon, offset});
    const reference::Norm expected =
        reference::rmsNorm(x.values(), gamma.values(), kEpsilon, offset);
    expectClose(y, expected.y, kRow);
    expectClose(rstd, expected.rstd, kRow);
  }
}

TEST_P(RmsNormTest, AddsFirstAlsoInPlace) {
  Buffer a = random({3, 37, 72}, 1, 5);
  Buffer b = random({3, 37, 72}, 2, 6);
  Buffer gamma = Buffer::random({72}, 3), rstd = Buffer::zeros({3, 37});
  Buffer sum = zeros({3, 37, 72}, 7), y = zeros({3, 37, 72}, 8);
  const Values expectedSum = plus(a.values(), b.values());
  const Buffer savedA = a, savedB = b;
  for (Buffer *target : {&sum, &a, &b}) {
    a = savedA;
    b = savedB;
    launch(Kernel::AddRmsNorm, {&a, &b, &gamma, target, &y, &rstd}, {},
           {kEpsilon, 1.0});
    expectClose(*target, expectedSum, 1);
    const reference::Norm expected =
        reference::rmsNorm(target->values(), gamma.values(), kEpsilon, 1.0);
    expectClose(y, expected.y, kRow);
    expectClose(rstd, expected.rstd, kRow);
  }
}

TEST_P(RmsNormTest, GradientMatchesForRowsAndHeads) {
  for (int64_t accumulate : {0, 1}) {
    Buffer gradY = random({3, 37, 6, 12}, 1, 5);
    Buffer x = random({3, 37, 6, 12}, 2, 6);
    Buffer gamma = Buffer::random({12}, 3);
    Buffer y = zeros({3, 37, 6, 12});
    Buffer rstd = Buffer::zeros({3, 37, 6});
    launch(Kernel::RmsNorm, {&x, &gamma, &y, &rstd}, {}, {kEpsilon, 1.0});
    Buffer gradX = random({3, 37, 6, 12}, 4, 7);
    Buffer gradGamma = Buffer::random({12}, 5);
    const reference::NormGrad expected = reference::rmsNormGrad(
        gradY.values(), x.values(), gamma.values(), kEpsilon, 1.0);
    const Values expectedX =
        accumulate ? plus(expected.x, gradX.values()) : expected.x;
    const Values expectedGamma = plus(expected.gamma, gradGamma.values());
    launch(Kernel::RmsNormGrad, {&gradY, &x, &gamma, &rstd, &gradX, &gradGamma},
           {accumulate}, {1.0});
    expectClose(gradX, expectedX, 2 * kRow);
    expectClose(gradGamma, expectedGamma, kColumn);
  }
}

} // namespace
