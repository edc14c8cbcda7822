#include "runtime/data/Blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mega {

namespace {

/// Whole numbers that add up to `total`, in proportion to the weights: each
/// quota rounded down, and the rest to the largest remainders, ties to the
/// first.
std::vector<int64_t> apportion(std::span<const double> weights, double sum,
                               int64_t total) {
  std::vector<int64_t> counts;
  std::vector<double> remainders;
  counts.reserve(weights.size());
  remainders.reserve(weights.size());
  for (const double weight : weights) {
    const double quota = weight / sum * static_cast<double>(total);
    counts.push_back(static_cast<int64_t>(quota));
    remainders.push_back(quota - std::floor(quota));
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  int64_t rest =
      total - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (size_t i = 0; rest > 0; i = (i + 1) % order.size(), --rest) {
    ++counts[order[i]];
  }
  // Rounding may have given one too many.
  for (size_t i = order.size(); rest < 0; ++rest) {
    --counts[order[--i]];
  }
  return counts;
}

} // namespace

StatusOr<Blend> Blend::create(std::span<const double> weights) {
  constexpr int64_t kMost = kBlendPeriod / 64;
  if (weights.empty() || std::ssize(weights) > kMost) {
    return usageError("{} datasets, 1 to {} can be blended", weights.size(),
                      kMost);
  }
  double largest = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] <= 0) {
      return usageError("the weight of dataset {} is {}, expected a finite "
                        "number above 0: leave out a dataset that is not used",
                        i + 1, weights[i]);
    }
    largest = std::max(largest, weights[i]);
  }
  // Scaled first, so that the sum is finite.
  std::vector<double> scaled;
  scaled.reserve(weights.size());
  for (const double weight : weights) {
    scaled.push_back(weight / largest);
  }
  const double sum = std::accumulate(scaled.begin(), scaled.end(), 0.0);
  Blend blend;
  blend.period = weights.size() == 1 ? 1 : kBlendPeriod;
  blend.counts = apportion(scaled, sum, blend.period);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (blend.counts[i] == 0) {
      return usageError(
          "the weight of dataset {} is {}, a share of {:.3g} of all rows, but "
          "the smallest that can be kept is 1/{}: raise it or leave the "
          "dataset out",
          i + 1, weights[i], scaled[i] / sum, kBlendPeriod);
    }
  }
  blend.layOut();
  return blend;
}

void Blend::layOut() {
  std::vector<int64_t> given(counts.size(), 0);
  table.reserve(period);
  for (int64_t row = 0; row < period; ++row) {
    // Behind by share * row - given, here times the period; one that has given
    // all of the period waits for the next.
    size_t best = counts.size();
    int64_t bestBehind = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const int64_t behind =
          counts[i] * std::max<int64_t>(row, 1) - period * given[i];
      if (given[i] < counts[i] &&
          (best == counts.size() || behind > bestBehind)) {
        best = i;
        bestBehind = behind;
      }
    }
    table.push_back(
        {static_cast<int32_t>(best), static_cast<int32_t>(given[best])});
    ++given[best];
  }
}

} // namespace mega
