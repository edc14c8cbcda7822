//===- communicators.cpp - Collectives side by side -----------------------===//
//
// all_reduce of f32 between ranks that are threads of one process, on the same
// machine and in one run: in-process, our algorithms over Gloo, Gloo's own
// (ring and bcube, the better of both), and as a bound the time in which all
// ranks together copy as much memory. docs/performance.md records the outcome.
//
//   bench-communicators [--seconds S]    per cell, 0.3 by default
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/GlooWorld.h"
#include "runtime/comm/InProcessWorld.h"

#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

using namespace mega;

namespace {

using Clock = std::chrono::steady_clock;
double budget = 0.3;

/// One operation of a rank, on its two buffers.
using Operation = std::function<void(float *in, float *out, int64_t count)>;
/// Makes the operation of a rank, on its thread.
using Setup = std::function<Operation(int rank)>;

/// Microseconds of one operation: the smallest mean of several rounds, over
/// which the ranks do nothing else.
double measure(int ranks, int64_t count, bool inPlace, const Setup &setup) {
  std::barrier everyone(ranks);
  std::atomic<int> calls{1};
  double best = 1e30;
  const auto body = [&](int rank) {
    std::vector<float> in(count, 1), other(inPlace ? 0 : count, 1);
    float *out = inPlace ? in.data() : other.data();
    const Operation operation = setup(rank);
    everyone.arrive_and_wait();
    operation(in.data(), out, count);
    const auto begin = Clock::now();
    for (int round = 0; round < 12; ++round) {
      everyone.arrive_and_wait();
      const auto start = Clock::now();
      const int n = calls.load();
      for (int i = 0; i < n; ++i) {
        operation(in.data(), out, count);
      }
      everyone.arrive_and_wait();
      if (rank == 0) {
        const std::chrono::duration<double> elapsed = Clock::now() - start;
        best = std::min(best, elapsed.count() / n * 1e6);
        calls = std::clamp(int(budget / 10 / (best * 1e-6)), 1, 100000);
      }
      everyone.arrive_and_wait();
      // All ranks leave together: the time is rank 0's to judge.
      const std::chrono::duration<double> total = Clock::now() - begin;
      if (rank == 0 && total.count() > 4 * budget && round >= 3) {
        calls = 0;
      }
      everyone.arrive_and_wait();
      if (calls.load() == 0) {
        break;
      }
    }
    everyone.arrive_and_wait();
  };
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(body, rank);
  }
  threads.clear();
  return best;
}

Operation reducing(std::shared_ptr<Communicator> communicator) {
  return [communicator](float *in, float *out, int64_t count) {
    const Status status =
        communicator->allReduce(in, out, count, DataType::F32);
    if (!status.isOk()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      std::exit(1);
    }
  };
}

double inProcess(int ranks, int64_t count, bool inPlace) {
  std::vector<int> all(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    all[rank] = rank;
  }
  const auto world = InProcessWorld::create(ranks);
  auto ends = world->createGroup("all", all).take();
  return measure(ranks, count, inPlace,
                 [&](int rank) { return reducing(std::move(ends[rank])); });
}

double ourGloo(int ranks, int64_t count, bool inPlace) {
  LocalStore store;
  std::vector<std::unique_ptr<GlooWorld>> worlds(ranks);
  return measure(ranks, count, inPlace, [&](int rank) {
    GlooOptions options;
    options.rank = rank;
    options.size = ranks;
    worlds[rank] = GlooWorld::connect(options, store).take();
    std::vector<int> all(ranks);
    for (int i = 0; i < ranks; ++i) {
      all[i] = i;
    }
    return reducing(worlds[rank]->createGroup("all", all).take());
  });
}

/// Gloo's store of a test: between threads.
class MapStore final : public gloo::rendezvous::Store {
public:
  void set(const std::string &key, const std::vector<char> &data) override {
    (void)store.set(key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string &key) override {
    const std::string value = store.get(key, std::chrono::minutes(1)).take();
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string> &keys) override {
    for (const std::string &key : keys) {
      get(key);
    }
  }

private:
  LocalStore store;
};

double gloosOwn(int ranks, int64_t count,
                gloo::AllreduceOptions::Algorithm algorithm) {
  MapStore store;
  return measure(ranks, count, true, [&](int rank) {
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    gloo::transport::tcp::attr attributes("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context->connectFullMesh(store, device);
    return [context, algorithm](float *data, float *, int64_t count) {
      gloo::AllreduceOptions options(context);
      options.setOutput(data, count);
      options.setAlgorithm(algorithm);
      options.setReduceFunction([](void *c, const void *a, const void *b,
                                   size_t n) { gloo::sum<float>(c, a, b, n); });
      gloo::allreduce(options);
    };
  });
}

/// Until all ranks have copied: as an operation ends when all have it.
double copying(int ranks, int64_t count) {
  return measure(ranks, count, false, [&](int) {
    return [](float *in, float *out, int64_t count) {
      std::memcpy(out, in, count * sizeof(float));
    };
  });
}

} // namespace

int main(int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) {
      budget = std::atof(argv[i + 1]);
    }
  }
  std::printf("all_reduce(sum of f32), microseconds; %u processors\n\n",
              std::thread::hardware_concurrency());
  std::printf("%5s %9s %10s %10s %10s %11s %10s %9s %9s\n", "ranks", "bytes",
              "in place", "to other", "over Gloo", "Gloo's own", "copy",
              "vs Gloo's", "vs copy");
  for (const int ranks : {2, 4, 8}) {
    for (const int64_t bytes : {4096, 65536, 1 << 20, 16 << 20}) {
      const int64_t count = bytes / 4;
      using Gloo = gloo::AllreduceOptions::Algorithm;
      const double copy = copying(ranks, count);
      const double mine = inProcess(ranks, count, true);
      const double other = inProcess(ranks, count, false);
      const double over = ourGloo(ranks, count, true);
      const double own = std::min(gloosOwn(ranks, count, Gloo::RING),
                                  gloosOwn(ranks, count, Gloo::BCUBE));
      std::printf(
          "%5d %9lld %10.1f %10.1f %10.1f %11.1f %10.1f %8.1fx %8.2fx\n", ranks,
          static_cast<long long>(bytes), mine, other, over, own, copy,
          own / mine, mine / copy);
      std::fflush(stdout);
    }
  }
  return 0;
}
