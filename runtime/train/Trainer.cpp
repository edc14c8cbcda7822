#include "runtime/train/Trainer.h"

#include "runtime/plan/Report.h"
#include "runtime/telemetry/MetricsLog.h"
#include "runtime/telemetry/Progress.h"
#include "runtime/train/Prefetcher.h"
#include "runtime/train/ProcessWorld.h"
#include "runtime/train/Session.h"
#include "runtime/train/StepTrace.h"

#include <sys/resource.h>

#include <charconv>
#include <cmath>

namespace mega {

StatusOr<DumpRequest> parseDumpRequest(const std::string &text) {
  const auto malformed = [&] {
    return usageError("--dump {} is not gradients@STEP=DIR or weights@STEP=DIR",
                      text);
  };
  const size_t at = text.find('@');
  const size_t equals = text.find('=', at == std::string::npos ? 0 : at);
  if (at == std::string::npos || equals == std::string::npos) {
    return malformed();
  }
  DumpRequest request;
  const std::string what = text.substr(0, at);
  if (what != "gradients" && what != "weights") {
    return malformed();
  }
  request.what = what == "weights" ? DumpRequest::What::Weights
                                   : DumpRequest::What::Gradients;
  const char *end = text.data() + equals;
  const auto parsed = std::from_chars(text.data() + at + 1, end, request.step);
  request.directory = text.substr(equals + 1);
  if (parsed.ec != std::errc() || parsed.ptr != end || request.step < 0 ||
      request.directory.empty()) {
    return malformed();
  }
  if (request.what == DumpRequest::What::Gradients && request.step == 0) {
    return usageError("--dump {}: the first gradients are those of step 1",
                      text);
  }
  return request;
}

namespace {

/// What is evaluated on; empty: nothing.
DataSource validation(const TrainOptions &options) {
  if (!options.valid.empty()) {
    return {options.valid};
  }
  if (!options.data.split || !options.data.split->has(Part::Valid)) {
    return {};
  }
  DataSource source = options.data;
  source.part = Part::Valid;
  return source;
}

Status checkOptions(const TrainOptions &options) {
  if (options.evalEvery > 0 && validation(options).empty()) {
    return usageError("--eval-every {} but there is nothing to evaluate on: "
                      "give --valid PREFIX, or --split with a second number "
                      "above 0",
                      options.evalEvery);
  }
  for (const DumpRequest &dump : options.dumps) {
    if (dump.step > options.steps) {
      return usageError("--dump at step {} but --steps is {}", dump.step,
                        options.steps);
    }
  }
  return Status::ok();
}

Status dumpStep(Session &session, const TrainOptions &options, int64_t step) {
  for (const DumpRequest &dump : options.dumps) {
    if (dump.step == step) {
      MEGA_RETURN_IF_ERROR_CONTEXT(session.dumpTensors(dump), "dump of step {}",
                                   step);
    }
  }
  return Status::ok();
}

/// Bytes of memory this process had at its peak.
uint64_t peakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

void printSummary(const plan::Plan &plan, const LocalRanks &ranks) {
  const uint64_t planned = ranks.bytes();
  const uint64_t peak = peakResidentBytes();
  const uint64_t beside = peak > planned ? peak - planned : 0;
  uint64_t most = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    most = std::max(most, ranks.executor(i).memory().bytes());
  }
  const std::string each =
      ranks.size() == 1 ? ""
                        : fmt::format(" on {} ranks, {}{} each", ranks.size(),
                                      stageCount(plan) == 1 ? "" : "at most ",
                                      humanBytes(most));
  fmt::print(stderr,
             "memory: planned {}{}, peak resident {}: {} beside the plan "
             "(reserve {})\n",
             humanBytes(planned), each, humanBytes(peak), humanBytes(beside),
             humanBytes(plan.reserve_bytes() * ranks.size()));
}

StepScalars scalarsOf(const TrainOptions &options) {
  StepScalars scalars;
  scalars.seed = options.seed;
  scalars.beta1 = options.beta1;
  scalars.beta2 = options.beta2;
  scalars.epsilon = options.epsilon;
  scalars.weightDecay = options.weightDecay;
  scalars.clip = options.clip;
  return scalars;
}

StatusOr<std::unique_ptr<RankWorld>> openWorld(const LoadedPlan &loaded,
                                               const RankOptions &options) {
  if (options.launch.launcher == Launcher::None ||
      options.launch.worldSize == 1) {
    return RankWorld::ofThreads(loaded.root(), options.timeLimit);
  }
  ProcessWorldOptions processes;
  processes.launch = options.launch;
  processes.timeLimit = options.timeLimit;
  processes.onListening = options.onListening;
  return joinProcesses(loaded, processes);
}

/// Threads of this process: its share of those of the host.
int threadsOf(const RankOptions &options) {
  const int all = options.threads == 0 ? usableProcessors() : options.threads;
  const int size = options.launch.localSize;
  return std::max(1, all / size + (options.launch.localRank < all % size));
}

/// Opens a session in `world`, calls run(session), which returns a Status, and
/// ends the world before the session: other ranks may still need its data.
template <typename Run>
Status runIn(const LoadedPlan &loaded, const RankOptions &options,
             uint64_t seed, Run &&run) {
  MEGA_ASSIGN_OR_RETURN(const std::unique_ptr<RankWorld> world,
                        openWorld(loaded, options));
  auto session = Session::create(loaded, *world, threadsOf(options), seed);
  return world->finish(session.isOk() ? run(**session)
                                      : std::move(session).takeStatus());
}

/// What --trace and the times of the last step need, if they are asked for.
class Recording {
public:
  static StatusOr<Recording> begin(Session &session,
                                   const TrainOptions &options) {
    Recording recording;
    const bool alone = options.ranks.launch.worldSize == 1;
    if (!options.traceFile.empty()) {
      MEGA_ASSIGN_OR_RETURN(
          recording.file,
          AtomicFile::create(alone ? options.traceFile
                                   : pathOfRank(options.traceFile,
                                                session.executor().rank())));
    }
    if (alone) {
      recording.onLastStep = options.onLastStep;
    }
    if (recording.file || recording.onLastStep) {
      const auto steps =
          recording.file ? std::min<int64_t>(options.steps, kTracedSteps) : 0;
      recording.trace = std::make_unique<StepTrace>(
          session.ranks(), *session.executor().findEntryPoint("train"),
          static_cast<size_t>(steps));
    }
    return recording;
  }

  Status end() {
    if (file) {
      MEGA_RETURN_IF_ERROR_CONTEXT(trace->write(*file), "--trace");
      MEGA_RETURN_IF_ERROR_CONTEXT(file->commit(), "--trace");
    }
    return onLastStep ? onLastStep(trace->lastStep()) : Status::ok();
  }

private:
  std::optional<AtomicFile> file;
  std::function<Status(const StepTimes &)> onLastStep;
  std::unique_ptr<StepTrace> trace;
};

Status trainIn(Session &session, const LoadedPlan &loaded,
               const TrainOptions &options) {
  MEGA_ASSIGN_OR_RETURN(const LearningRate learningRate,
                        LearningRate::create(options.learningRate));
  const bool root = session.isRoot();
  for (const DumpRequest &dump : options.dumps) {
    if (root) {
      MEGA_RETURN_IF_ERROR_CONTEXT(prepareDump(dump), "--dump");
    }
  }
  MEGA_ASSIGN_OR_RETURN(
      const BatchLoader loader,
      session.openData(options.data, options.seed, options.ignoreToken, false));
  std::optional<BatchLoader> valid;
  if (const DataSource source = validation(options); !source.empty()) {
    MEGA_ASSIGN_OR_RETURN(valid, session.openData(source, options.seed,
                                                  options.ignoreToken, true));
  }
  std::optional<MetricsLog> log;
  if (root && !options.logFile.empty()) {
    MEGA_ASSIGN_OR_RETURN(
        log, MetricsLog::open(options.logFile, MetricsLog::Mode::Replace));
  }
  MEGA_ASSIGN_OR_RETURN(Recording recording,
                        Recording::begin(session, options));

  const plan::Plan &plan = loaded.root();
  Executor &executor = session.executor();
  StepScalars scalars = scalarsOf(options);
  if (root && (options.data.datasets.size() > 1 || options.data.split)) {
    fmt::print(
        stderr, "{}",
        loader.stream().describe(options.steps * plan.global_batch_size()));
  }
  MEGA_RETURN_IF_ERROR(dumpStep(session, options, 0));
  std::optional<Progress> progress;
  if (root) {
    progress.emplace(options.steps);
  }
  Prefetcher prefetcher(session, loader);
  StepMetrics metrics;
  metrics.tokens = int64_t{plan.global_batch_size()} * plan.sequence_length();
  const auto evaluatesAfter = [&](int64_t step) {
    return valid && (step == options.steps ||
                     (options.evalEvery > 0 && step % options.evalEvery == 0));
  };
  bool loaded_ = false;
  for (int64_t step = 1; step <= options.steps; ++step) {
    const double start = steadySeconds();
    if (!loaded_) {
      MEGA_RETURN_IF_ERROR_CONTEXT(session.fill(loader, step - 1), "step {}",
                                   step);
    }
    // Evaluation uses the inputs in between, so it ends the look-ahead.
    loaded_ = step < options.steps && !evaluatesAfter(step) &&
              executor.inputCopies() > 1;
    if (loaded_) {
      prefetcher.start(step);
    }
    scalars.step = step;
    scalars.lr = static_cast<float>(learningRate.at(step));
    MEGA_RETURN_IF_ERROR(
        session.trainStep(scalars, loader.firstRow(step - 1, 0, 0)));
    MEGA_RETURN_IF_ERROR_CONTEXT(prefetcher.wait(), "step {}", step + 1);
    metrics.step = step;
    metrics.loss = withoutNanSign(executor.loss());
    metrics.gradientNorm =
        withoutNanSign(std::sqrt(executor.gradientSquareSum()));
    metrics.learningRate = scalars.lr;
    metrics.seconds = steadySeconds() - start;
    if (progress) {
      progress->update(metrics);
    }
    if (log) {
      MEGA_RETURN_IF_ERROR_CONTEXT(log->write(metrics), "step {}", step);
    }
    if (!std::isfinite(metrics.loss) || !std::isfinite(metrics.gradientNorm)) {
      progress.reset();
      return makeError(Code::Failed,
                       "step {}: loss {} and gradient norm {} are not finite; "
                       "try a lower --lr or a longer --warmup-steps",
                       step, metrics.loss, metrics.gradientNorm);
    }
    MEGA_RETURN_IF_ERROR(dumpStep(session, options, step));
    if (evaluatesAfter(step)) {
      if (progress) {
        progress->clear();
      }
      MEGA_ASSIGN_OR_RETURN(
          const EvalResult result,
          session.evaluate(*valid, scalars, options.evalSteps));
      if (root) {
        fmt::print(stderr, "step {}  validation loss {:.6f} over {} tokens\n",
                   step, result.loss, result.tokens);
      }
      if (log) {
        MEGA_RETURN_IF_ERROR_CONTEXT(
            log->writeEvaluation(step, result.loss, result.tokens), "step {}",
            step);
      }
    }
  }
  progress.reset();
  if (root) {
    printSummary(plan, session.ranks());
  }
  return recording.end();
}

Status evaluateIn(Session &session, const EvalOptions &options,
                  EvalResult &result) {
  if (!options.weights.empty()) {
    MEGA_RETURN_IF_ERROR(session.loadWeights(options.weights));
  }
  MEGA_ASSIGN_OR_RETURN(
      const BatchLoader loader,
      session.openData(options.data, options.seed, options.ignoreToken, true));
  StepScalars scalars;
  scalars.seed = options.seed;
  MEGA_ASSIGN_OR_RETURN(result,
                        session.evaluate(loader, scalars, options.evalSteps));
  return Status::ok();
}

} // namespace

Status train(const LoadedPlan &loaded, const TrainOptions &options) {
  MEGA_RETURN_IF_ERROR(checkOptions(options));
  return runIn(loaded, options.ranks, options.seed, [&](Session &session) {
    return trainIn(session, loaded, options);
  });
}

StatusOr<EvalResult> evaluate(const LoadedPlan &loaded,
                              const EvalOptions &options) {
  EvalResult result;
  MEGA_RETURN_IF_ERROR(
      runIn(loaded, options.ranks, options.seed, [&](Session &session) {
        return evaluateIn(session, options, result);
      }));
  return result;
}

} // namespace mega
