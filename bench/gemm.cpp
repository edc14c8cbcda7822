//===- gemm.cpp - GEMM libraries side by side -----------------------------===//
//
// Which f32 GEMM does the CPU device call? Every library is loaded at run time
// and measured in turn on each shape, one call on one thread, as our tiles use
// it; then from two threads at once. docs/gemm.md records the outcome.
//
//   bench-gemm                  the table
//   bench-gemm --steady NAME    calls NAME from two threads, prints "steady" to
//                               stderr, and calls on: run it under
//                               `strace -f` to see the system calls after it
//
//===----------------------------------------------------------------------===//
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

/// C = A B (row-major), A and B transposed on demand, C overwritten.
struct Problem {
  const char *what;
  int m, n, k;
  bool transposeA, transposeB;
  /// Distances of rows; 0: none beyond the row.
  int strideA = 0, strideB = 0, strideC = 0;

  int lda() const { return strideA ? strideA : transposeA ? m : k; }
  int ldb() const { return strideB ? strideB : transposeB ? k : n; }
  int ldc() const { return strideC ? strideC : n; }
};

using Cblas = void (*)(int, int, int, int, int, int, float, const float *, int,
                       const float *, int, float, float *, int);
using Dnnl = int (*)(char, char, int64_t, int64_t, int64_t, float,
                     const float *, int64_t, const float *, int64_t, float,
                     float *, int64_t);

struct Library {
  std::string name;
  Cblas cblas = nullptr;
  Dnnl dnnl = nullptr;

  void run(const Problem &p, const float *a, const float *b, float *c) const {
    if (dnnl) {
      dnnl(p.transposeA ? 'T' : 'N', p.transposeB ? 'T' : 'N', p.m, p.n, p.k, 1,
           a, p.lda(), b, p.ldb(), 0, c, p.ldc());
    } else {
      cblas(101, p.transposeA ? 112 : 111, p.transposeB ? 112 : 111, p.m, p.n,
            p.k, 1, a, p.lda(), b, p.ldb(), 0, c, p.ldc());
    }
  }
};

/// Loads what this machine has; the thread limits matter for the OpenMP builds.
std::vector<Library> loadLibraries() {
  setenv("OMP_NUM_THREADS", "1", 1);
  std::vector<Library> libraries;
  const auto open = [](std::initializer_list<const char *> paths) -> void * {
    for (const char *path : paths) {
      if (void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        return handle;
      }
    }
    return nullptr;
  };
  if (void *h = open({"/usr/lib/x86_64-linux-gnu/openblas-serial/"
                      "libopenblas.so.0",
                      "libopenblas.so.0"})) {
    libraries.push_back(
        {"openblas", reinterpret_cast<Cblas>(dlsym(h, "cblas_sgemm"))});
  }
  if (void *h = open({"libdnnl.so.2", "libdnnl.so"})) {
    libraries.push_back(
        {"onednn", nullptr, reinterpret_cast<Dnnl>(dlsym(h, "dnnl_sgemm"))});
  }
  if (void *h = open({"libblis.so.4", "libblis.so"})) {
    libraries.push_back(
        {"blis", reinterpret_cast<Cblas>(dlsym(h, "cblas_sgemm"))});
  }
  return libraries;
}

struct Buffers {
  std::vector<float> a, b, c;
  explicit Buffers(const Problem &p)
      : a(size_t(p.transposeA ? p.k : p.m) * p.lda()),
        b(size_t(p.transposeB ? p.n : p.k) * p.ldb()),
        c(size_t(p.m) * p.ldc()) {
    uint32_t state = 1;
    for (std::vector<float> *v : {&a, &b}) {
      for (float &x : *v) {
        state = state * 1664525u + 1013904223u;
        x = float(int32_t(state)) * 0x1p-31f;
      }
    }
  }
};

double gflops(const Library &library, const Problem &p, Buffers &data) {
  using Clock = std::chrono::steady_clock;
  const double flops = 2.0 * p.m * p.n * p.k;
  const int calls = std::max(1, int(2e9 / flops));
  library.run(p, data.a.data(), data.b.data(), data.c.data());
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) {
      library.run(p, data.a.data(), data.b.data(), data.c.data());
    }
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    best = std::max(best, flops * calls / elapsed.count() * 1e-9);
  }
  return best;
}

/// Threads that call at once; the number of results with other bits than a
/// call alone.
int wrongConcurrentCalls(const Library &library, const Problem &p) {
  constexpr int kThreads = 8, kCalls = 5000;
  Buffers expected(p);
  library.run(p, expected.a.data(), expected.b.data(), expected.c.data());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Buffers mine(p);
      for (int i = 0; i < kCalls; ++i) {
        library.run(p, mine.a.data(), mine.b.data(), mine.c.data());
        wrong += mine.c != expected.c;
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  return wrong;
}

int steady(const Library &library) {
  const Problem problems[] = {{"tile", 128, 256, 256, false, true},
                              {"attention", 64, 64, 64, false, true},
                              {"weight", 256, 256, 2048, true, false}};
  std::barrier sync(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Buffers> data(std::begin(problems), std::end(problems));
      for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < (round == 0 ? 2 : 300); ++i) {
          for (size_t p = 0; p < std::size(problems); ++p) {
            library.run(problems[p], data[p].a.data(), data[p].b.data(),
                        data[p].c.data());
          }
        }
        sync.arrive_and_wait();
        if (t == 0) {
          const char *mark = round == 0 ? "steady\n" : "end\n";
          if (write(2, mark, std::strlen(mark)) < 0) {
            std::abort();
          }
        }
        sync.arrive_and_wait();
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const std::vector<Library> libraries = loadLibraries();
  if (argc == 3 && std::string(argv[1]) == "--steady") {
    for (const Library &library : libraries) {
      if (library.name == argv[2]) {
        return steady(library);
      }
    }
    std::fprintf(stderr, "bench-gemm: no library called %s here\n", argv[2]);
    return 2;
  }
  std::vector<Problem> problems;
  for (int h : {64, 256, 768}) {
    for (int t : {256, 1024}) {
      problems.push_back({"x w^T", t, 3 * h, h, false, true});
      problems.push_back({"dy w", t, h, 4 * h, false, false});
      problems.push_back({"dy^T x", 4 * h, h, t, true, false});
    }
  }
  // Tiles of larger products, as the pool's threads see them.
  for (int h : {256, 768}) {
    for (int tm : {64, 128, 256}) {
      problems.push_back({"x w^T", tm, 256, h, false, true, h, h, 3 * h});
      problems.push_back({"dy w", tm, 256, 4 * h, false, false, 4 * h, h, h});
      problems.push_back({"dy^T x", tm, 256, 1024, true, false, 4 * h, h, h});
    }
  }
  problems.push_back({"q k^T", 64, 64, 64, false, true});
  problems.push_back({"q k^T", 128, 128, 64, false, true});
  problems.push_back({"p v", 128, 64, 128, false, false});
  problems.push_back({"p^T do", 128, 64, 128, true, false});

  std::printf("GFLOP/s, one thread\n%-8s %5s %5s %5s", "", "m", "n", "k");
  for (const Library &library : libraries) {
    std::printf(" %9s", library.name.c_str());
  }
  std::printf("\n");
  for (const Problem &p : problems) {
    Buffers data(p);
    std::printf("%-8s %5d %5d %5d", p.what, p.m, p.n, p.k);
    for (const Library &library : libraries) {
      std::printf(" %9.1f", gflops(library, p, data));
      std::fflush(stdout);
    }
    std::printf("\n");
  }
  for (const Library &library : libraries) {
    std::printf("%s: %d wrong results of 40000 from eight threads\n",
                library.name.c_str(),
                wrongConcurrentCalls(library, {"", 24, 24, 24, false, true}));
  }
  return 0;
}
