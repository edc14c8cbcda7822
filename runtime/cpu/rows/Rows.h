//===- Rows.h - Vector loops over one row -----------------------*- C++ -*-===//
//
// The inner loops of the CPU kernels, on contiguous rows of n elements. T is
// float or BFloat16; arithmetic is f32 in either case, results are rounded to T
// where they are stored.
// They are compiled for several instruction sets (Highway's foreach_target)
// and pick the machine's at the first call. An output may be the same memory
// as an input of the same length, never overlap it otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_ROWS_ROWS_H
#define MEGA_RUNTIME_CPU_ROWS_ROWS_H

#include "runtime/plan/BFloat16.h"
#include "runtime/plan/Kernels.h"
#include "runtime/plan/Philox.h"

#include <cstdint>

namespace mega::rows {

// Elements.cpp
void widen(const BFloat16 *x, float *y, int64_t n);
void narrow(const float *x, BFloat16 *y, int64_t n);
/// y = a + b.
template <typename T> void add(const T *a, const T *b, T *y, int64_t n);
/// y = x + bias.
template <typename T>
void addBias(const T *x, const float *bias, T *y, int64_t n);
/// sum += x.
template <typename T> void accumulate(const T *x, float *sum, int64_t n);
/// y = factor * x.
template <typename T> void scale(float factor, const T *x, T *y, int64_t n);
/// sum += factor * a * b.
template <typename T>
void addScaledProduct(float factor, const T *a, const T *b, float *sum,
                      int64_t n);
/// The sum of a * b.
template <typename T> float dot(const T *a, const T *b, int64_t n);
/// Rotates the pairs (x0[i], x1[i]) by the angles, backwards when `inverse`.
template <typename T>
void rotate(const T *x0, const T *x1, const float *cos, const float *sin,
            bool inverse, T *y0, T *y1, int64_t n);

// Activations.cpp
template <typename T> void gelu(GeluKind kind, const T *x, T *y, int64_t n);
template <typename T>
void geluGrad(GeluKind kind, const T *gradY, const T *x, T *gradX, int64_t n);
template <typename T>
void biasGelu(GeluKind kind, const T *x, const float *bias, T *z, T *y,
              int64_t n);
template <typename T> void silu(const T *x, T *y, int64_t n);
template <typename T>
void siluGrad(const T *gradY, const T *x, T *gradX, int64_t n);
template <typename T>
void gated(GateKind kind, const T *gate, const T *up, T *y, int64_t n);
template <typename T>
void gatedGrad(GateKind kind, const T *gradY, const T *gate, const T *up,
               T *gradGate, T *gradUp, int64_t n);

// Norms.cpp
/// What a layer norm needs to know of its row.
struct Moments {
  float mean, rstd;
};
template <typename T>
Moments layerNorm(const T *x, const float *gamma, const float *beta,
                  float epsilon, T *y, int64_t n);
template <typename T>
void layerNormGrad(const T *gradY, const T *x, const float *gamma,
                   Moments moments, bool accumulate, T *gradX, int64_t n);
/// sumGamma += gradY * xhat; sumBeta += gradY.
template <typename T>
void layerNormParameterGrad(const T *gradY, const T *x, Moments moments,
                            float *sumGamma, float *sumBeta, int64_t n);
/// Returns rstd; the weight is offset + gamma.
template <typename T>
float rmsNorm(const T *x, const float *gamma, float offset, float epsilon, T *y,
              int64_t n);
template <typename T>
void rmsNormGrad(const T *gradY, const T *x, const float *gamma, float offset,
                 float rstd, bool accumulate, T *gradX, int64_t n);

// Softmax.cpp
float maximum(const float *x, int64_t n);
/// x = cap * tanh(x / cap).
void softcap(float cap, float *x, int64_t n);
/// The same; slope is its derivative, 1 - tanh^2.
void softcapWithSlope(float cap, float *x, float *slope, int64_t n);
/// x = factor * exp(z - shift) * dz/dx, z = cap * tanh(x / cap).
void softcapExp(float cap, float factor, float shift, float *x, int64_t n);
/// y = a * b.
void multiply(const float *a, const float *b, float *y, int64_t n);
/// x = exp(x - shift); returns the sum.
float expInPlace(float shift, float *x, int64_t n);
/// The sum of exp(x - shift).
float sumExp(float shift, const float *x, int64_t n);
/// x = factor * exp(x - shift).
void scaledExp(float factor, float shift, float *x, int64_t n);
/// dp = p * (dp - delta) * scale: the softmax's gradient to its scores.
void softmaxGrad(const float *p, float delta, float scale, float *dp,
                 int64_t n);

// Random.cpp
/// Dropout of a row whose first element is number 0 of `counter`, the counter
/// of four consecutive elements whose word 0 counts such groups:
/// y = keep ? factor * x : 0.
template <typename T>
void dropout(PhiloxCounter counter, PhiloxKey key, uint32_t threshold,
             float factor, const T *x, T *y, int64_t n);

// Optimizer.cpp
/// The sum of squares in f64.
double sumSquares(const float *x, int64_t n);
/// One AdamW step: what the step's scalars come to.
struct AdamWStep {
  float lr, beta1, beta2, epsilon, weightDecay;
  /// 1 / (1 - beta^step).
  float correction1, correction2;
  float gradScale;
};
void adamW(const AdamWStep &step, float *weight, const float *grad,
           float *moment, float *variance, int64_t n);

} // namespace mega::rows

#endif // MEGA_RUNTIME_CPU_ROWS_ROWS_H
