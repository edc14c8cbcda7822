//===- Elements.cpp - Sums, products, rotations ---------------------------===//
#include "runtime/cpu/rows/Rows.h"

// clang-format off
#include "runtime/cpu/rows/Targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/rows/Elements.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "runtime/cpu/rows/Dispatch.h"
#include "runtime/cpu/rows/Lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace mega::rows::HWY_NAMESPACE {

void widen(const BFloat16 *x, float *y, int64_t n) {
  forLanes(n, [&](auto d, int64_t i)
                  HWY_ATTR { store(load(d, x + i), d, y + i); });
}

void narrow(const float *x, BFloat16 *y, int64_t n) {
  forLanes(n, [&](auto d, int64_t i)
                  HWY_ATTR { store(load(d, x + i), d, y + i); });
}

template <typename T>
HWY_ATTR void add(const T *a, const T *b, T *y, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    store(hn::Add(load(d, a + i), load(d, b + i)), d, y + i);
  });
}

template <typename T>
HWY_ATTR void addBias(const T *x, const float *bias, T *y, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    store(hn::Add(load(d, x + i), load(d, bias + i)), d, y + i);
  });
}

template <typename T>
HWY_ATTR void accumulate(const T *x, float *sum, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    store(hn::Add(load(d, sum + i), load(d, x + i)), d, sum + i);
  });
}

template <typename T>
HWY_ATTR void scale(float factor, const T *x, T *y, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    store(hn::Mul(hn::Set(d, factor), load(d, x + i)), d, y + i);
  });
}

template <typename T>
HWY_ATTR void addScaledProduct(float factor, const T *a, const T *b, float *sum,
                               int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto scaled = hn::Mul(hn::Set(d, factor), load(d, a + i));
    const auto added = hn::MulAdd(scaled, load(d, b + i), load(d, sum + i));
    store(added, d, sum + i);
  });
}

template <typename T> HWY_ATTR float dot(const T *a, const T *b, int64_t n) {
  return sumLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(load(d, a + i), load(d, b + i));
  });
}

template <typename T>
HWY_ATTR void rotate(const T *x0, const T *x1, const float *cos,
                     const float *sin, bool inverse, T *y0, T *y1, int64_t n) {
  const float sign = inverse ? -1.0f : 1.0f;
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto a = load(d, x0 + i), b = load(d, x1 + i);
    const auto c = load(d, cos + i);
    const auto s = hn::Mul(hn::Set(d, sign), load(d, sin + i));
    store(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, y0 + i);
    store(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, y1 + i);
  });
}

} // namespace mega::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::rows {

void widen(const BFloat16 *x, float *y, int64_t n) {
  return MEGA_ROW(widen)(x, y, n);
}

void narrow(const float *x, BFloat16 *y, int64_t n) {
  return MEGA_ROW(narrow)(x, y, n);
}

template <typename T> void add(const T *a, const T *b, T *y, int64_t n) {
  return MEGA_ROW(add<T>)(a, b, y, n);
}
MEGA_FOR_ELEMENTS(add);

template <typename T>
void addBias(const T *x, const float *bias, T *y, int64_t n) {
  return MEGA_ROW(addBias<T>)(x, bias, y, n);
}
MEGA_FOR_ELEMENTS(addBias);

template <typename T> void accumulate(const T *x, float *sum, int64_t n) {
  return MEGA_ROW(accumulate<T>)(x, sum, n);
}
MEGA_FOR_ELEMENTS(accumulate);

template <typename T> void scale(float factor, const T *x, T *y, int64_t n) {
  return MEGA_ROW(scale<T>)(factor, x, y, n);
}
MEGA_FOR_ELEMENTS(scale);

template <typename T>
void addScaledProduct(float factor, const T *a, const T *b, float *sum,
                      int64_t n) {
  return MEGA_ROW(addScaledProduct<T>)(factor, a, b, sum, n);
}
MEGA_FOR_ELEMENTS(addScaledProduct);

template <typename T> float dot(const T *a, const T *b, int64_t n) {
  return MEGA_ROW(dot<T>)(a, b, n);
}
MEGA_FOR_ELEMENTS(dot);

template <typename T>
void rotate(const T *x0, const T *x1, const float *cos, const float *sin,
            bool inverse, T *y0, T *y1, int64_t n) {
  return MEGA_ROW(rotate<T>)(x0, x1, cos, sin, inverse, y0, y1, n);
}
MEGA_FOR_ELEMENTS(rotate);

} // namespace mega::rows
#endif // HWY_ONCE
