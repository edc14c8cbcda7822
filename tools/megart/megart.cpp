//===- megart.cpp - Runs plans: the command line --------------------------===//
#include "runtime/core/Files.h"
#include "runtime/plan/Inspect.h"
#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/Verifier.h"
#include "runtime/train/StepTrace.h"
#include "runtime/train/Trainer.h"
#include "tools/megart/LaunchArguments.h"
#include "tools/megart/RunConfig.h"
#include "tools/report/PlanReport.h"
#include "tools/support/CommandLine.h"

#include <functional>
#include <memory>
#include <vector>

using namespace mega;

namespace {

constexpr const char *kExamples =
    "Examples:\n"
    "  megart train gpt2-tiny.mega --data data/text --steps 300 --lr 3e-3\n"
    "  megart train gpt2-tiny.mega --config run.toml --log-file metrics.jsonl\n"
    "  megart eval gpt2-tiny.mega --data data/valid --weights w.safetensors\n"
    "  megart inspect gpt2-tiny.mega\n"
    "\n";

// One line: the help of a command has to fit a screen.
constexpr const char *kExitCodes =
    "Exit codes: 0 ok, 1 failed, 2 usage, 65 bad "
    "plan or data, 69 unavailable, 74 I/O";

/// Loads a plan and proves it before anything is allocated.
StatusOr<LoadedPlan> open(const std::string &path) {
  MEGA_ASSIGN_OR_RETURN(LoadedPlan plan, loadPlanFile(path));
  MEGA_RETURN_IF_ERROR_CONTEXT(verifyPlan(plan.root()), "{}", path);
  return plan;
}

/// Writes the page about the last step, into a file made before the first.
StatusOr<std::function<Status(const StepTimes &)>>
timelineWriter(const LoadedPlan &plan, const std::string &path) {
  MEGA_ASSIGN_OR_RETURN(AtomicFile created, AtomicFile::create(path));
  const auto file = std::make_shared<AtomicFile>(std::move(created));
  return std::function([&plan, file](const StepTimes &times) -> Status {
    MEGA_RETURN_IF_ERROR_CONTEXT(
        file->write(renderHtml(measuredReport(plan, times))), "--timeline");
    MEGA_RETURN_IF_ERROR_CONTEXT(file->commit(), "--timeline");
    return Status::ok();
  });
}

Status runTrain(const std::string &path, TrainOptions options,
                const std::string &schedule, const std::string &timeline,
                const std::vector<std::string> &dumps) {
  const auto kind = findLearningRateKind(schedule);
  if (!kind) {
    return usageError("--lr-schedule {} is none of constant, linear, cosine, "
                      "wsd",
                      schedule);
  }
  options.learningRate.kind = *kind;
  options.learningRate.totalSteps = options.steps;
  for (const std::string &text : dumps) {
    MEGA_ASSIGN_OR_RETURN(const DumpRequest request, parseDumpRequest(text));
    options.dumps.push_back(request);
  }
  MEGA_ASSIGN_OR_RETURN(const LoadedPlan plan, open(path));
  if (!timeline.empty()) {
    MEGA_ASSIGN_OR_RETURN(options.onLastStep, timelineWriter(plan, timeline));
  }
  return train(plan, options);
}

Status runEval(const std::string &path, const EvalOptions &options) {
  MEGA_ASSIGN_OR_RETURN(const LoadedPlan plan, open(path));
  MEGA_ASSIGN_OR_RETURN(const EvalResult result, evaluate(plan, options));
  return options.ranks.isRoot()
             ? print(fmt::format("loss {:.6f} over {} tokens\n", result.loss,
                                 result.tokens))
             : Status::ok();
}

Status runInspect(const std::string &path, bool json) {
  MEGA_ASSIGN_OR_RETURN(const LoadedPlan plan, loadPlanFile(path));
  MEGA_RETURN_IF_ERROR(print(json ? inspectJson(plan) : inspectText(plan)));
  // Printed first: a plan that computes nonsense is one to look at.
  MEGA_RETURN_IF_ERROR_CONTEXT(verifyPlan(plan.root()), "{}", path);
  return Status::ok();
}

/// The tool, and the plans it runs: what a bug report needs.
std::string version() {
  return fmt::format("megart {}, plan format {}, schema {:016x}, device cpu\n",
                     MEGA_VERSION, kPlanVersion, kPlanSchema);
}

struct TrainCommand {
  TrainOptions options;
  std::string schedule = "constant";
  std::vector<std::string> dumps;
  std::string config;
  std::string timeline;
  int64_t decaySteps = 0;
};

void addCommon(CLI::App &command, std::string &plan) {
  command.get_formatter()->column_width(24);
  command.footer(kExitCodes);
  command.add_option("PLAN", plan, "plan made by megac")
      ->option_text(" ")
      ->required();
}

/// Where the data comes from, as it is written.
struct DataArguments {
  std::vector<std::string> data;
  std::string split;
  std::string part;
};

void addData(CLI::App &command, DataArguments &arguments) {
  addValue(command, "--data", arguments.data, "PREFIX",
           "a dataset, or W1 PREFIX1 W2 PREFIX2 ... (required)");
  addValue(command, "--split", arguments.split, "A,B,C",
           "shares of train, valid, test documents (none)");
}

StatusOr<DataSource> toSource(const DataArguments &arguments) {
  MEGA_ASSIGN_OR_RETURN(DataSource source,
                        DataSource::parse("--data", arguments.data));
  if (!arguments.split.empty()) {
    MEGA_ASSIGN_OR_RETURN(source.split, Split::parse(arguments.split));
  }
  return source;
}

/// The same with --part, which belongs to --split.
StatusOr<DataSource> toPart(const DataArguments &arguments) {
  MEGA_ASSIGN_OR_RETURN(DataSource source, toSource(arguments));
  if (arguments.part.empty() != !source.split) {
    return source.split
               ? usageError("--split {} needs --part train, valid or test",
                            arguments.split)
               : usageError("--part {} needs --split, such as 969,30,1",
                            arguments.part);
  }
  if (source.split) {
    MEGA_ASSIGN_OR_RETURN(source.part, parsePart(arguments.part));
    if (!source.split->has(source.part)) {
      return usageError("--split {} has no {} part: its share is 0",
                        arguments.split, arguments.part);
    }
  }
  return source;
}

/// What train and eval share.
template <typename Options>
void addRun(CLI::App &command, Options &options, int64_t &ignoreToken) {
  addDefault(command, "--seed", options.seed, "N",
             "of weights, dropout, order of samples")
      ->check(wholeNumber());
  addValue(command, "--threads", options.ranks.threads, "N",
           "threads of all ranks (all usable processors)")
      ->check(wholeNumber(1, 1024));
  addValue(command, "--ignore-token", ignoreToken, "ID",
           "labels equal to it do not count (none)")
      ->check(wholeNumber());
  addDefault(command, "--eval-steps", options.evalSteps, "N",
             "batches of an evaluation; 0: the whole dataset")
      ->check(wholeNumber());
}

void addTrain(CLI::App &command, TrainCommand &train) {
  TrainOptions &options = train.options;
  LearningRate::Options &rate = options.learningRate;
  addValue(command, "--steps", options.steps, "N", "optimizer steps (required)")
      ->check(wholeNumber(1, int64_t{1} << 40));
  addValue(command, "--lr", rate.peak, "F", "peak learning rate (required)")
      ->check(positive());
  addDefault(command, "--lr-schedule", train.schedule, "S",
             "constant, linear, cosine, wsd");
  addDefault(command, "--min-lr", rate.minimum, "F",
             "rate at the end of the schedule")
      ->check(nonNegative());
  addDefault(command, "--warmup-steps", rate.warmupSteps, "N",
             "steps of linear warm-up")
      ->check(wholeNumber());
  addValue(command, "--decay-steps", train.decaySteps, "N",
           "steps of wsd's decay (a fifth of --steps)")
      ->check(wholeNumber(1));
  addDefault(command, "--weight-decay", options.weightDecay, "F",
             "decoupled decay of matrices")
      ->check(nonNegative());
  addDefault(command, "--beta1", options.beta1, "F",
             "AdamW's decay of the gradient's mean")
      ->check(fraction());
  addDefault(command, "--beta2", options.beta2, "F",
             "AdamW's decay of the gradient's square")
      ->check(fraction());
  addDefault(command, "--epsilon", options.epsilon, "F",
             "added to AdamW's denominator")
      ->check(positive());
  addDefault(command, "--clip", options.clip, "F",
             "largest gradient norm; 0: no clipping")
      ->check(nonNegative());
  addValue(command, "--valid", options.valid, "PREFIX",
           "dataset to evaluate on, at the end (that of --split)");
  addValue(command, "--eval-every", options.evalEvery, "N",
           "and every N steps (only at the end)")
      ->check(wholeNumber(1));
}

void addOutput(CLI::App &command, TrainCommand &train) {
  addValue(command, "--log-file", train.options.logFile, "PATH",
           "metrics, a JSON object per line (none)");
  addValue(command, "--dump", train.dumps, "WHAT",
           "weights@STEP=DIR or gradients@STEP=DIR; repeatable")
      ->allow_extra_args(false);
  addValue(command, "--trace", train.options.traceFile, "PATH",
           fmt::format("the first {} steps as Chrome or Perfetto trace (none)",
                       kTracedSteps));
  addValue(command, "--timeline", train.timeline, "PATH",
           "HTML: the last step, measured and planned (none)");
  addValue(command, "--config", train.config, "FILE",
           "these options in TOML; the command line wins");
}

/// What the parser cannot require because a TOML file may have it.
Status checkRequired(const CLI::App &command) {
  for (const char *name : {"--data", "--steps", "--lr"}) {
    const CLI::Option *option = command.get_option_no_throw(name);
    if (option && option->empty()) {
      return usageError("{} is required; see megart {} --help", name,
                        command.get_name());
    }
  }
  return Status::ok();
}

Status run(int argc, char **argv, CLI::App &app) {
  std::string plan;
  int64_t ignoreToken = -1;
  TrainCommand train;
  DataArguments data;
  CLI::App &trainCommand = *app.add_subcommand("train", "Train a plan on data");
  addCommon(trainCommand, plan);
  addData(trainCommand, data);
  addTrain(trainCommand, train);
  addRun(trainCommand, train.options, ignoreToken);
  LaunchArguments launch;
  trainCommand.add_flag("--processes", launch.processes,
                        "ranks are processes that this one starts");
  addLaunch(trainCommand, launch);
  addOutput(trainCommand, train);

  EvalOptions evaluation;
  CLI::App &evalCommand =
      *app.add_subcommand("eval", "Mean loss of a plan over a dataset");
  addCommon(evalCommand, plan);
  addData(evalCommand, data);
  addValue(evalCommand, "--part", data.part, "PART",
           "of --split: train, valid or test");
  addRun(evalCommand, evaluation, ignoreToken);
  addLaunch(evalCommand, launch);
  addValue(evalCommand, "--weights", evaluation.weights, "PATH",
           "safetensors of logical tensors (initial weights)");

  CLI::App &inspectCommand =
      *app.add_subcommand("inspect", "Print what a plan does and needs");
  addCommon(inspectCommand, plan);
  bool json = false;
  inspectCommand.add_flag("--json", json, "print JSON");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion &) {
    return print(version());
  } catch (const CLI::Success &) {
    return print(app.help());
  } catch (const CLI::ParseError &error) {
    return usage(app, error, argc, argv);
  }
  if (inspectCommand.parsed()) {
    return runInspect(plan, json);
  }
  CLI::App &command = trainCommand.parsed() ? trainCommand : evalCommand;
  if (!train.config.empty()) {
    MEGA_RETURN_IF_ERROR(applyConfig(command, train.config));
  }
  MEGA_RETURN_IF_ERROR(checkRequired(command));
  if (!command.get_option("--ignore-token")->empty()) {
    train.options.ignoreToken = ignoreToken;
    evaluation.ignoreToken = ignoreToken;
  }
  if (evalCommand.parsed()) {
    MEGA_ASSIGN_OR_RETURN(evaluation.ranks,
                          toRanks(command, launch, evaluation.ranks.threads));
    MEGA_ASSIGN_OR_RETURN(evaluation.data, toPart(data));
    return runEval(plan, evaluation);
  }
  MEGA_ASSIGN_OR_RETURN(train.options.ranks,
                        toRanks(command, launch, train.options.ranks.threads));
  MEGA_ASSIGN_OR_RETURN(const bool starts,
                        startsProcesses(launch, train.options.ranks.launch));
  if (!train.timeline.empty() &&
      (starts || train.options.ranks.launch.worldSize > 1)) {
    return usageError(
        "--timeline shows the ranks of one process, and these are "
        "several; take --trace, which writes a file for each");
  }
  if (starts) {
    MEGA_ASSIGN_OR_RETURN(const LoadedPlan loaded, open(plan));
    if (const int64_t ranks = meshOf(loaded.root()).ranks(); ranks > 1) {
      return startProcesses(static_cast<int>(ranks), argc, argv);
    }
  }
  if (train.decaySteps > 0) {
    train.options.learningRate.decaySteps = train.decaySteps;
  }
  MEGA_ASSIGN_OR_RETURN(train.options.data, toSource(data));
  return runTrain(plan, train.options, train.schedule, train.timeline,
                  train.dumps);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Runs compiled plans.", "megart");
  app.set_version_flag("--version", MEGA_VERSION);
  app.require_subcommand(1);
  app.footer(std::string(kExamples) + kExitCodes);
  return finish(app, run(argc, argv, app));
}
