#include "runtime/data/BatchLoader.h"

#include "runtime/data/DatasetMeta.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace mega {

namespace {

Status checkOptions(const BatchLoaderOptions &options) {
  const std::pair<const char *, int64_t> sizes[] = {
      {"sequence length", options.sequenceLength},
      {"micro-batch size", options.microBatchSize},
      {"global batch size", options.globalBatchSize},
      {"number of data-parallel ranks", options.dataParallel},
      {"vocabulary", options.vocabulary}};
  for (const auto &[what, size] : sizes) {
    // 2^31 - 1 each keeps every product below within 63 bits.
    if (size < 1 || size > std::numeric_limits<int32_t>::max()) {
      return badInput("the {} is {}, expected 1 to {}", what, size,
                      std::numeric_limits<int32_t>::max());
    }
  }
  const int64_t rows = options.microBatchSize * options.dataParallel;
  if (options.globalBatchSize % rows != 0) {
    return badInput("the global batch of {} is no multiple of {} = micro-batch "
                    "{} x {} data-parallel ranks",
                    options.globalBatchSize, rows, options.microBatchSize,
                    options.dataParallel);
  }
  return Status::ok();
}

/// Every token in [0, vocabulary), by PREFIX.meta or by reading all of them.
Status checkTokens(const IndexedDataset &dataset, int64_t vocabulary) {
  MEGA_ASSIGN_OR_RETURN(const std::optional<DatasetMeta> meta,
                        DatasetMeta::load(dataset));
  if (meta && meta->lowest >= 0 && meta->highest < vocabulary) {
    return Status::ok();
  }
  // Finds the first one that is outside.
  return dataset.checkVocabulary(vocabulary);
}

/// Positions and documents of the tokens from `first` on.
void describeDocuments(const IndexedDataset &dataset, int64_t first,
                       const BatchOutputs &out) {
  const auto length = std::ssize(out.tokens);
  int64_t document = dataset.documentOf(first);
  int64_t next = dataset.documentStart(document + 1);
  int32_t position = 0;
  int32_t segment = 0;
  for (int64_t i = 0; i < length; ++i) {
    if (first + i == next) {
      position = 0;
      ++segment;
      while (next == first + i) {
        next = dataset.documentStart(++document + 1);
      }
    }
    if (!out.positions.empty()) {
      out.positions[i] = position;
    }
    if (!out.segments.empty()) {
      out.segments[i] = segment;
    }
    ++position;
  }
}

} // namespace

StatusOr<BatchLoader> BatchLoader::open(const DataSource &source,
                                        const BatchLoaderOptions &options) {
  MEGA_RETURN_IF_ERROR(checkOptions(options));
  BatchLoader loader;
  loader.options = options;
  MEGA_ASSIGN_OR_RETURN(
      loader.stream_,
      SampleStream::open(source,
                         {options.sequenceLength, options.seed, options.once,
                          options.once ? 1 : options.globalBatchSize}));
  for (int64_t i = 0; i < loader.stream_.datasets(); ++i) {
    MEGA_RETURN_IF_ERROR(
        checkTokens(loader.stream_.dataset(i), options.vocabulary));
  }
  return loader;
}

Status BatchLoader::fill(int64_t step, int64_t microBatch, int64_t dpRank,
                         const BatchOutputs &out) const {
  const int64_t length = options.sequenceLength;
  [[maybe_unused]] const auto size =
      static_cast<size_t>(options.microBatchSize * length);
  assert(out.tokens.size() == size && out.labels.size() == size);
  assert(out.positions.empty() || out.positions.size() == size);
  assert(out.segments.empty() || out.segments.size() == size);
  const int64_t first = firstRow(step, microBatch, dpRank);
  for (int64_t j = 0; j < options.microBatchSize; ++j) {
    const auto row = [&](std::span<int32_t> all) {
      return all.empty() ? all : all.subspan(j * length, length);
    };
    MEGA_RETURN_IF_ERROR(
        fillRow(first + j, {row(out.tokens), row(out.labels),
                            row(out.positions), row(out.segments)}));
  }
  return Status::ok();
}

Status BatchLoader::fillRow(int64_t row, const BatchOutputs &out) const {
  const auto sample = stream_.at(row);
  if (!sample) {
    std::ranges::fill(out.tokens, 0);
    std::ranges::fill(out.labels, kIgnoredLabel);
    std::iota(out.positions.begin(), out.positions.end(), 0);
    std::ranges::fill(out.segments, 0);
    return Status::ok();
  }
  const IndexedDataset &dataset = stream_.dataset(sample->dataset);
  dataset.read(sample->firstToken, out.tokens);
  dataset.read(sample->firstToken + 1, out.labels);
  // The labels are the tokens, and one more.
  for (const int32_t id :
       {*std::ranges::min_element(out.tokens),
        *std::ranges::max_element(out.tokens), out.labels.back()}) {
    if (id < 0 || id >= options.vocabulary) {
      return badInput("{}: token {} among those from {} on is outside the "
                      "vocabulary of {}: the file has changed since it was "
                      "checked; run mega-data index {}",
                      dataset.binPath(), id, sample->firstToken,
                      options.vocabulary, dataset.prefix());
    }
  }
  if (!out.positions.empty() || !out.segments.empty()) {
    describeDocuments(dataset, sample->firstToken, out);
  }
  if (options.ignoreToken) {
    std::ranges::replace_if(
        out.labels, [&](int32_t id) { return id == *options.ignoreToken; },
        kIgnoredLabel);
  }
  return Status::ok();
}

} // namespace mega
