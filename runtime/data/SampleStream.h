//===- SampleStream.h - The samples of a run, row by row --------*- C++ -*-===//
//
// Opens the datasets of a DataSource and says which sample each row of the run
// reads. That is a pure function of the seed and the row's number: no cache is
// kept on disk, nothing is built by one rank for others, and any row is found
// without the rows before it.
//
// Training: Blend.h gives row g to a dataset, as its turn k; the dataset reads
// sample order(k mod N) of its epoch k / N (SampleOrder.h), so one that is too
// small repeats. Each dataset of several has an order of its own. Evaluation
// (`once`): the samples of all datasets one after another, each once; weights
// do not count.
//
// Immutable; any thread.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_SAMPLESTREAM_H
#define MEGA_RUNTIME_DATA_SAMPLESTREAM_H

#include "runtime/data/Blend.h"
#include "runtime/data/DataSource.h"
#include "runtime/data/SampleOrder.h"

namespace mega {

struct SampleStreamOptions {
  /// S.
  int64_t sequenceLength = 1;
  uint64_t seed = 0;
  bool once = false;
  /// Samples that a single dataset must have.
  int64_t least = 1;
};

class SampleStream {
public:
  /// Opens all datasets. Code::Io and Code::BadInput as in IndexedDataset;
  /// Code::BadInput for one with too few samples, Code::Usage for weights that
  /// cannot be blended.
  static StatusOr<SampleStream> open(const DataSource &source,
                                     const SampleStreamOptions &options);

  struct Sample {
    int32_t dataset = 0;
    /// Within the dataset, or its part.
    int64_t sample = 0;
    /// Position in the dataset's tokens.
    int64_t firstToken = 0;
  };
  /// The sample of row `row` from 0; nothing past the last one of `once`.
  std::optional<Sample> at(int64_t row) const;

  int64_t datasets() const { return std::ssize(sources); }
  const IndexedDataset &dataset(int64_t index) const {
    return sources[index].dataset;
  }
  /// Samples of all datasets together.
  int64_t samples() const { return samples_; }

  /// A line per dataset: its share of the rows, its samples, and how often
  /// `rows` rows read them.
  std::string describe(int64_t rows) const;

private:
  struct Source {
    IndexedDataset dataset;
    std::string prefix;
    /// Of the part.
    int64_t firstToken = 0;
    SampleOrder order;
    /// Samples of the datasets before it.
    int64_t samplesBefore = 0;
  };
  static StatusOr<Source> openOne(const std::string &prefix,
                                  const DataSource &source,
                                  const SampleStreamOptions &options);

  std::vector<Source> sources;
  Blend blend;
  int64_t sequenceLength = 1;
  int64_t samples_ = 0;
  bool once = false;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_SAMPLESTREAM_H
