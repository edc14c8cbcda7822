//===- Elements.cpp - Sums, products, rotations ---------------------------===//
#include "runtime/cpu/rows/Rows.h"

// clang-format off
#include "runtime/cpu/rows/Targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/rows/Elements.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "runtime/cpu/rows/Lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace mega::rows::HWY_NAMESPACE {

void add(const float *a, const float *b, float *y, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  });
}

void scale(float factor, const float *x, float *y, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::Set(d, factor), hn::LoadU(d, x + i)), d, y + i);
  });
}

void addScaledProduct(float factor, const float *a, const float *b, float *y,
                      int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto scaled = hn::Mul(hn::Set(d, factor), hn::LoadU(d, a + i));
    const auto sum =
        hn::MulAdd(scaled, hn::LoadU(d, b + i), hn::LoadU(d, y + i));
    hn::StoreU(sum, d, y + i);
  });
}

float dot(const float *a, const float *b, int64_t n) {
  return sumLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
  });
}

void rotate(const float *x0, const float *x1, const float *cos,
            const float *sin, bool inverse, float *y0, float *y1, int64_t n) {
  const float sign = inverse ? -1.0f : 1.0f;
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto a = hn::LoadU(d, x0 + i), b = hn::LoadU(d, x1 + i);
    const auto c = hn::LoadU(d, cos + i);
    const auto s = hn::Mul(hn::Set(d, sign), hn::LoadU(d, sin + i));
    hn::StoreU(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, y0 + i);
    hn::StoreU(hn::Add(hn::Mul(b, c), hn::Mul(a, s)), d, y1 + i);
  });
}

} // namespace mega::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::rows {

HWY_EXPORT(add);
void add(const float *a, const float *b, float *y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(add)(a, b, y, n);
}

HWY_EXPORT(scale);
void scale(float factor, const float *x, float *y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(scale)(factor, x, y, n);
}

HWY_EXPORT(addScaledProduct);
void addScaledProduct(float factor, const float *a, const float *b, float *y,
                      int64_t n) {
  return HWY_DYNAMIC_DISPATCH(addScaledProduct)(factor, a, b, y, n);
}

HWY_EXPORT(dot);
float dot(const float *a, const float *b, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(dot)(a, b, n);
}

HWY_EXPORT(rotate);
void rotate(const float *x0, const float *x1, const float *cos,
            const float *sin, bool inverse, float *y0, float *y1, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(rotate)(x0, x1, cos, sin, inverse, y0, y1, n);
}

} // namespace mega::rows
#endif // HWY_ONCE
