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
#include "runtime/cpu/rows/Dispatch.h"
#include "runtime/cpu/rows/Lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace mega::rows::HWY_NAMESPACE {

template <typename T>
HWY_ATTR Moments layerNorm(const T *x, const float *gamma, const float *beta,
                           float epsilon, T *y, int64_t n) {
  const float mean =
      sumLanes(n, [&](auto d, int64_t i) HWY_ATTR { return load(d, x + i); }) /
      n;
  const float variance =
      sumLanes(n,
               [&](auto d, int64_t i) HWY_ATTR {
                 const auto c = hn::Sub(load(d, x + i), hn::Set(d, mean));
                 return hn::Mul(c, c);
               }) /
      n;
  const float rstd = 1.0f / std::sqrt(variance + epsilon);
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto centred = hn::Sub(load(d, x + i), hn::Set(d, mean));
    const auto xhat = hn::Mul(centred, hn::Set(d, rstd));
    const auto result = hn::MulAdd(xhat, load(d, gamma + i), load(d, beta + i));
    store(result, d, y + i);
  });
  return {mean, rstd};
}

template <typename T>
HWY_ATTR void layerNormGrad(const T *gradY, const T *x, const float *gamma,
                            Moments moments, bool accumulate, T *gradX,
                            int64_t n) {
  const auto xhat = [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::Sub(load(d, x + i), hn::Set(d, moments.mean)),
                   hn::Set(d, moments.rstd));
  };
  const auto grad = [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(load(d, gradY + i), load(d, gamma + i));
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
      result = hn::Add(load(d, gradX + i), result);
    }
    store(result, d, gradX + i);
  });
}

template <typename T>
HWY_ATTR void layerNormParameterGrad(const T *gradY, const T *x,
                                     Moments moments, float *sumGamma,
                                     float *sumBeta, int64_t n) {
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto grad = load(d, gradY + i);
    const auto xhat = hn::Mul(hn::Sub(load(d, x + i), hn::Set(d, moments.mean)),
                              hn::Set(d, moments.rstd));
    store(hn::MulAdd(grad, xhat, load(d, sumGamma + i)), d, sumGamma + i);
    store(hn::Add(grad, load(d, sumBeta + i)), d, sumBeta + i);
  });
}

template <typename T>
HWY_ATTR float rmsNorm(const T *x, const float *gamma, float offset,
                       float epsilon, T *y, int64_t n) {
  const float meanSquare = sumLanes(n,
                                    [&](auto d, int64_t i) HWY_ATTR {
                                      const auto v = load(d, x + i);
                                      return hn::Mul(v, v);
                                    }) /
                           n;
  const float rstd = 1.0f / std::sqrt(meanSquare + epsilon);
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto weight = hn::Add(hn::Set(d, offset), load(d, gamma + i));
    const auto xhat = hn::Mul(load(d, x + i), hn::Set(d, rstd));
    store(hn::Mul(xhat, weight), d, y + i);
  });
  return rstd;
}

template <typename T>
HWY_ATTR void rmsNormGrad(const T *gradY, const T *x, const float *gamma,
                          float offset, float rstd, bool accumulate, T *gradX,
                          int64_t n) {
  const auto grad = [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(load(d, gradY + i),
                   hn::Add(hn::Set(d, offset), load(d, gamma + i)));
  };
  const auto xhat = [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(load(d, x + i), hn::Set(d, rstd));
  };
  const float mean =
      sumLanes(n, [&](auto d, int64_t i)
                      HWY_ATTR { return hn::Mul(grad(d, i), xhat(d, i)); }) /
      n;
  forLanes(n, [&](auto d, int64_t i) HWY_ATTR {
    auto result = hn::NegMulAdd(xhat(d, i), hn::Set(d, mean), grad(d, i));
    result = hn::Mul(result, hn::Set(d, rstd));
    if (accumulate) {
      result = hn::Add(load(d, gradX + i), result);
    }
    store(result, d, gradX + i);
  });
}

} // namespace mega::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::rows {

template <typename T>
Moments layerNorm(const T *x, const float *gamma, const float *beta,
                  float epsilon, T *y, int64_t n) {
  return MEGA_ROW(layerNorm<T>)(x, gamma, beta, epsilon, y, n);
}
MEGA_FOR_ELEMENTS(layerNorm);

template <typename T>
void layerNormGrad(const T *gradY, const T *x, const float *gamma,
                   Moments moments, bool accumulate, T *gradX, int64_t n) {
  return MEGA_ROW(layerNormGrad<T>)(gradY, x, gamma, moments, accumulate, gradX,
                                    n);
}
MEGA_FOR_ELEMENTS(layerNormGrad);

template <typename T>
void layerNormParameterGrad(const T *gradY, const T *x, Moments moments,
                            float *sumGamma, float *sumBeta, int64_t n) {
  return MEGA_ROW(layerNormParameterGrad<T>)(gradY, x, moments, sumGamma,
                                             sumBeta, n);
}
MEGA_FOR_ELEMENTS(layerNormParameterGrad);

template <typename T>
float rmsNorm(const T *x, const float *gamma, float offset, float epsilon, T *y,
              int64_t n) {
  return MEGA_ROW(rmsNorm<T>)(x, gamma, offset, epsilon, y, n);
}
MEGA_FOR_ELEMENTS(rmsNorm);

template <typename T>
void rmsNormGrad(const T *gradY, const T *x, const float *gamma, float offset,
                 float rstd, bool accumulate, T *gradX, int64_t n) {
  return MEGA_ROW(rmsNormGrad<T>)(gradY, x, gamma, offset, rstd, accumulate,
                                  gradX, n);
}
MEGA_FOR_ELEMENTS(rmsNormGrad);

} // namespace mega::rows
#endif // HWY_ONCE
