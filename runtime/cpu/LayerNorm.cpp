//===- LayerNorm.cpp - Layer normalisation and its gradient ---------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

namespace mega {
void cpu::layerNorm(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[3];
  const float *gamma = args[1].as<float>(), *beta = args[2].as<float>();
  float *mean = args[4].as<float>(), *rstd = args[5].as<float>();
  const float epsilon = static_cast<float>(args.floats[0]);
  withElement(x.type, [&]<typename T>(T) {
    forRows(ctx.pool, x.rows(), 4 * x.rowSize(), [&](int64_t row) {
      const rows::Moments moments = rows::layerNorm(
          x.row<T>(row), gamma, beta, epsilon, y.row<T>(row), x.rowSize());
      mean[row] = moments.mean;
      rstd[row] = moments.rstd;
    });
  });
}

void cpu::addLayerNorm(const KernelContext &ctx, const KernelArguments &args) {
  const View &a = args[0], &b = args[1], &sum = args[4], &y = args[5];
  const float *gamma = args[2].as<float>(), *beta = args[3].as<float>();
  float *mean = args[6].as<float>(), *rstd = args[7].as<float>();
  const float epsilon = static_cast<float>(args.floats[0]);
  withElement(a.type, [&]<typename T>(T) {
    forRows(ctx.pool, a.rows(), 5 * a.rowSize(), [&](int64_t row) {
      T *x = sum.row<T>(row);
      rows::add(a.row<T>(row), b.row<T>(row), x, a.rowSize());
      const rows::Moments moments =
          rows::layerNorm(x, gamma, beta, epsilon, y.row<T>(row), a.rowSize());
      mean[row] = moments.mean;
      rstd[row] = moments.rstd;
    });
  });
}

void cpu::layerNormGrad(const KernelContext &ctx, const KernelArguments &args) {
  const View &gradY = args[0], &x = args[1], &gradX = args[5];
  const float *gamma = args[2].as<float>();
  const float *mean = args[3].as<float>(), *rstd = args[4].as<float>();
  float *gradGamma = args[6].as<float>(), *gradBeta = args[7].as<float>();
  const int64_t hidden = x.rowSize();
  withElement(x.type, [&]<typename T>(T) {
    // Columns first: they read gradY and x, and gradX is written after.
    forColumns(ctx.pool, hidden, [&](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      for (int64_t first = 0; first < x.rows(); first += kPartialRows) {
        float sumGamma[kMaxColumns] = {}, sumBeta[kMaxColumns] = {};
        const int64_t last = std::min(x.rows(), first + kPartialRows);
        for (int64_t row = first; row < last; ++row) {
          rows::layerNormParameterGrad(
              at<T>(gradY, row, begin), at<T>(x, row, begin),
              {mean[row], rstd[row]}, sumGamma, sumBeta, n);
        }
        rows::accumulate(sumGamma, gradGamma + begin, n);
        rows::accumulate(sumBeta, gradBeta + begin, n);
      }
    });
    forRows(ctx.pool, x.rows(), 6 * hidden, [&](int64_t row) {
      rows::layerNormGrad(gradY.row<T>(row), x.row<T>(row), gamma,
                          {mean[row], rstd[row]}, args.integers[0],
                          gradX.row<T>(row), hidden);
    });
  });
}

} // namespace mega
