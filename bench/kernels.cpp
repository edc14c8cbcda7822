//===- kernels.cpp - CPU kernels against the GEMM they are made of --------===//
//
// Attention and the output head in GFLOP/s of their products over visible
// pairs, beside a plain product on the same pool; bandwidth-bound kernels in
// GB/s of their operands.
//
//   bench-kernels [THREADS [gemm|attention|head|bandwidth]]
//
//===----------------------------------------------------------------------===//
#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/CpuKernels.h"
#include "runtime/cpu/Gemm.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using namespace mega;

namespace {

struct Buffer {
  BufferType type;
  std::vector<float> data;

  Buffer(std::initializer_list<int64_t> shape, bool random = true)
      : type(DataType::F32, shape), data(type.elements()) {
    uint32_t state = 1;
    for (float &x : data) {
      state = state * 1664525u + 1013904223u;
      x = random ? static_cast<float>(int32_t(state)) * 0x1p-31f : 0;
    }
  }
  View view() { return View(type, data.data()); }
};

double secondsPerCall(const std::function<void()> &call) {
  using Clock = std::chrono::steady_clock;
  call();
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = Clock::now();
    int calls = 0;
    std::chrono::duration<double> elapsed{};
    do {
      call();
      ++calls;
      elapsed = Clock::now() - start;
    } while (elapsed.count() < 0.05);
    best = std::min(best, elapsed.count() / calls);
  }
  return best;
}

struct Bench {
  ThreadPool pool;
  StepScalars scalars;

  double time(Kernel kernel, std::vector<View> views,
              std::vector<int64_t> integers, std::vector<double> floats) {
    return secondsPerCall(
        [&] { cpuKernel(kernel)({pool, scalars}, {views, integers, floats}); });
  }

  void gemmRow(int64_t m, int64_t n, int64_t k) {
    Buffer a({m, k}), b({n, k}), c({m, n});
    const double seconds =
        time(Kernel::Gemm, {a.view(), b.view(), c.view()}, {0, 1, 0}, {});
    std::printf("gemm %ldx%ldx%ld: %.1f GFLOP/s\n", m, n, k,
                2e-9 * m * n * k / seconds);
  }

  void attention(int64_t batch, int64_t s, int64_t heads, int64_t dim,
                 bool causal, double dropout) {
    Buffer q({batch, s, heads, dim}), k = q, v = q, out = q, gradOut = q;
    Buffer gradQ = q, gradK = q, gradV = q;
    Buffer lse({batch * heads, s}), delta = lse;
    const double pairs =
        1.0 * batch * heads * (causal ? s * (s + 1) / 2 : s * s);
    const double forward =
        time(Kernel::Attention,
             {q.view(), k.view(), v.view(), out.view(), lse.view()},
             {causal, 0, 1}, {0.125, dropout, 0});
    const double backward = time(Kernel::AttentionGrad,
                                 {gradOut.view(), q.view(), k.view(), v.view(),
                                  out.view(), lse.view(), gradQ.view(),
                                  gradK.view(), gradV.view(), delta.view()},
                                 {causal, 0, 1}, {0.125, dropout, 0});
    std::printf("attention B%ld S%ld H%ld D%ld%s%s: forward %.1f, backward "
                "%.1f GFLOP/s\n",
                batch, s, heads, dim, causal ? " causal" : "",
                dropout > 0 ? " dropout" : "", 4e-9 * pairs * dim / forward,
                10e-9 * pairs * dim / backward);
  }

  void head(int64_t tokens, int64_t hidden, int64_t vocabulary) {
    Buffer x({1, tokens, hidden}), w({vocabulary, hidden});
    Buffer max({1, tokens}), sum = max, target = max, gradX = x, gradW = w;
    const HeadTile tile = headTile(tokens, vocabulary);
    Buffer scratch({tile.tokens * tile.columns});
    std::vector<int32_t> ids(tokens, 3);
    View labels(BufferType(DataType::I32, {1, tokens}), ids.data());
    const double forward = time(Kernel::HeadStats,
                                {x.view(), w.view(), labels, max.view(),
                                 sum.view(), target.view(), scratch.view()},
                                {-100, 0}, {0});
    const double backward =
        time(Kernel::HeadStatsGrad,
             {x.view(), w.view(), labels, max.view(), sum.view(), target.view(),
              gradX.view(), gradW.view(), scratch.view()},
             {-100, 0}, {0});
    const double flops = 2.0 * tokens * hidden * vocabulary;
    std::printf("head T%ld h%ld V%ld: forward %.1f, backward %.1f GFLOP/s\n",
                tokens, hidden, vocabulary, 1e-9 * flops / forward,
                3e-9 * flops / backward);
  }

  void bandwidth(int64_t tokens, int64_t hidden) {
    Buffer x({1, tokens, hidden}), y = x, z = x, gamma({hidden}), beta = gamma;
    Buffer mean({1, tokens}), rstd = mean, one({});
    one.data[0] = 1;
    const double gigabytes = 4e-9 * tokens * hidden;
    const auto row = [&](Kernel kernel, int passes, std::vector<View> views,
                         std::vector<int64_t> integers,
                         std::vector<double> floats) {
      std::printf("%s T%ld h%ld: %.1f GB/s\n", kernelSpec(kernel).name.data(),
                  tokens, hidden,
                  passes * gigabytes / time(kernel, views, integers, floats));
    };
    row(Kernel::LayerNorm, 2,
        {x.view(), gamma.view(), beta.view(), y.view(), mean.view(),
         rstd.view()},
        {}, {1e-5});
    row(Kernel::LayerNormGrad, 3,
        {x.view(), y.view(), gamma.view(), mean.view(), rstd.view(), z.view(),
         gamma.view(), beta.view()},
        {0}, {});
    row(Kernel::BiasGrad, 1, {x.view(), beta.view()}, {}, {});
    row(Kernel::Add, 3, {x.view(), y.view(), z.view()}, {}, {});
    row(Kernel::Gelu, 2, {x.view(), y.view()}, {0}, {});
    row(Kernel::Gelu, 2, {x.view(), y.view()}, {1}, {});
    row(Kernel::GeluGrad, 3, {x.view(), y.view(), z.view()}, {0}, {});
    row(Kernel::Dropout, 2, {x.view(), y.view()}, {1}, {0.1});
    Buffer w({tokens, hidden}), grad = w, m = w, v = w;
    std::fill(v.data.begin(), v.data.end(), 1.0f);
    row(Kernel::AdamW, 7,
        {w.view(), grad.view(), m.view(), v.view(), one.view()}, {1}, {});
  }
};

} // namespace

int main(int argc, char **argv) {
  Bench bench{.pool = ThreadPool(argc > 1 ? std::atoi(argv[1]) : 1)};
  warmUpGemm(bench.pool);
  const std::string only = argc > 2 ? argv[2] : "";
  const auto wanted = [&](const char *group) {
    return only.empty() || only == group;
  };
  if (wanted("gemm")) {
    bench.gemmRow(1024, 768, 768);
    bench.gemmRow(512, 512, 64);
  }
  if (wanted("attention")) {
    for (bool causal : {false, true}) {
      bench.attention(1, 512, 4, 64, causal, 0);
    }
    bench.attention(1, 1024, 4, 128, true, 0);
    bench.attention(4, 128, 4, 16, true, 0);
    bench.attention(1, 512, 4, 64, true, 0.1);
  }
  if (wanted("head")) {
    bench.head(1024, 256, 8192);
    bench.head(512, 768, 8192);
  }
  if (wanted("bandwidth")) {
    bench.bandwidth(1024, 768);
  }
  return 0;
}
