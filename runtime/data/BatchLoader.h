//===- BatchLoader.h - Micro-batches of tokens and labels -------*- C++ -*-===//
//
// Cuts datasets into the micro-batches of a run (SampleOrder.h for the rows,
// SampleStream.h for what they read). The loader owns the mapped files only;
// batches go to memory of the caller, typically one half of a double buffer.
// fill() may be called from any number of threads. After open() nothing is
// allocated, except for balanced rows, of which every thread keeps one.
//
// Over the ranks of cp, tokens and labels are cut into pieces
// (SequenceOrder.h): each rank is given its piece of every row. Where tokens
// are in their documents is given whole, since a query sees keys of all ranks.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_BATCHLOADER_H
#define MEGA_RUNTIME_DATA_BATCHLOADER_H

#include "runtime/data/SampleStream.h"
#include "runtime/plan/SequenceOrder.h"

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
  /// Documents are kept apart. If not, a row is one document.
  bool packed = false;
  /// cp: pieces of a row, of which S is a multiple; of twice as many in zigzag.
  int64_t contextParallel = 1;
  SequenceOrder order = SequenceOrder::Contiguous;
};

/// Memory for one micro-batch, row after row.
struct BatchOutputs {
  /// The rank's piece of every row: B * S/cp elements each.
  std::span<int32_t> tokens;
  std::span<int32_t> labels;
  /// Optional (empty: not wanted), B*S elements, whole rows: balanced ones in
  /// the order of their pieces, others as they are. The position of a token in
  /// its document, or in the row if the document began before the row.
  std::span<int32_t> positions;
  /// Optional, the same. The number of the token of the row at which the
  /// token's document begins, 0 if it began before: what attention that keeps
  /// to documents masks by. Segment plus position is the token's place in its
  /// row.
  std::span<int32_t> segments;
};

class BatchLoader {
public:
  /// Opens the datasets. Those without a PREFIX.meta are read once, to check
  /// their tokens. Code::Io, Code::BadInput and Code::Usage as in SampleStream;
  /// Code::BadInput as well for options that contradict each other, a token
  /// outside the vocabulary, a PREFIX.meta of other files, and a dataset that
  /// holds less than one global batch (training on one dataset) or no sample
  /// at all.
  static StatusOr<BatchLoader> open(const DataSource &source,
                                    const BatchLoaderOptions &options);

  /// Writes a micro-batch. Padding rows have tokens 0, every label
  /// kIgnoredLabel, and are one document. `step` counts from 0; the others are
  /// in [0, microBatches()), [0, dp) and [0, cp). Code::BadInput for a token
  /// outside the vocabulary, which only a file that changed since it was
  /// checked can hold.
  Status fill(int64_t step, int64_t microBatch, int64_t dpRank, int64_t cpRank,
              const BatchOutputs &out) const;

  /// Number in the run of row 0 of a micro-batch: the global sample index that
  /// keys dropout.
  int64_t firstRow(int64_t step, int64_t microBatch, int64_t dpRank) const {
    return step * options.globalBatchSize +
           (microBatch * options.dataParallel + dpRank) *
               options.microBatchSize;
  }

  const SampleStream &stream() const { return stream_; }
  /// Samples in all datasets, N.
  int64_t samples() const { return stream_.samples(); }
  /// Micro-batches of one rank in a step.
  int64_t microBatches() const {
    return options.globalBatchSize /
           (options.microBatchSize * options.dataParallel);
  }
  /// Steps that read as many samples as there are; the last may be part
  /// padding.
  int64_t stepsPerPass() const {
    return (samples() + options.globalBatchSize - 1) / options.globalBatchSize;
  }

private:
  Status fillRow(int64_t row, int64_t cpRank, const BatchOutputs &out) const;
  void readBalanced(const SampleStream::Sample *sample, int64_t cpRank,
                    const BatchOutputs &out) const;
  void read(const SampleStream::Sample *sample, int64_t cpRank,
            const BatchOutputs &out) const;
  void describe(const SampleStream::Sample *sample,
                std::span<int32_t> positions,
                std::span<int32_t> segments) const;
  Status checkRead(const SampleStream::Sample &sample,
                   const BatchOutputs &out) const;

  SampleStream stream_;
  BatchLoaderOptions options;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_BATCHLOADER_H
