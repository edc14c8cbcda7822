#include "runtime/cpu/Gemm.h"

#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"

#include <openblas-serial/cblas.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

// Every call of the library takes a packing buffer from its table and returns
// it. The serial build does so without a lock: two threads may get the same
// one. The linker sends these calls to us instead (--wrap, see CMakeLists.txt),
// and each thread keeps a buffer of its own. The names are the linker's.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" void *__real_blas_memory_alloc(int);
extern "C" void __real_blas_memory_free(void *);

namespace {
std::mutex tableMutex;

struct PackingBuffer {
  void *data;

  PackingBuffer() {
    std::lock_guard lock(tableMutex);
    data = __real_blas_memory_alloc(0);
  }
  ~PackingBuffer() {
    std::lock_guard lock(tableMutex);
    __real_blas_memory_free(data);
  }
};
} // namespace

extern "C" void *__wrap_blas_memory_alloc(int) {
  thread_local PackingBuffer buffer;
  return buffer.data;
}
extern "C" void __wrap_blas_memory_free(void *) {}
// NOLINTEND(bugprone-reserved-identifier)

namespace mega {
namespace {
/// Tiles large enough for the library's full speed, small enough to balance.
constexpr int64_t kTileM = 128, kTileN = 256;
constexpr int64_t kSmallestTile = 64;
constexpr int64_t kEnoughTiles = 8;

/// The least tile, in steps of 16, that cuts `extent` into as many pieces as
/// `tile` does: the pieces are of about the same size.
int64_t even(int64_t extent, int64_t tile) {
  const int64_t pieces = std::max<int64_t>(1, ceilDiv(extent, tile));
  return std::max<int64_t>(16, ceilDiv(ceilDiv(extent, pieces), 16) * 16);
}
} // namespace

void gemmTile(const GemmShape &shape, float alpha, Matrix<const float> a,
              Matrix<const float> b, bool accumulate, Matrix<float> c) {
  // A row stride of one row is never used but must pass the library's check.
  const int64_t colsA = shape.transposeA ? shape.m : shape.k;
  const int64_t colsB = shape.transposeB ? shape.k : shape.n;
  const auto stride = [](int64_t stride, int64_t columns) {
    return static_cast<blasint>(std::max(stride, columns));
  };
  cblas_sgemm(CblasRowMajor, shape.transposeA ? CblasTrans : CblasNoTrans,
              shape.transposeB ? CblasTrans : CblasNoTrans,
              static_cast<blasint>(shape.m), static_cast<blasint>(shape.n),
              static_cast<blasint>(shape.k), alpha, a.data,
              stride(a.stride, colsA), b.data, stride(b.stride, colsB),
              accumulate ? 1.0f : 0.0f, c.data, stride(c.stride, shape.n));
}

GemmCut gemmCut(int64_t m, int64_t n) {
  int64_t tileM = kTileM, tileN = kTileN;
  while (ceilDiv(m, tileM) * ceilDiv(n, tileN) < kEnoughTiles) {
    if (tileN > kSmallestTile && tileN >= tileM) {
      tileN /= 2;
    } else if (tileM > kSmallestTile) {
      tileM /= 2;
    } else {
      break;
    }
  }
  return {even(m, tileM), even(n, tileN)};
}

void gemm(ThreadPool &pool, const GemmShape &shape, Matrix<const float> a,
          Matrix<const float> b, bool accumulate, Matrix<float> c) {
  const GemmCut cut = gemmCut(shape.m, shape.n);
  const int64_t tilesM = ceilDiv(shape.m, cut.tileM);
  const int64_t tilesN = ceilDiv(shape.n, cut.tileN);
  pool.parallelFor(tilesM * tilesN, [&](int64_t task, std::span<std::byte>) {
    const int64_t i = task / tilesN * cut.tileM;
    const int64_t j = task % tilesN * cut.tileN;
    GemmShape tile = shape;
    tile.m = std::min(cut.tileM, shape.m - i);
    tile.n = std::min(cut.tileN, shape.n - j);
    gemmTile(tile, 1.0f,
             {a.data + (shape.transposeA ? i : i * a.stride), a.stride},
             {b.data + (shape.transposeB ? j * b.stride : j), b.stride},
             accumulate, {c.data + i * c.stride + j, c.stride});
  });
}

void warmUpGemm(ThreadPool &pool) {
  // A task that waits for all others keeps its thread from taking a second.
  std::atomic<int> arrived{0};
  pool.parallelFor(pool.threads(), [&](int64_t, auto) {
    const float a[4] = {1, 0, 0, 1};
    float c[4];
    gemmTile({2, 2, 2}, 1.0f, {a, 2}, {a, 2}, false, {c, 2});
    arrived.fetch_add(1);
    while (arrived.load() < pool.threads()) {
      std::this_thread::yield();
    }
  });
}

void cpu::gemm(const KernelContext &ctx, const KernelArguments &args) {
  const View &a = args[0], &b = args[1], &c = args[2];
  const bool transposeA = args.integers[0], transposeB = args.integers[1];
  mega::gemm(ctx.pool,
             {c.rows(), c.rowSize(), transposeA ? a.rows() : a.rowSize(),
              transposeA, transposeB},
             {a.as<float>(), a.rowStride}, {b.as<float>(), b.rowStride},
             args.integers[2], {c.as<float>(), c.rowStride});
}

} // namespace mega
