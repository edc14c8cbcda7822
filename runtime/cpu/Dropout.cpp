//===- Dropout.cpp - Dropout of activations -------------------------------===//
#include "runtime/cpu/DropoutRow.h"
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"

#include <cstring>

namespace mega {

/// Dropout of x, whose rows are at positionOf(row) of sampleOf(row) and begin
/// with feature `feature`.
template <typename Sample, typename Position>
static void dropRows(const KernelContext &ctx, const KernelArguments &args,
                     const View &y, int64_t feature, Sample &&sampleOf,
                     Position &&positionOf) {
  const View &x = args[0];
  const double p = args.floats[0];
  const uint32_t threshold = dropoutThreshold(p);
  const auto factor = static_cast<float>(1 / (1 - p));
  const PhiloxKey key = toPhiloxKey(dropoutKey(
      ctx.scalars.seed, ctx.scalars.step, args.integers[0], ctx.application));
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
      const int64_t sample = sampleOf(row), position = positionOf(row);
      dropoutFrom(
          feature,
          [&](int64_t quad) {
            return activationCounter(sample, position, quad);
          },
          key, threshold, factor, source, target, x.rowSize());
    });
  });
}

void cpu::dropout(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0];
  // [batch, sequence, ...]; a matrix has one position per sample.
  const int64_t positions = x.rank >= 3 ? x.dims[1] : 1;
  dropRows(
      ctx, args, args[1], args.integers[2],
      [&](int64_t row) { return ctx.firstSample + row / positions; },
      [&](int64_t row) { return args.integers[1] + row % positions; });
}

void cpu::dropoutAt(const KernelContext &ctx, const KernelArguments &args) {
  const int64_t sequence = args[0].dims[1];
  const int32_t *positions = args[1].as<int32_t>();
  const int32_t *segments = args[2].as<int32_t>();
  dropRows(
      ctx, args, args[3], args.integers[1],
      [&](int64_t row) { return ctx.firstSample + row / sequence; },
      [&](int64_t row) { return int64_t{positions[row]} + segments[row]; });
}

} // namespace mega
