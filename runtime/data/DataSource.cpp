#include "runtime/data/DataSource.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

namespace mega {

namespace {

/// Anything that reads as a number, nan and inf included.
std::optional<double> toNumber(const std::string &text) {
  double value = 0;
  const char *end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  // A number out of range has been read to its end as well.
  if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument) {
    return std::nullopt;
  }
  return parsed.ec == std::errc() ? value : HUGE_VAL;
}

} // namespace

StatusOr<DataSource> DataSource::parse(std::string_view option,
                                       std::span<const std::string> values) {
  if (values.size() == 1) {
    if (toNumber(values[0])) {
      return usageError("{} {} is a weight without a PREFIX (a dataset of that "
                        "name is ./{})",
                        option, values[0], values[0]);
    }
    return DataSource(values[0]);
  }
  if (values.empty() || values.size() % 2 != 0) {
    return usageError("{} {}: {} values, expected one PREFIX or pairs of "
                      "weight and PREFIX: W1 PREFIX1 W2 PREFIX2 ...",
                      option, fmt::join(values, " "), values.size());
  }
  DataSource source;
  for (size_t i = 0; i < values.size(); i += 2) {
    const std::string &prefix = values[i + 1];
    const auto weight = toNumber(values[i]);
    const bool swapped = !weight && toNumber(prefix);
    if (!weight) {
      return usageError("{} {} {}: {} is not a number, {}", option, values[i],
                        prefix, values[i],
                        swapped ? "the weight stands before its PREFIX"
                                : "several datasets need a weight each: W1 "
                                  "PREFIX1 W2 PREFIX2 ...");
    }
    if (!std::isfinite(*weight) || *weight <= 0) {
      return usageError("{} {} {}: the weight {} is not a finite number above "
                        "0; leave the dataset out if it is not to be read",
                        option, values[i], prefix, values[i]);
    }
    if (toNumber(prefix)) {
      return usageError("{} {} {}: {} is a number where a PREFIX should stand "
                        "(a dataset of that name is ./{})",
                        option, values[i], prefix, prefix, prefix);
    }
    for (const WeightedPrefix &other : source.datasets) {
      if (other.prefix == prefix) {
        return usageError("{}: {} is there twice, with weights {} and {}: give "
                          "it once with weight {}",
                          option, prefix, other.weight, *weight,
                          other.weight + *weight);
      }
    }
    source.datasets.push_back({*weight, prefix});
  }
  return source;
}

} // namespace mega
