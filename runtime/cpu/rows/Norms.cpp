//===- Norms.cpp - Layer norm and RMS norm of a row -----------------------===//
#include "runtime/cpu/rows/Rows.h"

#include <cmath>

// clang-format off
#include "runtime/cpu/rows/Targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/rows/Norms.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "runtime/cpu/rows/Lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace mega::rows::HWY_NAMESPACE {

Moments layerNorm(const float *x, const float *gamma, const float *beta,
                  float epsilon, float *y, int64_t n) {
  const float mean = sumLanes(n, [&](auto d, int64_t i)
                                     HWY_ATTR { return hn::LoadU(d, x + i); }) /
                     n;
  const float variance =
      sumLanes(n,
               [&](auto d, int64_t i) HWY_ATTR {
                 const auto c = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
                 return hn::Mul(c, c);
               }) /
      n;
  const float rstd = 1.0f / std::sqrt(variance + epsilon);
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
    const auto xhat = hn::Mul(centred, hn::Set(d, rstd));
    const auto result =
        hn::MulAdd(xhat, hn::LoadU(d, gamma + i), hn::LoadU(d, beta + i));
    hn::StoreU(result, d, y + i);
  });
  return {mean, rstd};
}

void layerNormGrad(const float *gradY, const float *x, const float *gamma,
                   Moments moments, bool accumulate, float *gradX, int64_t n) {
  const auto xhat = [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, moments.mean)),
                   hn::Set(d, moments.rstd));
  };
  const auto grad = [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, gradY + i), hn::LoadU(d, gamma + i));
  };
  const float meanGrad = sumLanes(n, grad) / n;
  const float meanGradXhat =
      sumLanes(n, [&](auto d, int64_t i)
                      HWY_ATTR { return hn::Mul(grad(d, i), xhat(d, i)); }) /
      n;
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    auto result = hn::Sub(grad(d, i), hn::Set(d, meanGrad));
    result = hn::NegMulAdd(xhat(d, i), hn::Set(d, meanGradXhat), result);
    result = hn::Mul(result, hn::Set(d, moments.rstd));
    if (accumulate) {
      result = hn::Add(hn::LoadU(d, gradX + i), result);
    }
    hn::StoreU(result, d, gradX + i);
  });
}

void layerNormParameterGrad(const float *gradY, const float *x, Moments moments,
                            float *sumGamma, float *sumBeta, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto grad = hn::LoadU(d, gradY + i);
    const auto xhat =
        hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, moments.mean)),
                hn::Set(d, moments.rstd));
    hn::StoreU(hn::MulAdd(grad, xhat, hn::LoadU(d, sumGamma + i)), d,
               sumGamma + i);
    hn::StoreU(hn::Add(grad, hn::LoadU(d, sumBeta + i)), d, sumBeta + i);
  });
}

float rmsNorm(const float *x, const float *gamma, float offset, float epsilon,
              float *y, int64_t n) {
  const float meanSquare = sumLanes(n,
                                    [&](auto d, int64_t i) HWY_ATTR {
                                      const auto v = hn::LoadU(d, x + i);
                                      return hn::Mul(v, v);
                                    }) /
                           n;
  const float rstd = 1.0f / std::sqrt(meanSquare + epsilon);
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto weight = hn::Add(hn::Set(d, offset), hn::LoadU(d, gamma + i));
    const auto xhat = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, rstd));
    hn::StoreU(hn::Mul(xhat, weight), d, y + i);
  });
  return rstd;
}

void rmsNormGrad(const float *gradY, const float *x, const float *gamma,
                 float offset, float rstd, bool accumulate, float *gradX,
                 int64_t n) {
  const auto grad = [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, gradY + i),
                   hn::Add(hn::Set(d, offset), hn::LoadU(d, gamma + i)));
  };
  const auto xhat = [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, x + i), hn::Set(d, rstd));
  };
  const float mean =
      sumLanes(n, [&](auto d, int64_t i)
                      HWY_ATTR { return hn::Mul(grad(d, i), xhat(d, i)); }) /
      n;
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    auto result = hn::NegMulAdd(xhat(d, i), hn::Set(d, mean), grad(d, i));
    result = hn::Mul(result, hn::Set(d, rstd));
    if (accumulate) {
      result = hn::Add(hn::LoadU(d, gradX + i), result);
    }
    hn::StoreU(result, d, gradX + i);
  });
}

} // namespace mega::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::rows {

HWY_EXPORT(layerNorm);
Moments layerNorm(const float *x, const float *gamma, const float *beta,
                  float epsilon, float *y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(layerNorm)(x, gamma, beta, epsilon, y, n);
}

HWY_EXPORT(layerNormGrad);
void layerNormGrad(const float *gradY, const float *x, const float *gamma,
                   Moments moments, bool accumulate, float *gradX, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(layerNormGrad)(gradY, x, gamma, moments,
                                             accumulate, gradX, n);
}

HWY_EXPORT(layerNormParameterGrad);
void layerNormParameterGrad(const float *gradY, const float *x, Moments moments,
                            float *sumGamma, float *sumBeta, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(layerNormParameterGrad)(gradY, x, moments,
                                                      sumGamma, sumBeta, n);
}

HWY_EXPORT(rmsNorm);
float rmsNorm(const float *x, const float *gamma, float offset, float epsilon,
              float *y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(rmsNorm)(x, gamma, offset, epsilon, y, n);
}

HWY_EXPORT(rmsNormGrad);
void rmsNormGrad(const float *gradY, const float *x, const float *gamma,
                 float offset, float rstd, bool accumulate, float *gradX,
                 int64_t n) {
  return HWY_DYNAMIC_DISPATCH(rmsNormGrad)(gradY, x, gamma, offset, rstd,
                                           accumulate, gradX, n);
}

} // namespace mega::rows
#endif // HWY_ONCE
