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
#include "runtime/cpu/rows/Dispatch.h"
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

/// cap * tanh(x / cap), and the tanh.
template <typename D> struct Capped {
  hn::Vec<D> value, tanh;

  HWY_INLINE Capped(D d, float cap, const float *x) {
    const auto scaled = hn::Mul(hn::LoadU(d, x), hn::Set(d, 1.0f / cap));
    tanh = hn::Tanh(d, scaled);
    value = hn::Mul(hn::Set(d, cap), tanh);
  }
  HWY_INLINE hn::Vec<D> slope(D d) const {
    return hn::NegMulAdd(tanh, tanh, hn::Set(d, 1.0f));
  }
};

void softcap(float cap, float *x, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(Capped(d, cap, x + i).value, d, x + i);
  });
}

void softcapWithSlope(float cap, float *x, float *slope, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const Capped capped(d, cap, x + i);
    hn::StoreU(capped.value, d, x + i);
    hn::StoreU(capped.slope(d), d, slope + i);
  });
}

void softcapExp(float cap, float factor, float shift, float *x, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const Capped capped(d, cap, x + i);
    const auto e = hn::Exp(d, hn::Sub(capped.value, hn::Set(d, shift)));
    hn::StoreU(hn::Mul(hn::Mul(hn::Set(d, factor), e), capped.slope(d)), d,
               x + i);
  });
}

void multiply(const float *a, const float *b, float *y, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  });
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

float maximum(const float *x, int64_t n) { return MEGA_ROW(maximum)(x, n); }

void softcap(float cap, float *x, int64_t n) {
  return MEGA_ROW(softcap)(cap, x, n);
}

void softcapWithSlope(float cap, float *x, float *slope, int64_t n) {
  return MEGA_ROW(softcapWithSlope)(cap, x, slope, n);
}

void softcapExp(float cap, float factor, float shift, float *x, int64_t n) {
  return MEGA_ROW(softcapExp)(cap, factor, shift, x, n);
}

void multiply(const float *a, const float *b, float *y, int64_t n) {
  return MEGA_ROW(multiply)(a, b, y, n);
}

float expInPlace(float shift, float *x, int64_t n) {
  return MEGA_ROW(expInPlace)(shift, x, n);
}

float sumExp(float shift, const float *x, int64_t n) {
  return MEGA_ROW(sumExp)(shift, x, n);
}

void scaledExp(float factor, float shift, float *x, int64_t n) {
  return MEGA_ROW(scaledExp)(factor, shift, x, n);
}

void softmaxGrad(const float *p, float delta, float scale, float *dp,
                 int64_t n) {
  return MEGA_ROW(softmaxGrad)(p, delta, scale, dp, n);
}

} // namespace mega::rows
#endif // HWY_ONCE
