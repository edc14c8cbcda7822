//===- BatchLoader.h - Micro-batches of tokens and labels -------*- C++ -*-===//
//
// Cuts a dataset into the micro-batches of a run (SampleOrder.h). The loader
// owns the mapped files only; batches go to memory of the caller, typically one
// half of a double buffer. After open() nothing is allocated, and fill() may be
// called from any number of threads.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_BATCHLOADER_H
#define MEGA_RUNTIME_DATA_BATCHLOADER_H

#include "runtime/data/IndexedDataset.h"
#include "runtime/data/SampleOrder.h"

#include <optional>

namespace mega {

/// A label that counts neither in the loss nor in the number of tokens.
inline constexpr int32_t kIgnoredLabel = -100;

struct BatchLoaderOptions {
  /// Tokens of one row, S.
  int64_t sequenceLength = 1;
  /// Rows of one micro-batch on one rank, B.
  int64_t microBatchSize = 1;
  /// Rows of one step on all ranks, G: a multiple of B*dp.
  int64_t globalBatchSize = 1;
  /// dp.
  int64_t dataParallel = 1;
  /// Every token must be below it.
  int64_t vocabulary = 1;
  uint64_t seed = 0;
  /// Labels equal to it become kIgnoredLabel; tokens stay.
  std::optional<int64_t> ignoreToken;
  /// Training: a new order each epoch, without end. Evaluation sets `once`:
  /// every sample in file order; rows past the last one are padding.
  bool once = false;
};

class BatchLoader {
public:
  /// Opens PREFIX.idx and PREFIX.bin and reads all tokens once to check them.
  /// Code::Io and Code::BadInput as in IndexedDataset; Code::BadInput as well
  /// for options that contradict each other, a token outside the vocabulary,
  /// and a dataset that holds less than one global batch (training) or no
  /// sample at all (evaluation).
  static StatusOr<BatchLoader> open(const std::string &prefix,
                                    const BatchLoaderOptions &options);

  /// Writes B*S tokens and labels, row after row. Padding rows have tokens 0
  /// and every label kIgnoredLabel. `step` counts from 0; the others are in
  /// [0, microBatches()) and [0, dp).
  void fill(int64_t step, int64_t microBatch, int64_t dpRank,
            std::span<int32_t> tokens, std::span<int32_t> labels) const;

  /// Number in the run of row 0 of a micro-batch: the global sample index that
  /// keys dropout.
  int64_t firstRow(int64_t step, int64_t microBatch, int64_t dpRank) const {
    return step * options.globalBatchSize +
           (microBatch * options.dataParallel + dpRank) *
               options.microBatchSize;
  }

  const IndexedDataset &dataset() const { return dataset_; }
  /// Samples in the dataset, N.
  int64_t samples() const { return order.samples; }
  /// Micro-batches of one rank in a step.
  int64_t microBatches() const {
    return options.globalBatchSize /
           (options.microBatchSize * options.dataParallel);
  }
  /// Steps that read every sample once; the last may be part padding.
  int64_t stepsPerPass() const {
    return (samples() + options.globalBatchSize - 1) / options.globalBatchSize;
  }

private:
  IndexedDataset dataset_;
  BatchLoaderOptions options;
  SampleOrder order;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_BATCHLOADER_H
