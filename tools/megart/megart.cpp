//===- megart.cpp - Runs plans: the command line --------------------------===//
#include "runtime/plan/Inspect.h"
#include "runtime/plan/Verifier.h"
#include "runtime/train/Trainer.h"
#include "tools/CommandLine.h"
#include "tools/megart/RunConfig.h"

#include <cstdio>

using namespace mega;

namespace {

constexpr const char *kFooter =
    "Examples:\n"
    "  megart train gpt2-tiny.mega --data data/text --steps 300 --lr 3e-3\n"
    "  megart train gpt2-tiny.mega --config run.toml --log-file metrics.jsonl\n"
    "  megart eval gpt2-tiny.mega --data data/valid --weights w.safetensors\n"
    "  megart inspect gpt2-tiny.mega\n"
    "\n"
    "Exit codes: 0 ok, 1 the run failed, 2 wrong usage, 65 bad plan or data,\n"
    "69 device or memory unavailable, 74 input/output error\n";

/// Loads a plan and proves it before anything is allocated.
StatusOr<LoadedPlan> open(const std::string &path) {
  MEGA_ASSIGN_OR_RETURN(LoadedPlan plan, loadPlanFile(path));
  MEGA_RETURN_IF_ERROR_CONTEXT(verifyPlan(plan.root()), "{}", path);
  return plan;
}

Status runTrain(const std::string &path, TrainOptions options,
                const std::string &schedule,
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
  return train(plan, options);
}

Status runEval(const std::string &path, const EvalOptions &options) {
  MEGA_ASSIGN_OR_RETURN(const LoadedPlan plan, open(path));
  MEGA_ASSIGN_OR_RETURN(const EvalResult result, evaluate(plan, options));
  fmt::print("loss {:.6f} over {} tokens\n", result.loss, result.tokens);
  return Status::ok();
}

Status runInspect(const std::string &path, bool json) {
  MEGA_ASSIGN_OR_RETURN(const LoadedPlan plan, loadPlanFile(path));
  MEGA_RETURN_IF_ERROR(print(json ? inspectJson(plan) : inspectText(plan)));
  // Printed first: a plan that computes nonsense is one to look at.
  MEGA_RETURN_IF_ERROR_CONTEXT(verifyPlan(plan.root()), "{}", path);
  return Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Runs compiled plans.", "megart");
  app.set_version_flag("--version", "megart " MEGA_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);

  std::string plan;
  TrainOptions training;
  EvalOptions evaluation;
  std::string schedule = "constant";
  std::vector<std::string> dumps;
  std::string config;
  int64_t ignoreToken = -1;
  int64_t decaySteps = 0;

  CLI::App *trainCommand = app.add_subcommand("train", "Train a plan on data");
  const auto addCommon = [&](CLI::App *command, std::string &data,
                             uint64_t &seed, int &threads) {
    command->add_option("PLAN", plan, "Plan made by megac")->required();
    command->add_option("--data", data, "Dataset: PREFIX.bin and PREFIX.idx")
        ->type_name("PREFIX");
    command->add_option("--seed", seed, "Seed of weights, dropout and order")
        ->capture_default_str();
    command
        ->add_option("--threads", threads,
                     "Threads of a rank (default: all usable processors)")
        ->check(CLI::Range(1, 1024));
    command->add_option("--ignore-token", ignoreToken,
                        "Labels equal to this id do not count");
  };
  addCommon(trainCommand, training.data, training.seed, training.threads);
  trainCommand->add_option("--steps", training.steps, "Optimizer steps")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  trainCommand->add_option("--valid", training.valid, "Dataset to evaluate on")
      ->type_name("PREFIX");
  trainCommand
      ->add_option("--eval-every", training.evalEvery,
                   "Evaluate every N steps (default: at the end)")
      ->check(CLI::PositiveNumber);
  trainCommand
      ->add_option("--lr", training.learningRate.peak, "Peak learning rate")
      ->check(CLI::PositiveNumber);
  trainCommand
      ->add_option("--lr-schedule", schedule, "constant, linear, cosine or wsd")
      ->capture_default_str();
  trainCommand
      ->add_option("--min-lr", training.learningRate.minimum,
                   "Rate at the end of the schedule")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  trainCommand
      ->add_option("--warmup-steps", training.learningRate.warmupSteps,
                   "Steps of linear warm-up")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  trainCommand->add_option("--decay-steps", decaySteps, "Steps of wsd's decay")
      ->check(CLI::PositiveNumber);
  trainCommand
      ->add_option("--weight-decay", training.weightDecay,
                   "Decoupled decay of matrices")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  trainCommand
      ->add_option("--clip", training.clip,
                   "Largest global gradient norm; 0: no clipping")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  trainCommand->add_option("--log-file", training.logFile,
                           "Metrics, a JSON object per line");
  trainCommand->add_option("--dump", dumps,
                           "gradients@STEP=DIR or weights@STEP=DIR");
  trainCommand->add_option(
      "--config", config,
      "TOML file with any of these options; the command line wins");

  CLI::App *evalCommand =
      app.add_subcommand("eval", "Mean loss of a plan over a dataset");
  addCommon(evalCommand, evaluation.data, evaluation.seed, evaluation.threads);
  evalCommand->add_option("--weights", evaluation.weights,
                          "safetensors of logical tensors");

  CLI::App *inspectCommand =
      app.add_subcommand("inspect", "Print what a plan does and needs");
  inspectCommand->add_option("PLAN", plan, "Plan made by megac")->required();
  bool json = false;
  inspectCommand->add_flag("--json", json, "Print JSON");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) {
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    return finish(app, usageStatus(app, error, argc, argv));
  }
  if (inspectCommand->parsed()) {
    return finish(app, runInspect(plan, json));
  }
  CLI::App *command = trainCommand->parsed() ? trainCommand : evalCommand;
  if (!config.empty()) {
    if (Status status = applyConfig(*command, config); !status.isOk()) {
      return finish(app, status);
    }
  }
  for (const char *name : {"--data", "--steps", "--lr"}) {
    if (CLI::Option *option = command->get_option_no_throw(name);
        option && option->empty()) {
      return finish(app, usageError("{} is required; see megart {} --help",
                                    name, command->get_name()));
    }
  }
  if (!command->get_option("--ignore-token")->empty()) {
    training.ignoreToken = ignoreToken;
    evaluation.ignoreToken = ignoreToken;
  }
  if (evalCommand->parsed()) {
    return finish(app, runEval(plan, evaluation));
  }
  if (decaySteps > 0) {
    training.learningRate.decaySteps = decaySteps;
  }
  return finish(app, runTrain(plan, training, schedule, dumps));
}
