#include "test/runtime/cpu/Conformance.h"

#include <functional>

using namespace mega;
using reference::Values;

namespace {

class ElementWiseTest : public Conformance {
protected:
  using Function = std::function<double(double)>;

  static Values map(const Function &f, const Values &x) {
    Values y;
    for (double value : x) {
      y.push_back(f(value));
    }
    return y;
  }
  static Values times(Values a, const Values &b) {
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] *= b[i];
    }
    return a;
  }
};
MEGA_FOR_EVERY_DEVICE_AND_TYPE(ElementWiseTest);

// exp, a division and a dozen operations of one rounding each.
constexpr double kActivation = 24;

TEST_P(ElementWiseTest, GeluMatchesInBothForms) {
  for (GeluKind kind : {GeluKind::Tanh, GeluKind::Erf}) {
    const auto f = [&](double x) { return reference::gelu(kind, x); };
    const auto df = [&](double x) { return reference::geluGrad(kind, x); };
    Buffer x = random({3, 37, 73}, 1, 5, 3);
    Buffer gradY = random({3, 37, 73}, 2, 6);
    Buffer y = zeros({3, 37, 73}, 7), gradX = y;
    launch(Kernel::Gelu, {&x, &y}, {static_cast<int64_t>(kind)});
    expectClose(y, map(f, x.values()), kActivation);
    const Values expected = times(gradY.values(), map(df, x.values()));
    launch(Kernel::GeluGrad, {&gradY, &x, &gradX},
           {static_cast<int64_t>(kind)});
    expectClose(gradX, expected, kActivation);
    launch(Kernel::GeluGrad, {&gradY, &x, &gradY},
           {static_cast<int64_t>(kind)});
    expectClose(gradY, expected, kActivation);
    const Values expectedY = map(f, x.values());
    launch(Kernel::Gelu, {&x, &x}, {static_cast<int64_t>(kind)});
    expectClose(x, expectedY, kActivation);
  }
}

TEST_P(ElementWiseTest, ActivationsStayFiniteFarOut) {
  Buffer x = zeros({1, 8}), y = x, grad = x, gradX = x;
  x.set({-1e30, -1e4, -100, -20, 20, 100, 1e4, 1e30});
  grad.set(Values(8, 1.0));
  const Values slopes = {0, 0, 0, 0, 1, 1, 1, 1};
  for (int64_t kind : {0, 1}) {
    launch(Kernel::Gelu, {&x, &y}, {kind});
    launch(Kernel::GeluGrad, {&grad, &x, &gradX}, {kind});
    for (int i = 1; i < 7; ++i) {
      EXPECT_NEAR(y.values()[i], i < 4 ? 0 : x.values()[i], 1e-6);
      EXPECT_NEAR(gradX.values()[i], slopes[i], 1e-6) << x.values()[i];
    }
  }
  launch(Kernel::Silu, {&x, &y});
  launch(Kernel::SiluGrad, {&grad, &x, &gradX});
  for (int i = 1; i < 7; ++i) {
    EXPECT_NEAR(y.values()[i], i < 4 ? 0 : x.values()[i],
                1e-6 + (i == 3 ? 5e-8 : 0));
    EXPECT_NEAR(gradX.values()[i], slopes[i], 1e-6);
  }
}

TEST_P(ElementWiseTest, SiluMatches) {
  Buffer x = random({3, 37, 73}, 1, 5, 3), y = zeros({3, 37, 73});
  Buffer gradY = random({3, 37, 73}, 2, 6), gradX = y;
  launch(Kernel::Silu, {&x, &y});
  expectClose(y, map(reference::silu, x.values()), kActivation);
  launch(Kernel::SiluGrad, {&gradY, &x, &gradX});
  expectClose(gradX,
              times(gradY.values(), map(reference::siluGrad, x.values())),
              kActivation);
}

TEST_P(ElementWiseTest, GatedMatchesForEveryGate) {
  for (GateKind kind :
       {GateKind::Silu, GateKind::GeluTanh, GateKind::GeluErf}) {
    const auto f = [&](double x) { return reference::gate(kind, x); };
    const auto df = [&](double x) { return reference::gateGrad(kind, x); };
    // Gate and up are halves of one product.
    Buffer gate = random({3, 37, 73}, 1, 73, 2);
    Buffer up = random({3, 37, 73}, 2, 73);
    Buffer gradY = random({3, 37, 73}, 3), y = zeros({3, 37, 73});
    const Values act = map(f, gate.values());
    const Values expected = times(act, up.values());
    const int64_t k = static_cast<int64_t>(kind);
    launch(Kernel::Gated, {&gate, &up, &y}, {k});
    expectClose(y, expected, kActivation);
    for (int inPlaceOf : {0, 1}) {
      Buffer g = gate, u = up;
      Buffer &target = inPlaceOf == 0 ? g : u;
      launch(Kernel::Gated, {&g, &u, &target}, {k});
      expectClose(target, expected, kActivation);
    }
    const Values gradUp = times(gradY.values(), act);
    const Values gradGate =
        times(times(gradY.values(), up.values()), map(df, gate.values()));
    Buffer g = zeros({3, 37, 73}, 73), u = g;
    launch(Kernel::GatedGrad, {&gradY, &gate, &up, &g, &u}, {k});
    expectClose(g, gradGate, kActivation);
    expectClose(u, gradUp, kActivation);
    const Buffer saved = gradY;
    launch(Kernel::GatedGrad, {&gradY, &gate, &up, &gradY, &u}, {k});
    expectClose(gradY, gradGate, kActivation);
    expectClose(u, gradUp, kActivation);
    gradY = saved;
    launch(Kernel::GatedGrad, {&gradY, &gate, &up, &g, &gradY}, {k});
    expectClose(g, gradGate, kActivation);
    expectClose(gradY, gradUp, kActivation);
  }
}

TEST_P(ElementWiseTest, AddsLongRowsAndShortOnes) {
  for (int64_t gap : {0, 3}) {
    // Dense and longer than one task; the same with gaps.
    Buffer a = random({2, 3, 20001}, 1, gap);
    Buffer b = random({2, 3, 20001}, 2), y = zeros({2, 3, 20001});
    Values expected = a.values();
    const Values other = b.values();
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] += other[i];
    }
    launch(Kernel::Add, {&a, &b, &y});
    expectClose(y, expected, 1);
    launch(Kernel::Add, {&a, &b, &b});
    expectClose(b, expected, 1);
  }
}

TEST_P(ElementWiseTest, ScalesInPlaceAndNot) {
  Buffer x = random({3, 37, 73}, 1, 5), y = zeros({3, 37, 73}, 2);
  // The factor reaches the kernel as f32.
  const double factor = static_cast<float>(27.7128);
  const Values expected = map([&](double v) { return factor * v; }, x.values());
  launch(Kernel::Scale, {&x, &y}, {}, {27.7128});
  expectClose(y, expected, 1);
  launch(Kernel::Scale, {&x, &x}, {}, {27.7128});
  expectClose(x, expected, 1);
}

TEST_P(ElementWiseTest, BiasIsAddedWithAndWithoutGelu) {
  Buffer x = random({3, 37, 72}, 1, 5), bias = Buffer::random({72}, 2);
  Buffer z = zeros({3, 37, 72}, 7), y = z;
  const Values expected = reference::addBias(x.values(), bias.values());
  launch(Kernel::AddBias, {&x, &bias, &y});
  expectClose(y, expected, 1);
  for (GeluKind kind : {GeluKind::Tanh, GeluKind::Erf}) {
    const auto f = [&](double v) { return reference::gelu(kind, v); };
    launch(Kernel::BiasGelu, {&x, &bias, &z, &y}, {static_cast<int64_t>(kind)});
    expectClose(z, expected, 1);
    // Of z as it is kept.
    expectClose(y, map(f, z.values()), kActivation);
  }
  Buffer inPlace = x;
  launch(Kernel::BiasGelu, {&inPlace, &bias, &inPlace, &y}, {0});
  expectClose(inPlace, expected, 1);
  launch(Kernel::AddBias, {&x, &bias, &x});
  expectClose(x, expected, 1);
}

TEST_P(ElementWiseTest, BiasGradientSumsTheRows) {
  Buffer gradY = random({3, 37, 333}, 1, 5);
  Buffer gradBias = Buffer::random({333}, 2);
  Values expected = reference::columnSums(gradY.values(), 333);
  const Values before = gradBias.values();
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] += before[i];
  }
  launch(Kernel::BiasGrad, {&gradY, &gradBias});
  expectClose(gradBias, expected, 111);
}

} // namespace
