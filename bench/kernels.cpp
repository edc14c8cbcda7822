//===- kernels.cpp - CPU kernels against the GEMM they are made of --------===//
//
// Attention and the output head in GFLOP/s of their products over visible
// pairs, beside plain products on the same pool; bandwidth-bound kernels in
// millions of elements per second. Each line has f32, bf16, and the speed of
// bf16 relative to f32, measured in turns.
//
//   bench-kernels [THREADS [gemm|attention|head|bandwidth]]
//
//===----------------------------------------------------------------------===//
#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/CpuKernels.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/plan/BFloat16.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using namespace mega;

namespace {

constexpr DataType kTypes[] = {DataType::F32, DataType::BF16};

struct Buffer {
  BufferType type;
  std::vector<std::byte> data;

  Buffer(std::initializer_list<int64_t> shape, DataType element)
      : type(element, shape), data(type.extentBytes()) {
    uint32_t state = 1;
    for (int64_t i = 0; i < type.elements(); ++i) {
      state = state * 1664525u + 1013904223u;
      const float x = static_cast<float>(int32_t(state)) * 0x1p-31f;
      if (element == DataType::BF16) {
        view().as<BFloat16>()[i] = BFloat16(x);
      } else if (element == DataType::F32) {
        view().as<float>()[i] = x;
      }
    }
  }
  View view() { return View(type, data.data()); }
};

using Call = std::function<void()>;

/// Seconds per call, the best of several rounds in which the calls take turns.
std::array<double, 2> seconds(const std::array<Call, 2> &calls) {
  using Clock = std::chrono::steady_clock;
  std::array<double, 2> best = {1e9, 1e9};
  for (int round = 0; round < 6; ++round) {
    for (int i : {0, 1}) {
      calls[i]();
      const auto start = Clock::now();
      int count = 0;
      std::chrono::duration<double> elapsed{};
      do {
        calls[i]();
        ++count;
        elapsed = Clock::now() - start;
      } while (elapsed.count() < 0.05);
      best[i] = std::min(best[i], elapsed.count() / count);
    }
  }
  return best;
}

struct Bench {
  ThreadPool pool;
  StepScalars scalars;

  Call call(Kernel kernel, std::vector<View> views,
            std::vector<int64_t> integers, std::vector<double> floats) {
    return [=, this] {
      cpuKernel(kernel)({pool, scalars}, {views, integers, floats});
    };
  }

  /// make(T) gives the call of one type; `work` is in units of `unit`.
  template <typename Make>
  void row(const std::string &what, double work, const char *unit, Make make) {
    const auto [f32, bf16] = seconds({make(kTypes[0]), make(kTypes[1])});
    std::printf("%-44s %8.1f %8.1f %s %4.0f%%\n", what.c_str(), work / f32,
                work / bf16, unit, 100 * f32 / bf16);
  }

  /// One product of a linear layer; the weight gradient is f32.
  void gemm(const char *what, int64_t m, int64_t n, int64_t k, bool transposeA,
            bool transposeB) {
    std::vector<Buffer> buffers;
    buffers.reserve(6);
    const auto make = [&](DataType type) {
      Buffer &a = buffers.emplace_back(
          transposeA ? std::initializer_list<int64_t>{k, m}
                     : std::initializer_list<int64_t>{m, k},
          type);
      Buffer &b = buffers.emplace_back(
          transposeB ? std::initializer_list<int64_t>{n, k}
                     : std::initializer_list<int64_t>{k, n},
          type);
      Buffer &c = buffers.emplace_back(std::initializer_list<int64_t>{m, n},
                                       transposeA ? DataType::F32 : type);
      return call(Kernel::Gemm, {a.view(), b.view(), c.view()},
                  {transposeA, transposeB, transposeA}, {});
    };
    row("gemm " + std::string(what) + " " + std::to_string(m) + "x" +
            std::to_string(n) + "x" + std::to_string(k),
        2e-9 * m * n * k, "GFLOP/s", make);
  }
  /// y = x w^T, dx = dy w, dw += dy^T x.
  void linear(int64_t tokens, int64_t in, int64_t out) {
    gemm("x w^T ", tokens, out, in, false, true);
    gemm("dy w  ", tokens, in, out, false, false);
    gemm("dy^T x", out, in, tokens, true, false);
  }

  void attention(int64_t batch, int64_t s, int64_t heads, int64_t dim,
                 bool causal, double dropout, double softcap,
                 int64_t document = 0, bool ring = false) {
    std::vector<Buffer> buffers;
    buffers.reserve(64);
    // Rows of documents, if `document` is not 0.
    const int64_t length = document == 0 ? s : document;
    const double pairs = 1.0 * batch * heads * (s / length) *
                         (causal ? length * (length + 1) / 2 : length * length);
    std::vector<int32_t> positions, segments;
    for (int64_t row = 0; row < batch * s; ++row) {
      positions.push_back(static_cast<int32_t>(row % length));
      segments.push_back(static_cast<int32_t>(row % s / length * length));
    }
    const BufferType ids(DataType::I32, {batch, s});
    const View p(ids, positions.data()), g(ids, segments.data());
    const std::string name =
        "B" + std::to_string(batch) + " S" + std::to_string(s) + " H" +
        std::to_string(heads) + " D" + std::to_string(dim) +
        (causal ? " causal" : "") + (dropout > 0 ? " dropout" : "") +
        (softcap > 0 ? " softcap" : "") +
        (document > 0 ? " documents of " + std::to_string(document) : "") +
        (ring ? ", ring of one" : "");
    std::vector<Call> forward, backward;
    for (DataType type : kTypes) {
      std::vector<View> x;
      for (int i = 0; i < 8; ++i) {
        x.push_back(
            buffers
                .emplace_back(
                    std::initializer_list<int64_t>{batch, s, heads, dim}, type)
                .view());
      }
      std::vector<View> statistics;
      for (int i = 0; i < 2; ++i) {
        statistics.push_back(
            buffers
                .emplace_back(std::initializer_list<int64_t>{batch, heads, s},
                              DataType::F32)
                .view());
      }
      const View &lse = statistics[0], &delta = statistics[1];
      const std::vector<int64_t> integers = {causal, 0, 1, 0};
      const std::vector<double> floats = {0.125, dropout, softcap};
      if (ring) {
        std::vector<int64_t> all = {0, 0};
        all.insert(all.end(), integers.begin(), integers.end());
        const View none =
            buffers.emplace_back(std::initializer_list<int64_t>{1}, type)
                .view();
        const View sums =
            buffers
                .emplace_back(std::initializer_list<int64_t>{ringSums(x[0])},
                              DataType::F32)
                .view();
        const View gradSums =
            buffers
                .emplace_back(
                    std::initializer_list<int64_t>{ringGradSums(x[0], x[1], 1)},
                    DataType::F32)
                .view();
        forward.push_back(
            call(Kernel::RingAttention,
                 {x[0], x[1], x[2], p, g, p, g, x[3], lse, none, sums}, all,
                 floats));
        backward.push_back(call(Kernel::RingAttentionGrad,
                                {x[4], x[0], x[1], x[2], p, g, p, g, x[3], lse,
                                 x[5], x[6], x[7], none, gradSums},
                                all, floats));
        continue;
      }
      if (document > 0) {
        forward.push_back(call(Kernel::PackedAttention,
                               {x[0], x[1], x[2], p, g, p, g, x[3], lse},
                               integers, floats));
        backward.push_back(call(Kernel::PackedAttentionGrad,
                                {x[4], x[0], x[1], x[2], p, g, p, g, x[3], lse,
                                 x[5], x[6], x[7], delta},
                                integers, floats));
        continue;
      }
      forward.push_back(call(Kernel::Attention, {x[0], x[1], x[2], x[3], lse},
                             integers, floats));
      backward.push_back(
          call(Kernel::AttentionGrad,
               {x[4], x[0], x[1], x[2], x[3], lse, x[5], x[6], x[7], delta},
               integers, floats));
    }
    const auto of = [](const std::vector<Call> &calls) {
      return [&](DataType type) { return calls[type == DataType::BF16]; };
    };
    row("attention " + name, 4e-9 * pairs * dim, "GFLOP/s", of(forward));
    row("attention_grad " + name, 10e-9 * pairs * dim, "GFLOP/s", of(backward));
  }

  void head(int64_t tokens, int64_t hidden, int64_t vocabulary) {
    std::vector<int32_t> ids(tokens, 3);
    const View labels(BufferType(DataType::I32, {1, tokens}), ids.data());
    Buffer max({1, tokens}, DataType::F32), sum = max, target = max;
    Buffer gradW({vocabulary, hidden}, DataType::F32);
    std::vector<Buffer> buffers;
    buffers.reserve(8);
    std::vector<Call> forward, backward;
    for (DataType type : kTypes) {
      Buffer &x = buffers.emplace_back(
          std::initializer_list<int64_t>{1, tokens, hidden}, type);
      Buffer &w = buffers.emplace_back(
          std::initializer_list<int64_t>{vocabulary, hidden}, type);
      Buffer &gradX = buffers.emplace_back(x);
      Buffer &scratch =
          buffers.emplace_back(std::initializer_list<int64_t>{headGradScratch(
                                   tokens, vocabulary, hidden, type)},
                               DataType::F32);
      forward.push_back(call(Kernel::HeadStats,
                             {x.view(), w.view(), labels, max.view(),
                              sum.view(), target.view(), scratch.view()},
                             {-100, 0, vocabulary}, {0}));
      backward.push_back(
          call(Kernel::HeadStatsGrad,
               {x.view(), w.view(), labels, max.view(), sum.view(),
                target.view(), gradX.view(), gradW.view(), scratch.view()},
               {-100, 0, vocabulary}, {0}));
    }
    const double flops = 2.0 * tokens * hidden * vocabulary;
    const std::string name = "T" + std::to_string(tokens) + " h" +
                             std::to_string(hidden) + " V" +
                             std::to_string(vocabulary);
    row("head_stats " + name, 1e-9 * flops, "GFLOP/s",
        [&](DataType type) { return forward[type == DataType::BF16]; });
    row("head_stats_grad " + name, 3e-9 * flops, "GFLOP/s",
        [&](DataType type) { return backward[type == DataType::BF16]; });
  }

  void bandwidth(int64_t tokens, int64_t hidden) {
    Buffer gamma({hidden}, DataType::F32), beta = gamma;
    Buffer mean({1, tokens}, DataType::F32), rstd = mean;
    const auto kernel = [&](Kernel kernel, const std::vector<Buffer *> &after,
                            int activations, int leading,
                            std::vector<int64_t> integers,
                            std::vector<double> floats) {
      std::vector<Buffer> buffers;
      buffers.reserve(8);
      row(std::string(kernelSpec(kernel).name), 1e-6 * tokens * hidden, "M/s",
          [&](DataType type) {
            std::vector<View> views;
            for (int i = 0; i < activations; ++i) {
              if (i == leading) {
                for (Buffer *buffer : after) {
                  views.push_back(buffer->view());
                }
              }
              views.push_back(
                  buffers
                      .emplace_back(
                          std::initializer_list<int64_t>{1, tokens, hidden},
                          type)
                      .view());
            }
            if (leading >= activations) {
              for (Buffer *buffer : after) {
                views.push_back(buffer->view());
              }
            }
            if (kernel == Kernel::LayerNorm) {
              views.push_back(mean.view());
              views.push_back(rstd.view());
            } else if (kernel == Kernel::LayerNormGrad) {
              views.push_back(gamma.view());
              views.push_back(beta.view());
            }
            return call(kernel, views, integers, floats);
          });
    };
    kernel(Kernel::LayerNorm, {&gamma, &beta}, 2, 1, {}, {1e-5});
    kernel(Kernel::LayerNormGrad, {&gamma, &mean, &rstd}, 3, 2, {0}, {});
    kernel(Kernel::BiasGrad, {&beta}, 1, 1, {}, {});
    kernel(Kernel::Add, {}, 3, 9, {}, {});
    kernel(Kernel::Gelu, {}, 2, 9, {0}, {});
    kernel(Kernel::GeluGrad, {}, 3, 9, {0}, {});
    kernel(Kernel::Dropout, {}, 2, 9, {1, 0, 0}, {0.1});
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
  std::printf("%-44s %8s %8s\n", "", "f32", "bf16");
  if (wanted("gemm")) {
    // gpt2-124m, four sequences of 512.
    bench.linear(2048, 768, 768);
    bench.linear(2048, 768, 3072);
    bench.linear(2048, 3072, 768);
    bench.gemm("x w^T ", 512, 512, 64, false, true);
  }
  if (wanted("attention")) {
    for (bool causal : {false, true}) {
      bench.attention(1, 512, 4, 64, causal, 0, 0);
    }
    bench.attention(1, 1024, 4, 128, true, 0, 0);
    bench.attention(4, 128, 4, 16, true, 0, 0);
    bench.attention(1, 512, 4, 64, true, 0.1, 0);
    bench.attention(1, 512, 4, 64, true, 0, 30);
    bench.attention(1, 2048, 4, 64, true, 0, 0);
    for (int64_t document : {2048, 512, 128, 100}) {
      bench.attention(1, 2048, 4, 64, true, 0, 0, document);
    }
    bench.attention(1, 2048, 4, 64, true, 0.1, 0, 2048);
    bench.attention(1, 2048, 4, 64, true, 0, 0, 2048, true);
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
