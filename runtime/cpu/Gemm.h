//===- Gemm.h - Matrix products on the CPU ----------------------*- C++ -*-===//
//
// c (+)= alpha * op(a) op(b) on row-major matrices with row strides, by
// OpenBLAS's serial build (docs/gemm.md: why this one). `gemm` runs on the
// whole pool: it cuts c into tiles by the shape alone, so the result is the
// same bits for any number of threads. A tile of f32 matrices is one library
// call; bf16 matrices are widened to f32 in the thread's scratch, a block of k
// at a time, summed in f32, and rounded once. `gemmTile` is one call on the
// calling thread, for use inside a task.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_GEMM_H
#define MEGA_RUNTIME_CPU_GEMM_H

#include "runtime/core/Kernel.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/plan/BFloat16.h"

#include <cstdint>

namespace mega {

/// op(a) is [m, k], op(b) is [k, n], c is [m, n]; a transposed a is stored as
/// [k, m], a transposed b as [n, k].
struct GemmShape {
  int64_t m, n, k;
  bool transposeA = false;
  bool transposeB = false;
};

/// A matrix in memory; `stride` is the distance of its rows in elements.
template <typename T> struct Matrix {
  T *data;
  int64_t stride;
};

/// A matrix of f32 or bf16.
struct AnyMatrix {
  std::byte *data;
  int64_t stride;
  DataType type;

  AnyMatrix(Matrix<float> m)
      : data(reinterpret_cast<std::byte *>(m.data)), stride(m.stride),
        type(DataType::F32) {}
  /// The rows of a view, from `row` on.
  explicit AnyMatrix(const View &view, int64_t row = 0)
      : data(view.data + row * view.rowStride * byteSize(view.type)),
        stride(view.rowStride), type(view.type) {}

  template <typename T> T *at(int64_t row, int64_t column) const {
    return reinterpret_cast<T *>(data) + row * stride + column;
  }
  /// The submatrix whose first element is (row, column).
  AnyMatrix from(int64_t row, int64_t column) const {
    AnyMatrix part = *this;
    part.data += (row * stride + column) * byteSize(type);
    return part;
  }
};

/// c = alpha op(a) op(b), or c += when `accumulate`; thread-safe.
void gemmTile(const GemmShape &shape, float alpha, Matrix<const float> a,
              Matrix<const float> b, bool accumulate, Matrix<float> c);

/// The same with alpha 1, in parallel. Not from inside a task.
void gemm(ThreadPool &pool, const GemmShape &shape, AnyMatrix a, AnyMatrix b,
          bool accumulate, AnyMatrix c);

/// How `gemm` cuts c.
struct GemmCut {
  int64_t tileM, tileN;
};
GemmCut gemmCut(int64_t m, int64_t n);

/// Lets every thread of the pool map its packing buffer, which it keeps, so
/// that no later call makes a system call. Once per pool, before step 0.
void warmUpGemm(ThreadPool &pool);

} // namespace mega

#endif // MEGA_RUNTIME_CPU_GEMM_H
