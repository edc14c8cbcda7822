#include "runtime/data/SampleStream.h"

#include <algorithm>

namespace mega {

StatusOr<SampleStream> SampleStream::open(const DataSource &source,
                                          const SampleStreamOptions &options) {
  SampleStream stream;
  stream.sequenceLength = options.sequenceLength;
  stream.once = options.once;
  std::vector<double> weights;
  weights.reserve(source.datasets.size());
  for (const WeightedPrefix &weighted : source.datasets) {
    weights.push_back(weighted.weight);
  }
  MEGA_ASSIGN_OR_RETURN(stream.blend, Blend::create(weights));
  for (const WeightedPrefix &weighted : source.datasets) {
    MEGA_ASSIGN_OR_RETURN(Source opened,
                          openOne(weighted.prefix, source, options));
    if (weights.size() > 1) {
      opened.order.seed = mixKey(mixKey(options.seed, hashName("blend")),
                                 stream.sources.size());
    }
    opened.samplesBefore = stream.samples_;
    stream.samples_ += opened.order.samples;
    stream.sources.push_back(std::move(opened));
  }
  return stream;
}

StatusOr<SampleStream::Source>
SampleStream::openOne(const std::string &prefix, const DataSource &source,
                      const SampleStreamOptions &options) {
  Source opened;
  opened.prefix = prefix;
  MEGA_ASSIGN_OR_RETURN(opened.dataset, IndexedDataset::open(prefix));
  const IndexedDataset &dataset = opened.dataset;
  int64_t tokens = dataset.tokens();
  std::string part;
  if (source.split) {
    const auto [first, last] = source.split->documents(dataset, source.part);
    opened.firstToken = dataset.documentStart(first);
    tokens = dataset.documentStart(last) - opened.firstToken;
    part = fmt::format(" (the {} part of --split {}: {} of {} documents)",
                       name(source.part), source.split->text(), last - first,
                       dataset.documents());
  }
  const int64_t samples = sampleCount(tokens, options.sequenceLength);
  // Of several, each may be small: it repeats.
  const int64_t least = source.datasets.size() > 1 ? 1 : options.least;
  if (samples < least) {
    return badInput(
        "{}{}: a dataset smaller than one {}: {} tokens make {} samples of {} "
        "tokens, at least {} needed",
        dataset.binPath(), part, least == 1 ? "sample" : "batch", tokens,
        samples, options.sequenceLength, least);
  }
  opened.order = {samples, options.seed, !options.once};
  return opened;
}

std::optional<SampleStream::Sample> SampleStream::at(int64_t row) const {
  Sample found;
  int64_t turn = row;
  if (!once) {
    const Blend::Pick pick = blend.pick(row);
    found.dataset = pick.dataset;
    turn = pick.turn;
  } else if (row >= samples_) {
    return std::nullopt;
  } else {
    const auto after = std::ranges::upper_bound(sources, row, std::less<>(),
                                                &Source::samplesBefore);
    found.dataset = static_cast<int32_t>(after - sources.begin() - 1);
    turn -= sources[found.dataset].samplesBefore;
  }
  const Source &source = sources[found.dataset];
  found.sample = source.order.sample(turn);
  found.firstToken = source.firstToken + found.sample * sequenceLength;
  return found;
}

std::string SampleStream::describe(int64_t rows) const {
  std::string text;
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto samples = static_cast<double>(sources[i].order.samples);
    const double share = blend.fraction(static_cast<int64_t>(i));
    text += fmt::format("data: {:.4f} of the rows from {}, {} samples, {:.2f} "
                        "epochs\n",
                        share, sources[i].prefix, sources[i].order.samples,
                        share * static_cast<double>(rows) / samples);
  }
  return text;
}

} // namespace mega
