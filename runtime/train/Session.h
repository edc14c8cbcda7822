//===- Session.h - A plan ready to run on data ------------------*- C++ -*-===//
//
// What training and evaluation share: ranks, loaders, steps. A step runs on all
// ranks of this process at once; what is read afterwards (loss, gradient norm)
// the plan has made equal on all ranks.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TRAIN_SESSION_H
#define MEGA_RUNTIME_TRAIN_SESSION_H

#include "runtime/data/BatchLoader.h"
#include "runtime/train/LocalRanks.h"
#include "runtime/train/RankWorld.h"
#include "runtime/train/Trainer.h"
#include "runtime/train/WholeTensors.h"

#include <memory>
#include <vector>

namespace mega {

/// Processors this process may use.
int usableProcessors();

class Session {
public:
  /// Creates threads and memory of the ranks that `world` has here; weights are
  /// initialised from `seed`. `threads` are those of all of them. `world`
  /// outlives the session, and has finished before it ends.
  static StatusOr<std::unique_ptr<Session>>
  create(const LoadedPlan &plan, RankWorld &world, int threads, uint64_t seed);

  /// A loader for this plan's batches.
  StatusOr<BatchLoader> openData(const DataSource &source, uint64_t seed,
                                 std::optional<int64_t> ignoreToken,
                                 bool once) const;

  /// Fills the inputs of the next step with the batch of `step` (from 0), on
  /// each rank with the rows of its replica; fails as the loader does.
  Status fill(const BatchLoader &loader, int64_t step) {
    return fillAt(loader, step, executor().stepsDone());
  }
  /// The same for step number `at` of the executors, evaluations included; from
  /// any thread (Executor.h).
  Status fillAt(const BatchLoader &loader, int64_t step, uint64_t at);
  /// Runs the eval entry point over every sample once, or over the samples of
  /// the first `steps` global batches if that is not 0.
  StatusOr<EvalResult> evaluate(const BatchLoader &loader,
                                const StepScalars &scalars, int64_t steps = 0);

  /// Runs the train entry point on all ranks, whose row 0 is sample
  /// `firstSample`.
  Status trainStep(const StepScalars &scalars, int64_t firstSample) {
    ranks_->setStep(scalars.step);
    return runStep(train_, scalars, firstSample);
  }
  /// Replaces the weights (dumpTensors). Code::BadInput, with no weight
  /// changed, if a tensor is missing or has another type or shape.
  Status loadWeights(const std::string &path);
  /// Writes all weights or gradients, by logical name, as safetensors. On all
  /// processes; the root writes.
  Status dumpTensors(const DumpRequest &request);

  /// Of the first rank here.
  Executor &executor() { return ranks_->first(); }
  LocalRanks &ranks() { return *ranks_; }
  WholeTensors &tensors() { return *tensors_; }
  /// Whether this process prints and writes: it has rank 0.
  bool isRoot() const { return tensors_->isRoot(); }
  int64_t microBatches() const;

private:
  struct TermTotal {
    double sum = 0;
    int64_t count = 0;
  };

  Session() = default;
  Status checkInputs() const;
  Status runStep(uint32_t entry, const StepScalars &scalars,
                 int64_t firstSample) {
    return ranks_->run([&](Executor &executor) {
      return executor.runStep(entry, scalars, firstSample);
    });
  }

  const plan::Plan *plan = nullptr;
  std::unique_ptr<LocalRanks> ranks_;
  std::unique_ptr<WholeTensors> tensors_;
  uint32_t train_ = 0;
  uint32_t eval_ = 0;
  uint32_t tokens_ = 0;
  uint32_t labels_ = 0;
  /// Of plans for packed sequences.
  std::optional<uint32_t> positions_;
  std::optional<uint32_t> segments_;
  /// Per loss term, of the evaluation in progress.
  std::vector<TermTotal> totals;
};

/// Makes the folder of a dump and checks that its file can be written.
Status prepareDump(const DumpRequest &request);
} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_SESSION_H
