#include "runtime/data/BatchLoader.h"

#include "runtime/data/BalanceSequence.h"
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
      {"number of context-parallel ranks", options.contextParallel},
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
  MEGA_RETURN_IF_ERROR_CONTEXT(
      checkPieces(options.order == SequenceOrder::Zigzag,
                  options.contextParallel, options.sequenceLength),
      "the sequence length");
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

/// Positions in the documents of a row, and where these begin in it; the row's
/// first token is number `first` of the dataset.
void describeDocuments(const IndexedDataset &dataset, int64_t first,
                       int64_t length, std::span<int32_t> positions,
                       std::span<int32_t> segments) {
  int64_t document = dataset.documentOf(first);
  int64_t next = dataset.documentStart(document + 1);
  int64_t begin = 0;
  for (int64_t i = 0; i < length; ++i) {
    if (first + i == next) {
      begin = i;
      while (next == first + i) {
        next = dataset.documentStart(++document + 1);
      }
    }
    if (!positions.empty()) {
      positions[i] = static_cast<int32_t>(i - begin);
    }
    if (!segments.empty()) {
      segments[i] = static_cast<int32_t>(begin);
    }
  }
}

/// A whole row, of the thread that balances it.
struct BalancedRow {
  BalanceSequence balance;
  std::vector<int32_t> tokens, positions, segments;

  BalancedRow(int64_t length, int64_t ranks)
      : balance(length, ranks), tokens(static_cast<size_t>(length) + 1),
        positions(static_cast<size_t>(length)),
        segments(static_cast<size_t>(length)) {}

  static BalancedRow &ofThread(int64_t length, int64_t ranks) {
    thread_local std::optional<BalancedRow> row;
    if (!row || row->balance.length() != length ||
        row->balance.ranks() != ranks) {
      row.emplace(length, ranks);
    }
    return *row;
  }
};

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
                         int64_t cpRank, const BatchOutputs &out) const {
  const int64_t length = options.sequenceLength;
  const int64_t piece = length / options.contextParallel;
  [[maybe_unused]] const auto isOf = [&](std::span<int32_t> all, int64_t row) {
    return std::ssize(all) == options.microBatchSize * row;
  };
  assert(cpRank >= 0 && cpRank < options.contextParallel);
  assert(isOf(out.tokens, piece) && isOf(out.labels, piece));
  assert(out.positions.empty() || isOf(out.positions, length));
  assert(out.segments.empty() || isOf(out.segments, length));
  const int64_t first = firstRow(step, microBatch, dpRank);
  for (int64_t j = 0; j < options.microBatchSize; ++j) {
    const auto row = [&](std::span<int32_t> all, int64_t size) {
      return all.empty() ? all : all.subspan(j * size, size);
    };
    MEGA_RETURN_IF_ERROR(
        fillRow(first + j, cpRank,
                {row(out.tokens, piece), row(out.labels, piece),
                 row(out.positions, length), row(out.segments, length)}));
  }
  return Status::ok();
}

Status BatchLoader::fillRow(int64_t row, int64_t cpRank,
                            const BatchOutputs &out) const {
  const std::optional<SampleStream::Sample> found = stream_.at(row);
  const SampleStream::Sample *sample = found ? &*found : nullptr;
  if (options.order == SequenceOrder::Balanced) {
    readBalanced(sample, cpRank, out);
  } else {
    read(sample, cpRank, out);
    describe(sample, out.positions, out.segments);
  }
  if (!sample) {
    std::ranges::fill(out.tokens, 0);
    std::ranges::fill(out.labels, kIgnoredLabel);
    return Status::ok();
  }
  MEGA_RETURN_IF_ERROR(checkRead(*sample, out));
  if (options.ignoreToken) {
    std::ranges::replace_if(
        out.labels, [&](int32_t id) { return id == *options.ignoreToken; },
        kIgnoredLabel);
  }
  return Status::ok();
}

/// Tokens and labels of the piece, by its runs.
void BatchLoader::read(const SampleStream::Sample *sample, int64_t cpRank,
                       const BatchOutputs &out) const {
  if (!sample) {
    return;
  }
  const IndexedDataset &dataset = stream_.dataset(sample->dataset);
  int64_t at = 0;
  for (const SequenceRun &run :
       pieceOf(options.order == SequenceOrder::Zigzag, cpRank,
               options.contextParallel, options.sequenceLength)) {
    const int64_t first = sample->firstToken + run.begin;
    dataset.read(first, out.tokens.subspan(at, run.length));
    dataset.read(first + 1, out.labels.subspan(at, run.length));
    at += run.length;
  }
}

/// The same of a balanced row, and its description.
void BatchLoader::readBalanced(const SampleStream::Sample *sample,
                               int64_t cpRank, const BatchOutputs &out) const {
  BalancedRow &row =
      BalancedRow::ofThread(options.sequenceLength, options.contextParallel);
  describe(sample, row.positions, row.segments);
  const std::span<const int32_t> order = row.balance.order(row.positions);
  const auto pick = [](std::span<const int32_t> from,
                       std::span<const int32_t> places, std::span<int32_t> to) {
    std::ranges::transform(places.first(to.size()), to.begin(),
                           [&](int32_t place) { return from[place]; });
  };
  pick(row.positions, order, out.positions);
  pick(row.segments, order, out.segments);
  if (!sample) {
    return;
  }
  stream_.dataset(sample->dataset).read(sample->firstToken, row.tokens);
  const auto piece = order.subspan(cpRank * out.tokens.size());
  const std::span<const int32_t> tokens = row.tokens;
  pick(tokens, piece, out.tokens);
  // The labels are the next tokens of the row.
  pick(tokens.subspan(1), piece, out.labels);
}

/// Of a whole row, in its own order; a padding row is one document.
void BatchLoader::describe(const SampleStream::Sample *sample,
                           std::span<int32_t> positions,
                           std::span<int32_t> segments) const {
  if (!sample || !options.packed) {
    std::iota(positions.begin(), positions.end(), 0);
    std::ranges::fill(segments, 0);
  } else if (!positions.empty() || !segments.empty()) {
    describeDocuments(stream_.dataset(sample->dataset), sample->firstToken,
                      options.sequenceLength, positions, segments);
  }
}

Status BatchLoader::checkRead(const SampleStream::Sample &sample,
                              const BatchOutputs &out) const {
  for (const std::span<const int32_t> ids : {out.tokens, out.labels}) {
    const auto [low, high] = std::ranges::minmax(ids);
    for (const int32_t id : {low, high}) {
      if (id < 0 || id >= options.vocabulary) {
        const IndexedDataset &dataset = stream_.dataset(sample.dataset);
        return badInput("{}: token {} among those from {} on is outside the "
                        "vocabulary of {}: the file has changed since it was "
                        "checked; run mega-data index {}",
                        dataset.binPath(), id, sample.firstToken,
                        options.vocabulary, dataset.prefix());
      }
    }
  }
  return Status::ok();
}

} // namespace mega
