//===- Trainer.h - The training loop ----------------------------*- C++ -*-===//
//
// Runs a plan on data: batches, learning rate, metrics, evaluation, dumps. What
// a step computes is the plan's business; the loop only feeds it and reports.
// After the second step it allocates nothing and maps no memory. The ranks of
// the plan are threads of this process or, if a launcher has started it as one
// of them, processes: the one with rank 0 prints, logs and writes dumps.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TRAIN_TRAINER_H
#define MEGA_RUNTIME_TRAIN_TRAINER_H

#include "runtime/data/DataSource.h"
#include "runtime/launch/Launcher.h"
#include "runtime/optim/LearningRate.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Status.h"
#include "runtime/plan/StepTimes.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mega {

/// `gradients@3=DIR`: logical tensors of step 3 in DIR/gradients.safetensors.
/// Weights of step 0 are the initial ones; gradients are those of the loss, not
/// clipped, and start at step 1.
struct DumpRequest {
  enum class What { Weights, Gradients };
  What what = What::Weights;
  int64_t step = 0;
  std::string directory;
};
/// Code::Usage for anything but `gradients|weights@STEP=DIR`.
StatusOr<DumpRequest> parseDumpRequest(const std::string &text);

/// How the ranks of a plan come together.
struct RankOptions {
  /// Launcher::None, or a world of one: all ranks are threads here.
  LaunchInfo launch;
  /// Of the ranks on this host together; 0: as many as the process may use.
  int threads = 0;
  /// For one operation between ranks.
  std::chrono::milliseconds timeLimit = std::chrono::minutes(5);
  /// As in ProcessWorldOptions.
  std::function<void(int port)> onListening = [](int) {};

  /// Whether this process prints and writes.
  bool isRoot() const { return launch.rank == 0; }
};

struct TrainOptions {
  /// With a split, its train part is read.
  DataSource data;
  /// Evaluated every `evalEvery` steps and at the end. Empty: the valid part of
  /// the data's split, if that has one, or nothing.
  std::string valid;
  int64_t evalEvery = 0;
  /// Global batches of one evaluation; 0: the whole dataset.
  int64_t evalSteps = 0;
  int64_t steps = 0;
  LearningRate::Options learningRate;
  float weightDecay = 0;
  /// Global gradient norm; 0: no clipping.
  float clip = 1;
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  uint64_t seed = 1234;
  RankOptions ranks;
  std::optional<int64_t> ignoreToken;
  std::string logFile;
  std::vector<DumpRequest> dumps;
  /// Events of the first steps (StepTrace.h), written at the end: a file of all
  /// ranks, or of each process its own. Empty: nothing is recorded.
  std::string traceFile;
  /// Called at the end with the times of the last step, if it is set and all
  /// ranks are threads of this process.
  std::function<Status(const StepTimes &)> onLastStep;
};

/// Trains. Progress and a summary go to stderr; errors are returned with the
/// step they happened in. What dumps and the log need is made before step 1, so
/// that no run is lost to a folder that cannot be written. An evaluation in
/// between leaves the bits of the training as they are.
Status train(const LoadedPlan &plan, const TrainOptions &options);

struct EvalOptions {
  /// The part of a split, or all of it.
  DataSource data;
  /// Initial weights' seed; there are no checkpoints to read yet.
  uint64_t seed = 1234;
  /// Weights as a safetensors file of logical tensors (from --dump); empty: the
  /// initial ones.
  std::string weights;
  /// Global batches to read; 0: the whole dataset.
  int64_t evalSteps = 0;
  RankOptions ranks;
  std::optional<int64_t> ignoreToken;
};

struct EvalResult {
  double loss = 0;
  int64_t tokens = 0;
};
/// The token-mean loss over every sample of the data, once; says on stderr how
/// far it is if that takes long.
StatusOr<EvalResult> evaluate(const LoadedPlan &plan,
                              const EvalOptions &options);

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_TRAINER_H
