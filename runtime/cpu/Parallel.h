//===- Parallel.h - How kernels cut their loops -----------------*- C++ -*-===//
//
// Cuts depend on shapes alone, so results do not depend on the number of
// threads.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_PARALLEL_H
#define MEGA_RUNTIME_CPU_PARALLEL_H

#include "runtime/core/Kernel.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/plan/BFloat16.h"

#include <algorithm>

namespace mega {

constexpr int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Elements of one task of a cheap loop: a few microseconds.
inline constexpr int64_t kTaskElements = int64_t{1} << 14;

/// body(row) for all rows, by runs of rows. `rowCost` is the work for a row,
/// in elements.
template <typename Body>
void forRows(ThreadPool &pool, int64_t rows, int64_t rowCost, Body &&body) {
  const int64_t run =
      std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, rowCost));
  pool.parallelFor(ceilDiv(rows, run), [&](int64_t task, auto) {
    const int64_t end = std::min(rows, (task + 1) * run);
    for (int64_t row = task * run; row < end; ++row) {
      body(row);
    }
  });
}

/// body(row, column, count) for pieces that cover operands of one shape. Row
/// and column address an operand by `at`.
template <typename Body>
void forPieces(ThreadPool &pool, std::span<const View> operands, Body &&body) {
  const bool dense =
      std::all_of(operands.begin(), operands.end(),
                  [](const View &v) { return v.isContiguous(); });
  const int64_t rows = dense ? 1 : operands[0].rows();
  const int64_t size = dense ? operands[0].elements() : operands[0].rowSize();
  if (size <= kTaskElements) {
    forRows(pool, rows, size, [&](int64_t row) { body(row, 0, size); });
    return;
  }
  const int64_t pieces = ceilDiv(size, kTaskElements);
  pool.parallelFor(rows * pieces, [&](int64_t task, auto) {
    const int64_t column = task % pieces * kTaskElements;
    body(task / pieces, column, std::min(kTaskElements, size - column));
  });
}

template <typename T> T *at(const View &view, int64_t row, int64_t column) {
  return view.row<T>(row) + column;
}

/// body(T()) with the C++ type of f32 or bf16.
template <typename Body> void withElement(DataType type, Body &&body) {
  type == DataType::BF16 ? body(BFloat16()) : body(float());
}

/// Columns of one task of a sum over rows, at most kMaxColumns.
inline constexpr int64_t kMaxColumns = 128;
/// body(begin, end) for blocks that cover `columns` columns.
template <typename Body>
void forColumns(ThreadPool &pool, int64_t columns, Body &&body) {
  const int64_t width =
      std::clamp<int64_t>(columns / 8 / 16 * 16, 16, kMaxColumns);
  pool.parallelFor(ceilDiv(columns, width), [&](int64_t task, auto) {
    body(task * width, std::min(columns, (task + 1) * width));
  });
}
/// Sums over rows go through partial sums of this many rows: the error grows
/// with the number of partial sums, not of rows.
inline constexpr int64_t kPartialRows = 64;

} // namespace mega

#endif // MEGA_RUNTIME_CPU_PARALLEL_H
