//===- ranks.cpp - Ranks on one machine against threads of one rank -------===//
//
// Step times of two plans of one model, on the same number of threads: one rank
// with all of them, and one that cuts the work over ranks, which are threads.
// Steps of the two alternate, so both see the same machine; on random tokens.
//
//   bench-ranks ONE MANY [--threads N] [--seconds S]
//
// Prints medians and their ratio, of the clock and of the processors' time (all
// threads together; what else runs matters less to it), and where the time goes
// by kernel: that of ONE beside the mean and the largest of MANY's ranks.
// Collectives include waiting for the other ranks; what a rank waits is also
// the others' surplus.
//
//===----------------------------------------------------------------------===//
#include "runtime/cpu/Gemm.h"
#include "runtime/train/RankWorld.h"
#include "tools/support/CommandLine.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include "bench/KernelTimes.h"

using namespace mega;

namespace {

/// Of all threads of this process.
double processorSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// A plan that trains.
class Run {
public:
  static StatusOr<std::unique_ptr<Run>> open(const std::string &path,
                                             int threads) {
    auto run = std::make_unique<Run>();
    run->name = std::filesystem::path(path).stem();
    MEGA_ASSIGN_OR_RETURN(run->loaded, loadPlanFile(path));
    MEGA_ASSIGN_OR_RETURN(
        run->world,
        RankWorld::ofThreads(run->loaded->root(), std::chrono::minutes(5)));
    LocalRankOptions options;
    options.seats = run->world->takeSeats();
    options.threads = threads;
    options.kernels = timedKernel;
    options.fail = [world = run->world.get()](const RankFailure &mine) {
      return world->fail(mine);
    };
    MEGA_ASSIGN_OR_RETURN(run->ranks,
                          LocalRanks::create(*run->loaded, std::move(options)));
    const auto train = run->ranks->first().findEntryPoint("train");
    if (!train) {
      return badInput("{}: no entry point train", path);
    }
    run->train = *train;
    run->scalars.lr = 1e-4f;
    MEGA_RETURN_IF_ERROR(run->ranks->run([&](Executor &rank) {
      rank.initializeWeights(run->scalars.seed);
      fillInputs(rank);
      return rank.runSetup(run->scalars);
    }));
    run->kernels.resize(run->ranks->size());
    // The first step warms caches up.
    MEGA_RETURN_IF_ERROR(run->step());
    run->times.clear();
    run->processorTimes.clear();
    std::ranges::fill(run->kernels, KernelSeconds{});
    return run;
  }

  Status step() {
    ++scalars.step;
    const double start = steadySeconds();
    const double processorStart = processorSeconds();
    MEGA_RETURN_IF_ERROR(ranks->run([&](Executor &rank) {
      kernelSeconds = {};
      Status status = rank.runStep(train, scalars, 0);
      KernelSeconds &sums = kernels[static_cast<size_t>(rank.rank())];
      for (size_t kernel = 0; kernel < kKernelCount; ++kernel) {
        sums[kernel] += kernelSeconds[kernel];
      }
      return status;
    }));
    times.push_back(steadySeconds() - start);
    processorTimes.push_back(processorSeconds() - processorStart);
    return Status::ok();
  }

  std::string name;
  std::optional<LoadedPlan> loaded;
  std::unique_ptr<RankWorld> world;
  std::unique_ptr<LocalRanks> ranks;
  uint32_t train = 0;
  StepScalars scalars;
  std::vector<double> times, processorTimes;
  /// By rank, of all steps.
  std::vector<KernelSeconds> kernels;
};

/// Milliseconds per step of what takes at least half a percent.
void printKernels(const Run &one, const Run &many) {
  const double scale = 1e3 / static_cast<double>(one.times.size());
  const auto mean = [&](size_t kernel) {
    double sum = 0;
    for (const KernelSeconds &rank : many.kernels) {
      sum += rank[kernel];
    }
    return scale * sum / static_cast<double>(many.kernels.size());
  };
  const auto most = [&](size_t kernel) {
    double result = 0;
    for (const KernelSeconds &rank : many.kernels) {
      result = std::max(result, scale * rank[kernel]);
    }
    return result;
  };
  std::vector<size_t> order;
  for (size_t kernel = 0; kernel < kKernelCount; ++kernel) {
    if (std::max(scale * one.kernels[0][kernel], most(kernel)) >=
        5 * median(one.times)) {
      order.push_back(kernel);
    }
  }
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return one.kernels[0][a] + mean(a) > one.kernels[0][b] + mean(b);
  });
  fmt::print("\n{:18} {:>9} {:>9} {:>9}  milliseconds per step\n", "kernel",
             "one", "many", "largest");
  for (const size_t kernel : order) {
    fmt::print("{:18} {:>9.1f} {:>9.1f} {:>9.1f}\n",
               kernelSpec(static_cast<Kernel>(kernel)).name,
               scale * one.kernels[0][kernel], mean(kernel), most(kernel));
  }
}

Status run(int argc, char **argv, CLI::App &app) {
  std::string onePath;
  std::string manyPath;
  int threads = 2;
  double seconds = 60;
  app.add_option("ONE", onePath, "plan of one rank")->required();
  app.add_option("MANY", manyPath, "plan of many ranks")->required();
  app.add_option("--threads", threads, "threads of all ranks of a plan (2)")
      ->option_text("N")
      ->check(wholeNumber(1, 1024));
  app.add_option("--seconds", seconds, "time for both (60)")
      ->option_text("S")
      ->check(nonNegative());
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &) {
    return print(app.help());
  } catch (const CLI::ParseError &error) {
    return usageError("{}; see bench-ranks --help", error.what());
  }
  MEGA_ASSIGN_OR_RETURN(const auto one, Run::open(onePath, threads));
  MEGA_ASSIGN_OR_RETURN(const auto many, Run::open(manyPath, threads));
  constexpr int64_t kLeastSteps = 3;
  const double end = steadySeconds() + seconds;
  while (std::ssize(one->times) < kLeastSteps || steadySeconds() < end) {
    MEGA_RETURN_IF_ERROR(one->step());
    MEGA_RETURN_IF_ERROR(many->step());
  }
  std::vector<double> ratios;
  for (size_t i = 0; i < one->times.size(); ++i) {
    ratios.push_back(many->times[i] / one->times[i]);
  }
  fmt::print("{} threads, {} steps of each\n", threads, ratios.size());
  for (const Run *each : {one.get(), many.get()}) {
    fmt::print("{:20} {} rank(s)  median {:.3f} s  fastest {:.3f} s  "
               "processors {:.3f} s\n",
               each->name, each->ranks->size(), median(each->times),
               std::ranges::min(each->times), median(each->processorTimes));
  }
  fmt::print("many / one: {:.3f} of the medians, {:.3f} the median of pairs, "
             "{:.3f} of the processors' time\n",
             median(many->times) / median(one->times), median(ratios),
             median(many->processorTimes) / median(one->processorTimes));
  printKernels(*one, *many);
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures ranks of one machine against threads of one rank.",
               "bench-ranks");
  return finish(app, run(argc, argv, app));
}
