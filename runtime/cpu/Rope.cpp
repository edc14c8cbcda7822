//===- Rope.cpp - Rotary position embedding -------------------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"
#include "runtime/plan/RopeFrequencies.h"

#include <cmath>

namespace mega {
void cpu::ropeTable(const KernelContext &ctx, const KernelArguments &args) {
  const View &table = args[0];
  const int64_t dim = table.dims[1], half = dim / 2;
  const RopeScaling scaling = RopeScaling::of(args.integers, args.floats);
  forRows(ctx.pool, table.rows(), 32 * table.rowSize(), [&](int64_t s) {
    float *row = table.row<float>(s);
    for (int64_t i = 0; i < half; ++i) {
      const double angle = s * ropeFrequency(scaling, args.floats[0], dim, i);
      row[i] = static_cast<float>(scaling.attentionFactor * std::cos(angle));
      row[half + i] =
          static_cast<float>(scaling.attentionFactor * std::sin(angle));
    }
  });
}

/// Rows of x by the table's row positionOf(row).
template <typename Position>
static void rotateRows(const KernelContext &ctx, const KernelArguments &args,
                       const View &y, Position positionOf) {
  const View &x = args[0], &table = args[1];
  const int64_t heads = x.dims[2], dim = x.dims[3];
  const int64_t half = dim / 2;
  withElement(x.type, [&]<typename T>(T) {
    forRows(ctx.pool, x.rows(), 2 * x.rowSize(), [&](int64_t row) {
      const float *cos = table.row<float>(positionOf(row));
      for (int64_t h = 0; h < heads; ++h) {
        const T *from = at<T>(x, row, h * dim);
        T *to = at<T>(y, row, h * dim);
        rows::rotate(from, from + half, cos, cos + half, args.integers[0], to,
                     to + half, half);
      }
    });
  });
}

void cpu::rope(const KernelContext &ctx, const KernelArguments &args) {
  rotateRows(ctx, args, args[2], [sequence = args[0].dims[1]](int64_t row) {
    return row % sequence;
  });
}

void cpu::ropeAt(const KernelContext &ctx, const KernelArguments &args) {
  rotateRows(ctx, args, args[3],
             [positions = args[2].as<int32_t>()](int64_t row) {
               return positions[row];
             });
}

} // namespace mega
