//===- Optimizer.cpp - Gradient norm and AdamW ----------------------------===//
#include "runtime/cpu/rows/Rows.h"

// clang-format off
#include "runtime/cpu/rows/Targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/rows/Optimizer.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "runtime/cpu/rows/Dispatch.h"
#include "runtime/cpu/rows/Lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace mega::rows::HWY_NAMESPACE {

double sumSquares(const float *x, int64_t n) {
  constexpr int kSums = 16;
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (int j = 0; j < kSums; ++j) {
      const double value = x[i + j];
      sums[j] += value * value;
    }
  }
  double total = 0;
  for (; i < n; ++i) {
    total += static_cast<double>(x[i]) * x[i];
  }
  for (double sum : sums) {
    total += sum;
  }
  return total;
}

void adamW(const AdamWStep &s, float *weight, const float *grad, float *moment,
           float *variance, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto set = [d](float value) HWY_ATTR { return hn::Set(d, value); };
    const auto g = hn::Mul(set(s.gradScale), hn::LoadU(d, grad + i));
    // m + (1 - beta) (g - m) is beta m + (1 - beta) g.
    auto m = hn::LoadU(d, moment + i);
    m = hn::MulAdd(set(1 - s.beta1), hn::Sub(g, m), m);
    auto v = hn::LoadU(d, variance + i);
    v = hn::MulAdd(set(1 - s.beta2), hn::Sub(hn::Mul(g, g), v), v);
    hn::StoreU(m, d, moment + i);
    hn::StoreU(v, d, variance + i);
    const auto root = hn::Sqrt(hn::Mul(v, set(s.correction2)));
    auto update =
        hn::Div(hn::Mul(m, set(s.correction1)), hn::Add(root, set(s.epsilon)));
    const auto w = hn::LoadU(d, weight + i);
    update = hn::MulAdd(set(s.weightDecay), w, update);
    hn::StoreU(hn::NegMulAdd(set(s.lr), update, w), d, weight + i);
  });
}

} // namespace mega::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::rows {

double sumSquares(const float *x, int64_t n) {
  return MEGA_ROW(sumSquares)(x, n);
}

void adamW(const AdamWStep &step, float *weight, const float *grad,
           float *moment, float *variance, int64_t n) {
  return MEGA_ROW(adamW)(step, weight, grad, moment, variance, n);
}

} // namespace mega::rows
#endif // HWY_ONCE
