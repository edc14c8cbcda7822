//===- Dropout.cpp - Dropout of activations -------------------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

#include <algorithm>
#include <cstring>

namespace mega {
namespace {
/// A row of `n` features from `feature` on, of one position of one sample.
template <typename T>
void dropoutRow(int64_t sample, int64_t position, int64_t feature,
                PhiloxKey key, double p, const T *x, T *y, int64_t n) {
  const uint32_t threshold = dropoutThreshold(p);
  const auto factor = static_cast<float>(1 / (1 - p));
  // A counter has four features: begin inside of one on the side.
  const int64_t before = feature % 4;
  const int64_t head = before == 0 ? 0 : std::min(n, 4 - before);
  if (head > 0) {
    T quad[4] = {};
    std::copy_n(x, head, quad + before);
    rows::dropout(activationCounter(sample, position, feature / 4), key,
                  threshold, factor, quad, quad, before + head);
    std::copy_n(quad + before, head, y);
  }
  rows::dropout(activationCounter(sample, position, (feature + head) / 4), key,
                threshold, factor, x + head, y + head, n - head);
}
} // namespace

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
      dropoutRow(ctx.firstSample + row / positions,
                 args.integers[1] + row % positions, args.integers[2], key, p,
                 source, target, x.rowSize());
    });
  });
}

} // namespace mega
