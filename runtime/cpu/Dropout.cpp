//===- Dropout.cpp - Dropout of activations -------------------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

#include <cstring>

namespace mega {
void cpu::dropout(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &y = args[1];
  const double p = args.floats[0];
  const PhiloxKey key = toPhiloxKey(dropoutKey(
      ctx.scalars.seed, ctx.scalars.step, args.integers[0], ctx.application));
  // [batch, sequence, ...]; a matrix has one position per sample.
  const int64_t positions = x.rank >= 3 ? x.dims[1] : 1;
  withElement(x.type, [&]<typename T>(T) {
    forRows(ctx.pool, x.rows(), 4 * x.rowSize(), [&](int64_t row) {
      const T *source = x.row<T>(row);
      T *target = y.row<T>(row);
      if (p == 0) {
        if (source != target) {
          std::memcpy(target, source,
                      static_cast<size_t>(x.rowSize()) * sizeof(T));
        }
        return;
      }
      rows::dropout(activationCounter(ctx.firstSample + row / positions,
                                      row % positions, 0),
                    key, dropoutThreshold(p), static_cast<float>(1 / (1 - p)),
                    source, target, x.rowSize());
    });
  });
}

} // namespace mega
