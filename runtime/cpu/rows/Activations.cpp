//===- Activations.cpp - Activations and their gradients ------------------===//
#include "runtime/cpu/rows/Rows.h"

// clang-format off
#include "runtime/cpu/rows/Targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/rows/Activations.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "runtime/cpu/rows/Dispatch.h"
#include "runtime/cpu/rows/Lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace mega::rows::HWY_NAMESPACE {

/// An activation's value and slope at one vector of inputs. Value takes what
/// the backward does not need.
template <typename V> struct Point {
  V value, slope;
};

/// 1 / (1 + exp(-x)). The clamp keeps exp inside its domain; the result there
/// is below the smallest normal number times any sensible x.
template <typename D, typename V> HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = hn::Exp(d, hn::Min(hn::Neg(x), hn::Set(d, 80.0f)));
  return hn::Div(one, hn::Add(one, e));
}

struct Silu {
  template <typename D, typename V>
  HWY_INLINE Point<V> operator()(D d, V x) const {
    const V s = sigmoid(d, x);
    const V one = hn::Set(d, 1.0f);
    // s (1 + x (1 - s))
    return {hn::Mul(x, s), hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one))};
  }
};

/// x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): the tanh form of GELU.
struct GeluTanh {
  template <typename D, typename V>
  HWY_INLINE Point<V> operator()(D d, V x) const {
    const V one = hn::Set(d, 1.0f);
    const V twoRoot = hn::Set(d, 1.5957691216057308f);
    const V cubic = hn::Set(d, 0.044715f);
    const V square = hn::Mul(x, x);
    const V inner = hn::MulAdd(cubic, square, one);
    const V s = sigmoid(d, hn::Mul(hn::Mul(twoRoot, x), inner));
    const V du =
        hn::Mul(twoRoot, hn::MulAdd(hn::Set(d, 3 * 0.044715f), square, one));
    const V rest = hn::Mul(hn::Mul(x, hn::Sub(one, s)), du);
    return {hn::Mul(x, s), hn::MulAdd(s, rest, s)};
  }
};

/// x Phi(x), with erfc from Abramowitz and Stegun, formula 7.1.26: within
/// 1.5e-7 of the true value everywhere.
struct GeluErf {
  template <typename D, typename V>
  HWY_INLINE Point<V> operator()(D d, V x) const {
    const auto set = [d](float value) HWY_ATTR { return hn::Set(d, value); };
    const V one = set(1.0f);
    const V z = hn::Mul(hn::Abs(x), set(0.7071067811865476f));
    const V t = hn::Div(one, hn::MulAdd(set(0.3275911f), z, one));
    V p = hn::MulAdd(set(1.061405429f), t, set(-1.453152027f));
    p = hn::MulAdd(p, t, set(1.421413741f));
    p = hn::MulAdd(p, t, set(-0.284496736f));
    p = hn::MulAdd(p, t, set(0.254829592f));
    const V e = hn::Exp(d, hn::Max(hn::Neg(hn::Mul(z, z)), set(-80.0f)));
    const V upper = hn::Mul(hn::Mul(set(0.5f), hn::Mul(p, t)), e);
    const V phi =
        hn::IfThenElse(hn::Lt(x, hn::Zero(d)), upper, hn::Sub(one, upper));
    const V density = hn::Mul(set(0.3989422804014327f), e);
    return {hn::Mul(x, phi), hn::MulAdd(x, density, phi)};
  }
};

/// run(activation) with the function object of `kind`.
template <typename Run> HWY_INLINE void withGelu(GeluKind kind, Run &&run) {
  kind == GeluKind::Tanh ? run(GeluTanh()) : run(GeluErf());
}
template <typename Run> HWY_INLINE void withGate(GateKind kind, Run &&run) {
  switch (kind) {
  case GateKind::Silu:
    return run(Silu());
  case GateKind::GeluTanh:
    return run(GeluTanh());
  case GateKind::GeluErf:
    return run(GeluErf());
  }
}

template <typename F, typename T>
HWY_INLINE void apply(F f, const T *x, T *y, int64_t n) {
  forLanes(n, [&](auto d, int64_t i)
                  HWY_ATTR { store(f(d, load(d, x + i)).value, d, y + i); });
}

template <typename F, typename T>
HWY_INLINE void applyGrad(F f, const T *gradY, const T *x, T *gradX,
                          int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto slope = f(d, load(d, x + i)).slope;
    store(hn::Mul(load(d, gradY + i), slope), d, gradX + i);
  });
}

template <typename T>
HWY_ATTR void gelu(GeluKind kind, const T *x, T *y, int64_t n) {
  withGelu(kind, [&](auto f) HWY_ATTR { apply(f, x, y, n); });
}

template <typename T>
HWY_ATTR void geluGrad(GeluKind kind, const T *gradY, const T *x, T *gradX,
                       int64_t n) {
  withGelu(kind, [&](auto f) HWY_ATTR { applyGrad(f, gradY, x, gradX, n); });
}

template <typename T>
HWY_ATTR void biasGelu(GeluKind kind, const T *x, const float *bias, T *z, T *y,
                       int64_t n) {
  withGelu(kind, [&](auto f) HWY_ATTR {
    forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
      const auto sum = hn::Add(load(d, x + i), load(d, bias + i));
      store(sum, d, z + i);
      // Of z as the backward will see it.
      store(f(d, load(d, z + i)).value, d, y + i);
    });
  });
}

template <typename T> HWY_ATTR void silu(const T *x, T *y, int64_t n) {
  apply(Silu(), x, y, n);
}

template <typename T>
HWY_ATTR void siluGrad(const T *gradY, const T *x, T *gradX, int64_t n) {
  applyGrad(Silu(), gradY, x, gradX, n);
}

template <typename T>
HWY_ATTR void gated(GateKind kind, const T *gate, const T *up, T *y,
                    int64_t n) {
  withGate(kind, [&](auto f) HWY_ATTR {
    forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
      const auto value = f(d, load(d, gate + i)).value;
      store(hn::Mul(value, load(d, up + i)), d, y + i);
    });
  });
}

template <typename T>
HWY_ATTR void gatedGrad(GateKind kind, const T *gradY, const T *gate,
                        const T *up, T *gradGate, T *gradUp, int64_t n) {
  withGate(kind, [&](auto f) HWY_ATTR {
    forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
      const auto point = f(d, load(d, gate + i));
      const auto grad = load(d, gradY + i);
      const auto u = load(d, up + i);
      store(hn::Mul(hn::Mul(grad, u), point.slope), d, gradGate + i);
      store(hn::Mul(grad, point.value), d, gradUp + i);
    });
  });
}

} // namespace mega::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::rows {

template <typename T> void gelu(GeluKind kind, const T *x, T *y, int64_t n) {
  return MEGA_ROW(gelu<T>)(kind, x, y, n);
}
MEGA_FOR_ELEMENTS(gelu);

template <typename T>
void geluGrad(GeluKind kind, const T *gradY, const T *x, T *gradX, int64_t n) {
  return MEGA_ROW(geluGrad<T>)(kind, gradY, x, gradX, n);
}
MEGA_FOR_ELEMENTS(geluGrad);

template <typename T>
void biasGelu(GeluKind kind, const T *x, const float *bias, T *z, T *y,
              int64_t n) {
  return MEGA_ROW(biasGelu<T>)(kind, x, bias, z, y, n);
}
MEGA_FOR_ELEMENTS(biasGelu);

template <typename T> void silu(const T *x, T *y, int64_t n) {
  return MEGA_ROW(silu<T>)(x, y, n);
}
MEGA_FOR_ELEMENTS(silu);

template <typename T>
void siluGrad(const T *gradY, const T *x, T *gradX, int64_t n) {
  return MEGA_ROW(siluGrad<T>)(gradY, x, gradX, n);
}
MEGA_FOR_ELEMENTS(siluGrad);

template <typename T>
void gated(GateKind kind, const T *gate, const T *up, T *y, int64_t n) {
  return MEGA_ROW(gated<T>)(kind, gate, up, y, n);
}
MEGA_FOR_ELEMENTS(gated);

template <typename T>
void gatedGrad(GateKind kind, const T *gradY, const T *gate, const T *up,
               T *gradGate, T *gradUp, int64_t n) {
  return MEGA_ROW(gatedGrad<T>)(kind, gradY, gate, up, gradGate, gradUp, n);
}
MEGA_FOR_ELEMENTS(gatedGrad);

} // namespace mega::rows
#endif // HWY_ONCE
