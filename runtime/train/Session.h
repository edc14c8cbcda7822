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

namespace mega {

/// Processors this process may use.
int usableProcessors();

class Session {
public:
  /// Creates threads and memory; weights are initialised from `seed`.
  static StatusOr<std::unique_ptr<Session>> create(const LoadedPlan &plan,
                                                   int threads, uint64_t seed);

  /// A loader for this plan's batches.
  StatusOr<BatchLoader> openData(const std::string &prefix, uint64_t seed,
                                 std::optional<int64_t> ignoreToken,
                                 bool once) const;

  /// Fills the batch that the next step (or the one `ahead` later) reads.
  void fill(const BatchLoader &loader, int64_t step, uint32_t ahead);
  /// Runs the eval entry point over every sample once, or over the samples of
  /// the first `steps` global batches if that is not 0.
  EvalResult evaluate(const BatchLoader &loader, const StepScalars &scalars,
                      int64_t steps);

  Executor &executor() { return *executor_; }
  uint32_t trainEntry() const { return train_; }
  int64_t microBatches() const;

private:
  Session() = default;

  const plan::Plan *plan = nullptr;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Executor> executor_;
  uint32_t train_ = 0;
  uint32_t eval_ = 0;
  uint32_t tokens_ = 0;
  uint32_t labels_ = 0;
};

/// Makes the folder of a dump and checks that its file can be written.
Status prepareDump(const DumpRequest &request);
/// Writes all weights or gradients, by logical name, as safetensors.
Status dumpTensors(const Executor &executor, const DumpRequest &request);
/// Reads weights that dumpTensors wrote; names and shapes must agree.
Status loadWeights(Executor &executor, const std::string &path);

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_SESSION_H
