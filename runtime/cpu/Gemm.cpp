#include "runtime/cpu/Gemm.h"

#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

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

/// Columns of op(a) that are widened at a time, and what keeps the rows of a
/// buffer from sharing the sets of a cache.
constexpr int64_t kBlockK = 256, kPad = 16;
/// Floats of a buffer for `tile` rows or columns and kBlockK of the others.
constexpr int64_t panelFloats(int64_t tile) {
  return std::max(tile * (kBlockK + kPad), kBlockK * (tile + kPad));
}
static_assert((panelFloats(kTileM) + panelFloats(kTileN) +
               kTileM * (kTileN + kPad)) *
                  sizeof(float) <=
              ThreadPool::kScratchBytes);

/// The first rows x columns of `m` as f32: as they are, or widened.
Matrix<const float> widened(AnyMatrix m, int64_t rows, int64_t columns,
                            float *buffer) {
  if (m.type == DataType::F32) {
    return {m.at<float>(0, 0), m.stride};
  }
  const int64_t stride = columns + kPad;
  for (int64_t row = 0; row < rows; ++row) {
    rows::widen(m.at<BFloat16>(row, 0), buffer + row * stride, columns);
  }
  return {buffer, stride};
}

/// gemmTile with alpha 1 for a tile of `gemm`.
void anyTile(const GemmShape &shape, AnyMatrix a, AnyMatrix b, bool accumulate,
             AnyMatrix c, std::span<std::byte> scratch) {
  const auto plain = [](AnyMatrix m) { return m.type == DataType::F32; };
  const auto read = [](AnyMatrix m) {
    return Matrix<const float>{m.at<float>(0, 0), m.stride};
  };
  if (plain(a) && plain(b) && plain(c)) {
    gemmTile(shape, 1.0f, read(a), read(b), accumulate,
             {c.at<float>(0, 0), c.stride});
    return;
  }
  auto *bufferA = reinterpret_cast<float *>(scratch.data());
  float *bufferB = bufferA + panelFloats(kTileM);
  float *bufferC = bufferB + panelFloats(kTileN);
  Matrix<float> sum = {c.at<float>(0, 0), c.stride};
  if (!plain(c)) {
    sum = {bufferC, shape.n + kPad};
    if (accumulate) {
      widened(c, shape.m, shape.n, bufferC);
    }
  }
  for (int64_t k = 0; k < shape.k; k += kBlockK) {
    GemmShape block = shape;
    block.k = std::min(kBlockK, shape.k - k);
    const auto partA = shape.transposeA
                           ? widened(a.from(k, 0), block.k, shape.m, bufferA)
                           : widened(a.from(0, k), shape.m, block.k, bufferA);
    const auto partB = shape.transposeB
                           ? widened(b.from(0, k), shape.n, block.k, bufferB)
                           : widened(b.from(k, 0), block.k, shape.n, bufferB);
    gemmTile(block, 1.0f, partA, partB, accumulate || k > 0, sum);
  }
  for (int64_t row = 0; row < shape.m && !plain(c); ++row) {
    rows::narrow(sum.data + row * sum.stride, c.at<BFloat16>(row, 0), shape.n);
  }
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

void gemm(ThreadPool &pool, const GemmShape &shape, AnyMatrix a, AnyMatrix b,
          bool accumulate, AnyMatrix c) {
  const GemmCut cut = gemmCut(shape.m, shape.n);
  const int64_t tilesM = ceilDiv(shape.m, cut.tileM);
  const int64_t tilesN = ceilDiv(shape.n, cut.tileN);
  pool.parallelFor(
      tilesM * tilesN, [&](int64_t task, std::span<std::byte> scratch) {
        const int64_t i = task / tilesN * cut.tileM;
        const int64_t j = task % tilesN * cut.tileN;
        GemmShape tile = shape;
        tile.m = std::min(cut.tileM, shape.m - i);
        tile.n = std::min(cut.tileN, shape.n - j);
        anyTile(tile, shape.transposeA ? a.from(0, i) : a.from(i, 0),
                shape.transposeB ? b.from(j, 0) : b.from(0, j), accumulate,
                c.from(i, j), scratch);
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
  const View &a = args[0], &c = args[2];
  const bool transposeA = args.integers[0], transposeB = args.integers[1];
  mega::gemm(ctx.pool,
             {c.rows(), c.rowSize(), transposeA ? a.rows() : a.rowSize(),
              transposeA, transposeB},
             AnyMatrix(a), AnyMatrix(args[1]), args.integers[2], AnyMatrix(c));
}

} // namespace mega
