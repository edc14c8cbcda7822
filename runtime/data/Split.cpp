#include "runtime/data/Split.h"

#include <charconv>
#include <cmath>

namespace mega {

std::string_view name(Part part) {
  constexpr std::string_view names[] = {"train", "valid", "test"};
  return names[static_cast<int>(part)];
}

StatusOr<Part> parsePart(const std::string &text) {
  for (const Part part : {Part::Train, Part::Valid, Part::Test}) {
    if (text == name(part)) {
      return part;
    }
  }
  return usageError("--part {} is none of train, valid, test", text);
}

StatusOr<Split> Split::parse(const std::string &text) {
  const auto malformed = [&] {
    return usageError("--split {} is not three numbers of at least 0, the "
                      "first above 0, such as 969,30,1",
                      text);
  };
  Split split;
  split.text_ = text;
  const char *at = text.data();
  const char *end = at + text.size();
  for (size_t i = 0; i < split.weights.size(); ++i) {
    if (i > 0) {
      if (at == end || *at != ',') {
        return malformed();
      }
      ++at;
    }
    const auto parsed = std::from_chars(at, end, split.weights[i]);
    // Below 1e15 sums are exact enough, and finite.
    if (parsed.ec != std::errc() || !(split.weights[i] >= 0) ||
        split.weights[i] > 1e15) {
      return malformed();
    }
    at = parsed.ptr;
  }
  return at == end && split.has(Part::Train) ? StatusOr<Split>(split)
                                             : malformed();
}

int64_t Split::boundary(const IndexedDataset &dataset, int parts) const {
  if (parts == 0) {
    return 0;
  }
  const double sum = weights[0] + weights[1] + weights[2];
  const double before = weights[0] + (parts > 1 ? weights[1] : 0);
  // Nothing is left to the parts that follow.
  if (parts == 3 || before == sum) {
    return dataset.documents();
  }
  const double target = before / sum * static_cast<double>(dataset.tokens());
  // The first document that starts at or behind the target.
  int64_t low = 0;
  int64_t high = dataset.documents();
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (static_cast<double>(dataset.documentStart(middle)) < target) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const auto distance = [&](int64_t document) {
    return std::abs(static_cast<double>(dataset.documentStart(document)) -
                    target);
  };
  return low > 0 && distance(low - 1) <= distance(low) ? low - 1 : low;
}

std::pair<int64_t, int64_t> Split::documents(const IndexedDataset &dataset,
                                             Part part) const {
  const int number = static_cast<int>(part);
  return {boundary(dataset, number), boundary(dataset, number + 1)};
}

} // namespace mega
