//===- Softmax.cpp - Exponentials, sums and maxima ------------------------===//
#include "runtime/cpu/rows/Rows.h"

#include <algorithm>
#include <limits>

// clang-format off
#include "runtime/cpu/rows/Targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/rows/Softmax.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "runtime/cpu/rows/Lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace mega::rows::HWY_NAMESPACE {

float maximum(const float *x, int64_t n) {
  const Full full;
  const int64_t step = hn::Lanes(full);
  float result = -std::numeric_limits<float>::infinity();
  int64_t i = 0;
  if (n >= step) {
    auto best = hn::LoadU(full, x);
    for (i = step; i + step <= n; i += step) {
      best = hn::Max(best, hn::LoadU(full, x + i));
    }
    result = hn::GetLane(hn::MaxOfLanes(full, best));
  }
  for (; i < n; ++i) {
    result = std::max(result, x[i]);
  }
  return result;
}

/// exp(x - shift); shift is at least about the largest x.
template <typename D>
HWY_INLINE auto shiftedExp(D d, float shift, const float *x) {
  return hn::Exp(d, hn::Sub(hn::LoadU(d, x), hn::Set(d, shift)));
}

float expInPlace(float shift, float *x, int64_t n) {
  return sumLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto e = shiftedExp(d, shift, x + i);
    hn::StoreU(e, d, x + i);
    return e;
  });
}

float sumExp(float shift, const float *x, int64_t n) {
  return sumLanes(n, [&](auto d, int64_t i)
                         HWY_ATTR { return shiftedExp(d, shift, x + i); });
}

void scaledExp(float factor, float shift, float *x, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto e = shiftedExp(d, shift, x + i);
    hn::StoreU(hn::Mul(hn::Set(d, factor), e), d, x + i);
  });
}

void softmaxGrad(const float *p, float delta, float scale, float *dp,
                 int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, dp + i), hn::Set(d, delta));
    const auto scaled = hn::Mul(hn::LoadU(d, p + i), hn::Set(d, scale));
    hn::StoreU(hn::Mul(scaled, centred), d, dp + i);
  });
}

} // namespace mega::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::rows {

HWY_EXPORT(maximum);
float maximum(const float *x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(maximum)(x, n);
}

HWY_EXPORT(expInPlace);
float expInPlace(float shift, float *x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(expInPlace)(shift, x, n);
}

HWY_EXPORT(sumExp);
float sumExp(float shift, const float *x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(sumExp)(shift, x, n);
}

HWY_EXPORT(scaledExp);
void scaledExp(float factor, float shift, float *x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(scaledExp)(factor, shift, x, n);
}

HWY_EXPORT(softmaxGrad);
void softmaxGrad(const float *p, float delta, float scale, float *dp,
                 int64_t n) {
  return HWY_DYNAMIC_DISPATCH(softmaxGrad)(p, delta, scale, dp, n);
}

} // namespace mega::rows
#endif // HWY_ONCE
