//===- RmsNorm.cpp - Root-mean-square normalisation and its gradient ------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

namespace mega {
namespace {
/// A norm over the last dimension: rows hold one vector, or one per head.
struct Groups {
  int64_t size, perRow;

  explicit Groups(const View &x)
      : size(x.dims[x.rank - 1]), perRow(x.rowSize() / size) {}
};
} // namespace

void cpu::rmsNorm(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[2];
  const float *gamma = args[1].as<float>();
  float *rstd = args[3].as<float>();
  const float epsilon = static_cast<float>(args.floats[0]);
  const float offset = static_cast<float>(args.floats[1]);
  const Groups groups(x);
  withElement(x.type, [&]<typename T>(T) {
    forRows(ctx.pool, x.rows(), 3 * x.rowSize(), [&](int64_t row) {
      for (int64_t g = 0; g < groups.perRow; ++g) {
        rstd[row * groups.perRow + g] =
            rows::rmsNorm(at<T>(x, row, g * groups.size), gamma, offset,
                          epsilon, at<T>(y, row, g * groups.size), groups.size);
      }
    });
  });
}

void cpu::addRmsNorm(const KernelContext &ctx, const KernelArguments &args) {
  const View &a = args[0], &b = args[1], &sum = args[3], &y = args[4];
  const float *gamma = args[2].as<float>();
  float *rstd = args[5].as<float>();
  const float epsilon = static_cast<float>(args.floats[0]);
  const float offset = static_cast<float>(args.floats[1]);
  withElement(a.type, [&]<typename T>(T) {
    forRows(ctx.pool, a.rows(), 4 * a.rowSize(), [&](int64_t row) {
      T *x = sum.row<T>(row);
      rows::add(a.row<T>(row), b.row<T>(row), x, a.rowSize());
      rstd[row] =
          rows::rmsNorm(x, gamma, offset, epsilon, y.row<T>(row), a.rowSize());
    });
  });
}

void cpu::rmsNormGrad(const KernelContext &ctx, const KernelArguments &args) {
  const View &gradY = args[0], &x = args[1], &gradX = args[4];
  const float *gamma = args[2].as<float>(), *rstd = args[3].as<float>();
  float *gradGamma = args[5].as<float>();
  const float offset = static_cast<float>(args.floats[0]);
  const Groups groups(x);
  withElement(x.type, [&]<typename T>(T) {
    // Columns first: they read gradY and x, and gradX is written after.
    forColumns(ctx.pool, groups.size, [&](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      for (int64_t first = 0; first < x.rows(); first += kPartialRows) {
        float sum[kMaxColumns] = {};
        const int64_t last = std::min(x.rows(), first + kPartialRows);
        for (int64_t row = first; row < last; ++row) {
          for (int64_t g = 0; g < groups.perRow; ++g) {
            const int64_t column = g * groups.size + begin;
            rows::addScaledProduct(rstd[row * groups.perRow + g],
                                   at<T>(gradY, row, column),
                                   at<T>(x, row, column), sum, n);
          }
        }
        rows::accumulate(sum, gradGamma + begin, n);
      }
    });
    forRows(ctx.pool, x.rows(), 5 * x.rowSize(), [&](int64_t row) {
      for (int64_t g = 0; g < groups.perRow; ++g) {
        const int64_t column = g * groups.size;
        rows::rmsNormGrad(at<T>(gradY, row, column), at<T>(x, row, column),
                          gamma, offset, rstd[row * groups.perRow + g],
                          args.integers[0], at<T>(gradX, row, column),
                          groups.size);
      }
    });
  });
}

} // namespace mega
