//===- Session.h - A plan ready to run on data ------------------*- C++ -*-===//
//
// What training and evaluation share: threads, executor, loaders.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TRAIN_SESSION_H
#define MEGA_RUNTIME_TRAIN_SESSION_H

#include "runtime/core/Executor.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/data/BatchLoader.h"
#include "runtime/train/Trainer.h"

#include <memory>
#include <vector>

namespace mega {

/// Processors this process may use.
int usableProcessors();

class Session {
public:
  /// Creates threads and memory; weights are initialised from `seed`.
  static StatusOr<std::unique_ptr<Session>> create(const LoadedPlan &plan,
                                                   int threads, uint64_t seed);

  /// A loader for this plan's batches.
  StatusOr<BatchLoader> openData(const DataSource &source, uint64_t seed,
                                 std::optional<int64_t> ignoreToken,
                                 bool once) const;

  /// Fills the inputs of the next step with the batch of `step` (from 0); fails
  /// as the loader does.
  Status fill(const BatchLoader &loader, int64_t step) {
    return fillAt(loader, step, executor_->stepsDone());
  }
  /// The same for step number `at` of the executor, evaluations included; from
  /// any thread (Executor.h).
  Status fillAt(const BatchLoader &loader, int64_t step, uint64_t at);
  /// Runs the eval entry point over every sample once, or over the samples of
  /// the first `steps` global batches if that is not 0.
  StatusOr<EvalResult> evaluate(const BatchLoader &loader,
                                const StepScalars &scalars, int64_t steps = 0);

  Executor &executor() { return *executor_; }
  uint32_t trainEntry() const { return train_; }
  int64_t microBatches() const;

private:
  struct TermTotal {
    double sum = 0;
    int64_t count = 0;
  };

  Session() = default;

  const plan::Plan *plan = nullptr;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Executor> executor_;
  uint32_t train_ = 0;
  uint32_t eval_ = 0;
  uint32_t tokens_ = 0;
  uint32_t labels_ = 0;
  /// Per loss term, of the evaluation in progress.
  std::vector<TermTotal> totals;
};

/// Makes the folder of a dump and checks that its file can be written.
Status prepareDump(const DumpRequest &request);
/// Writes all weights or gradients, by logical name, as safetensors.
Status dumpTensors(const Executor &executor, const DumpRequest &request);
/// Reads weights that dumpTensors wrote. Code::BadInput, with no weight
/// changed, if a tensor is missing or has another type or shape.
Status loadWeights(Executor &executor, const std::string &path);

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_SESSION_H
