//===- Bias.cpp - Bias, its gradient, and bias with GELU ------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

namespace mega {
void cpu::addBias(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[2];
  withElement(x.type, [&]<typename T>(T) {
    forRows(ctx.pool, x.rows(), x.rowSize(), [&](int64_t row) {
      rows::addBias(x.row<T>(row), args[1].as<float>(), y.row<T>(row),
                    x.rowSize());
    });
  });
}

void cpu::biasGrad(const KernelContext &ctx, const KernelArguments &args) {
  const View &gradY = args[0];
  float *gradBias = args[1].as<float>();
  withElement(gradY.type, [&]<typename T>(T) {
    forColumns(ctx.pool, gradY.rowSize(), [&](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      for (int64_t first = 0; first < gradY.rows(); first += kPartialRows) {
        float sum[kMaxColumns] = {};
        const int64_t last = std::min(gradY.rows(), first + kPartialRows);
        for (int64_t row = first; row < last; ++row) {
          rows::accumulate(at<T>(gradY, row, begin), sum, n);
        }
        rows::accumulate(sum, gradBias + begin, n);
      }
    });
  });
}

void cpu::biasGelu(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &z = args[2], &y = args[3];
  const auto kind = static_cast<GeluKind>(args.integers[0]);
  withElement(x.type, [&]<typename T>(T) {
    forRows(ctx.pool, x.rows(), 4 * x.rowSize(), [&](int64_t row) {
      rows::biasGelu(kind, x.row<T>(row), args[1].as<float>(), z.row<T>(row),
                     y.row<T>(row), x.rowSize());
    });
  });
}

} // namespace mega
