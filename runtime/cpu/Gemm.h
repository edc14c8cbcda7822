//===- Gemm.h - Matrix products on the CPU ----------------------*- C++ -*-===//
//
// c (+)= alpha * op(a) op(b) on row-major f32 matrices with row strides, by
// OpenBLAS's serial build (docs/gemm.md: why this one). `gemm` runs on the
// whole pool: it cuts c into tiles by the shape alone and makes one library
// call for each, so the result is the same bits for any number of threads.
// `gemmTile` is one call on the calling thread, for use inside a task.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_GEMM_H
#define MEGA_RUNTIME_CPU_GEMM_H

#include "runtime/core/ThreadPool.h"

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

/// c = alpha op(a) op(b), or c += when `accumulate`; thread-safe.
void gemmTile(const GemmShape &shape, float alpha, Matrix<const float> a,
              Matrix<const float> b, bool accumulate, Matrix<float> c);

/// The same with alpha 1, in parallel. Not from inside a task.
void gemm(ThreadPool &pool, const GemmShape &shape, Matrix<const float> a,
          Matrix<const float> b, bool accumulate, Matrix<float> c);

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
