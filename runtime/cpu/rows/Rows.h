//===- Rows.h - Vector loops over one row -----------------------*- C++ -*-===//
//
// The inner loops of the CPU kernels, on contiguous f32 rows of n elements.
// They are compiled for several instruction sets (Highway's foreach_target)
// and pick the machine's at the first call. An output may be the same memory
// as an input of the same length, never overlap it otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_ROWS_ROWS_H
#define MEGA_RUNTIME_CPU_ROWS_ROWS_H

#include "runtime/plan/Kernels.h"
#include "runtime/plan/Philox.h"

#include <cstdint>

namespace mega::rows {

// Elements.cpp
/// y = a + b.
void add(const float *a, const float *b, float *y, int64_t n);
/// y = factor * x.
void scale(float factor, const float *x, float *y, int64_t n);
/// y += factor * a * b.
void addScaledProduct(float factor, const float *a, const float *b, float *y,
                      int64_t n);
/// The sum of a * b.
float dot(const float *a, const float *b, int64_t n);
/// Rotates the pairs (x0[i], x1[i]) by the angles, backwards when `inverse`.
void rotate(const float *x0, const float *x1, const float *cos,
            const float *sin, bool inverse, float *y0, float *y1, int64_t n);

// Activations.cpp
void gelu(GeluKind kind, const float *x, float *y, int64_t n);
void geluGrad(GeluKind kind, const float *gradY, const float *x, float *gradX,
              int64_t n);
void biasGelu(GeluKind kind, const float *x, const float *bias, float *z,
              float *y, int64_t n);
void silu(const float *x, float *y, int64_t n);
void siluGrad(const float *gradY, const float *x, float *gradX, int64_t n);
void gated(GateKind kind, const float *gate, const float *up, float *y,
           int64_t n);
void gatedGrad(GateKind kind, const float *gradY, const float *gate,
               const float *up, float *gradGate, float *gradUp, int64_t n);

// Norms.cpp
/// What a layer norm needs to know of its row.
struct Moments {
  float mean, rstd;
};
Moments layerNorm(const float *x, const float *gamma, const float *beta,
                  float epsilon, float *y, int64_t n);
void layerNormGrad(const float *gradY, const float *x, const float *gamma,
                   Moments moments, bool accumulate, float *gradX, int64_t n);
/// sumGamma += gradY * xhat; sumBeta += gradY.
void layerNormParameterGrad(const float *gradY, const float *x, Moments moments,
                            float *sumGamma, float *sumBeta, int64_t n);
/// Returns rstd; the weight is offset + gamma.
float rmsNorm(const float *x, const float *gamma, float offset, float epsilon,
              float *y, int64_t n);
void rmsNormGrad(const float *gradY, const float *x, const float *gamma,
                 float offset, float rstd, bool accumulate, float *gradX,
                 int64_t n);

// Softmax.cpp
float maximum(const float *x, int64_t n);
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
void dropout(PhiloxCounter counter, PhiloxKey key, uint32_t threshold,
             float factor, const float *x, float *y, int64_t n);

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
