//===- training.cpp - Training steps against the machine's GEMM -----------===//
//
// Tokens per second of a plan on random tokens, and which fraction of the
// machine's GEMM peak they are. The peak is the best of several large products
// on the same pool, taken between the steps, so both see the same machine; a
// step is the median. Below each plan, where its time goes by kernel.
//
//   bench-training PLAN... [--threads N] [--seconds S]
//
// `model` counts three times the forward's matrix products, `executed` what the
// plan computes, element-wise work included (runtime/plan/Report.h).
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Executor.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/plan/Report.h"
#include "tools/support/CommandLine.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "bench/KernelTimes.h"

using namespace mega;

namespace {

/// One large product on the pool; FLOP/s.
class Peak {
public:
  explicit Peak(ThreadPool &pool) : pool(pool), a(kSize * kSize, 1), b(a) {}

  double measure() {
    const double start = steadySeconds();
    const auto matrix = [](std::vector<float> &x) {
      return Matrix<float>{x.data(), kSize};
    };
    gemm(pool, {kSize, kSize, kSize, false, true}, matrix(a), matrix(b), false,
         matrix(c));
    return 2.0 * kSize * kSize * kSize / (steadySeconds() - start);
  }

private:
  static constexpr int64_t kSize = 2048;
  ThreadPool &pool;
  std::vector<float> a, b;
  std::vector<float> c = std::vector<float>(kSize * kSize);
};

struct Result {
  std::string name;
  int64_t tokens = 0;
  int64_t steps = 0;
  /// Of the median step.
  double seconds = 0;
  double peak = 0;
  double modelFlops = 0;
  double executedFlops = 0;
  /// Of all steps.
  double total = 0;
  KernelSeconds kernels{};
};

StatusOr<Result> measure(const std::string &path, ThreadPool &pool,
                         double seconds) {
  MEGA_ASSIGN_OR_RETURN(const LoadedPlan loaded, loadPlanFile(path));
  const plan::Plan &plan = loaded.root();
  MEGA_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                        Executor::create(loaded, timedKernel, pool));
  const auto train = executor->findEntryPoint("train");
  if (!train) {
    return badInput("{}: no entry point train", path);
  }
  StepScalars scalars;
  scalars.lr = 1e-4f;
  executor->initializeWeights(scalars.seed);
  MEGA_RETURN_IF_ERROR(executor->runSetup(scalars));
  fillInputs(*executor);
  Peak peak(pool);
  Result result;
  result.name = std::filesystem::path(path).stem();
  result.tokens = int64_t{plan.global_batch_size()} * plan.sequence_length();
  result.modelFlops = static_cast<double>(modelFlops(plan));
  result.executedFlops = static_cast<double>(plan.flops_per_step());

  constexpr int64_t kLeastSteps = 3;
  std::vector<double> times;
  // The first step and the first product warm caches and clocks up.
  MEGA_RETURN_IF_ERROR(executor->runStep(*train, scalars, 0));
  peak.measure();
  kernelSeconds = {};
  const double end = steadySeconds() + seconds;
  while (std::ssize(times) < kLeastSteps || steadySeconds() < end) {
    result.peak = std::max(result.peak, peak.measure());
    ++scalars.step;
    const double start = steadySeconds();
    MEGA_RETURN_IF_ERROR(executor->runStep(*train, scalars, 0));
    times.push_back(steadySeconds() - start);
    result.total += times.back();
  }
  result.kernels = kernelSeconds;
  result.steps = std::ssize(times);
  std::ranges::sort(times);
  result.seconds = times[times.size() / 2];
  return result;
}

void printResults(const std::vector<Result> &results) {
  size_t width = 4;
  for (const Result &result : results) {
    width = std::max(width, result.name.size());
  }
  fmt::print("{:{}} {:>6} {:>6} {:>9} {:>9} {:>14} {:>9} {:>9}\n", "plan",
             width, "tokens", "steps", "s/step", "tokens/s", "peak GFLOP/s",
             "model", "executed");
  for (const Result &r : results) {
    const double available = r.peak * r.seconds;
    fmt::print("{:{}} {:>6} {:>6} {:>9.3f} {:>9.1f} {:>14.1f} {:>8.1f}% "
               "{:>8.1f}%\n",
               r.name, width, r.tokens, r.steps, r.seconds,
               static_cast<double>(r.tokens) / r.seconds, 1e-9 * r.peak,
               100 * r.modelFlops / available,
               100 * r.executedFlops / available);
  }
}

/// Kernels by their time; what takes less than half a percent is one line.
void printKernels(const Result &result) {
  std::vector<size_t> order;
  for (size_t kernel = 0; kernel < kKernelCount; ++kernel) {
    order.push_back(kernel);
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return result.kernels[a] > result.kernels[b];
  });
  fmt::print("\n{}, seconds per step\n", result.name);
  const auto steps = static_cast<double>(result.steps);
  const auto line = [&](std::string_view name, double seconds) {
    fmt::print("  {:<18} {:>8.3f} {:>6.1f}%\n", name, seconds / steps,
               100 * seconds / result.total);
  };
  double others = result.total;
  for (const size_t kernel : order) {
    if (const double spent = result.kernels[kernel];
        spent >= 0.005 * result.total) {
      line(kernelSpec(static_cast<Kernel>(kernel)).name, spent);
      others -= spent;
    }
  }
  line("all others", others);
}

Status run(int argc, char **argv, CLI::App &app) {
  std::vector<std::string> plans;
  int threads = 2;
  double seconds = 20;
  app.add_option("PLAN", plans, "plans made by megac")->required();
  app.add_option("--threads", threads, "threads of the pool (2)")
      ->option_text("N")
      ->check(wholeNumber(1, 1024));
  app.add_option("--seconds", seconds, "time for each plan (20)")
      ->option_text("S")
      ->check(nonNegative());
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &) {
    return print(app.help());
  } catch (const CLI::ParseError &error) {
    return usageError("{}; see bench-training --help", error.what());
  }
  ThreadPool pool(threads);
  warmUpGemm(pool);
  std::vector<Result> results;
  for (const std::string &path : plans) {
    MEGA_ASSIGN_OR_RETURN(const Result result, measure(path, pool, seconds));
    results.push_back(result);
  }
  fmt::print("{} threads\n", threads);
  printResults(results);
  for (const Result &result : results) {
    printKernels(result);
  }
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures training steps against the machine's GEMM.",
               "bench-training");
  return finish(app, run(argc, argv, app));
}
