#include "runtime/cpu/Gemm.h"

#include "test/runtime/cpu/Conformance.h"

#include <algorithm>
#include <cmath>

using namespace mega;
using reference::Values;

namespace {

class GemmTest : public Conformance {};
MEGA_FOR_EVERY_DEVICE_AND_TYPE(GemmTest);

Values absolute(Values values) {
  for (double &value : values) {
    value = std::abs(value);
  }
  return values;
}

/// op(a) op(b), added to c when `accumulate`, against the reference.
void expectProduct(const reference::GemmShape &shape, const Buffer &a,
                   const Buffer &b, const Values &before, bool accumulate,
                   const Buffer &c) {
  Values expected = reference::gemm(shape, a.values(), b.values());
  for (size_t i = 0; accumulate && i < before.size(); ++i) {
    expected[i] += before[i];
  }
  // A sum of k products errs by at most k roundings of the sum of their
  // magnitudes; random signs make it far less.
  const Values magnitude =
      reference::gemm(shape, absolute(a.values()), absolute(b.values()));
  const double stored = c.type().type == DataType::BF16 ? 0x1p-8 : 0;
  const Values actual = c.values();
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i],
                (shape.k + 2) * 0x1p-24 * (magnitude[i] + 8) +
                    stored * std::abs(expected[i]))
        << "element " << i;
  }
}

TEST_P(GemmTest, EveryTransposeOfStridedMatricesMatches) {
  // More than one tile each way, and nothing a multiple of a vector.
  const int64_t m = 151, n = 277, k = 93;
  for (int64_t transposeA : {0, 1}) {
    for (int64_t transposeB : {0, 1}) {
      for (int64_t accumulate : {0, 1}) {
        Buffer a = transposeA ? random({k, m}, 1, 5) : random({m, k}, 1, 5);
        Buffer b = transposeB ? random({n, k}, 2, 3) : random({k, n}, 2, 3);
        Buffer c = random({m, n}, 3, 11);
        const Values before = c.values();
        launch(Kernel::Gemm, {&a, &b, &c},
               {transposeA, transposeB, accumulate});
        expectProduct({m, n, k, transposeA != 0, transposeB != 0}, a, b, before,
                      accumulate, c);
      }
    }
  }
}

TEST_P(GemmTest, LongSumsAreRoundedOnce) {
  // More than two blocks of k, the last one partial.
  const int64_t m = 67, n = 130, k = 613;
  for (int64_t transpose : {0, 1}) {
    for (int64_t accumulate : {0, 1}) {
      Buffer a = transpose ? random({k, m}, 1, 5) : random({m, k}, 1, 5);
      Buffer b = transpose ? random({n, k}, 2, 3) : random({k, n}, 2, 3);
      Buffer c = random({m, n}, 3, 11);
      const Values before = c.values();
      launch(Kernel::Gemm, {&a, &b, &c}, {transpose, transpose, accumulate});
      expectProduct({m, n, k, transpose != 0, transpose != 0}, a, b, before,
                    accumulate, c);
    }
  }
}

TEST_P(GemmTest, WeightGradientIsF32) {
  const int64_t m = 151, n = 277, k = 613;
  for (int64_t accumulate : {0, 1}) {
    Buffer gradY = random({k, m}, 1, 5), x = random({k, n}, 2, 3);
    Buffer gradW = Buffer::random({m, n}, 3, 11);
    const Values before = gradW.values();
    launch(Kernel::Gemm, {&gradY, &x, &gradW}, {1, 0, accumulate});
    expectProduct({m, n, k, true, false}, gradY, x, before, accumulate, gradW);
  }
}

TEST_P(GemmTest, ActivationsAreMatricesOfTheirRows) {
  Buffer x = random({3, 37, 72}, 1), w = random({50, 72}, 2);
  Buffer y = zeros({3, 37, 50}, 100);
  launch(Kernel::Gemm, {&x, &w, &y}, {0, 1, 0});
  expectClose(
      y, reference::gemm({111, 50, 72, false, true}, x.values(), w.values()),
      72);
}

TEST(GemmCut, CoversEveryShapeWithBalancedTiles) {
  for (int64_t m : {1, 15, 64, 129, 300, 2048}) {
    for (int64_t n : {1, 63, 257, 768, 50257}) {
      const GemmCut cut = gemmCut(m, n);
      EXPECT_GE(cut.tileM, 16);
      EXPECT_LE(cut.tileM, 128);
      EXPECT_GE(cut.tileN, 16);
      EXPECT_LE(cut.tileN, 256);
    }
  }
}

// A library that shares a packing buffer between calls fails here.
TEST(GemmTile, ManyThreadsAtOnceDoNotDisturbEachOther) {
  ThreadPool pool(8);
  warmUpGemm(pool);
  const int64_t n = 24;
  std::vector<float> a(n * n), expected(n * n);
  for (int64_t i = 0; i < n * n; ++i) {
    a[i] = static_cast<float>(i % 17 - 8);
  }
  gemmTile({n, n, n}, 1.0f, {a.data(), n}, {a.data(), n}, false,
           {expected.data(), n});
  std::atomic<int> wrong{0};
  pool.parallelFor(8, [&](int64_t, auto) {
    for (int call = 0; call < 5000; ++call) {
      float c[n * n];
      gemmTile({n, n, n}, 1.0f, {a.data(), n}, {a.data(), n}, false, {c, n});
      wrong += !std::equal(expected.begin(), expected.end(), c);
    }
  });
  EXPECT_EQ(wrong, 0);
}

} // namespace
