#include "runtime/data/BatchLoader.h"

#include <algorithm>
#include <cassert>
#include <limits>

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

} // namespace

StatusOr<BatchLoader> BatchLoader::open(const std::string &prefix,
                                        const BatchLoaderOptions &options) {
  MEGA_RETURN_IF_ERROR(checkOptions(options));
  BatchLoader loader;
  loader.options = options;
  MEGA_ASSIGN_OR_RETURN(loader.dataset_, IndexedDataset::open(prefix));
  const IndexedDataset &dataset = loader.dataset_;
  const int64_t samples = sampleCount(dataset.tokens(), options.sequenceLength);
  const int64_t least = options.once ? 1 : options.globalBatchSize;
  if (samples < least) {
    return badInput(
        "{}: a dataset smaller than one {}: {} tokens make {} samples of {} "
        "tokens, at least {} needed",
        dataset.binPath(), options.once ? "sample" : "batch", dataset.tokens(),
        samples, options.sequenceLength, least);
  }
  MEGA_RETURN_IF_ERROR(dataset.checkVocabulary(options.vocabulary));
  loader.order = {samples, options.seed, !options.once};
  return loader;
}

void BatchLoader::fill(int64_t step, int64_t microBatch, int64_t dpRank,
                       std::span<int32_t> tokens,
                       std::span<int32_t> labels) const {
  const int64_t length = options.sequenceLength;
  assert(std::ssize(tokens) == options.microBatchSize * length);
  assert(tokens.size() == labels.size());
  const int64_t first = firstRow(step, microBatch, dpRank);
  for (int64_t j = 0; j < options.microBatchSize; ++j) {
    const auto rowTokens = tokens.subspan(j * length, length);
    const auto rowLabels = labels.subspan(j * length, length);
    if (options.once && first + j >= order.samples) {
      std::ranges::fill(rowTokens, 0);
      std::ranges::fill(rowLabels, kIgnoredLabel);
      continue;
    }
    const int64_t start = order.sample(first + j) * length;
    dataset_.read(start, rowTokens);
    dataset_.read(start + 1, rowLabels);
    if (options.ignoreToken) {
      std::ranges::replace_if(
          rowLabels, [&](int32_t id) { return id == *options.ignoreToken; },
          kIgnoredLabel);
    }
  }
}

} // namespace mega
