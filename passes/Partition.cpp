#include "passes/Partition.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mega {
namespace {

Status checkParts(std::span<const PartitionUnit> units, int64_t parts) {
  const auto count = static_cast<int64_t>(units.size());
  if (parts < 1 || parts > count) {
    return makeError(
        Code::Failed,
        "{} pipeline parts (stages x chunks) need as many units of the model, "
        "which has {}: {} (legal: 1 to {} parts)",
        parts, count, describe(units), count);
  }
  return Status::ok();
}

/// Chooses cuts by dynamic programming over what is left: `best(p, i)` is the
/// least sum of squares with which p parts hold the units from i on, none above
/// the limit. The first cut of the best ones moves right as i does (the square
/// of a sum of costs satisfies the quadrangle inequality), so each half of the
/// indices has to look on one side of the middle's cut only.
class Balancer {
public:
  Balancer(std::span<const int64_t> costs, int64_t parts)
      : count(static_cast<int64_t>(costs.size())), parts(parts),
        sums(count + 1), cuts(parts + 1, std::vector<int64_t>(count + 1)) {
    for (int64_t i = 0; i < count; ++i) {
      sums[i + 1] = sums[i] + costs[i];
    }
  }

  std::vector<int64_t> solve() {
    limit = smallestLimit();
    std::vector<int64_t> lowest = lowestBegins();
    best.assign(count + 1, 0);
    for (int64_t p = 1; p <= parts; ++p) {
      previous = best;
      // The last cut leaves a unit for each part after it.
      fill(p, {lowest[p], count - p}, {lowest[p - 1], count - (p - 1)});
    }
    std::vector<int64_t> begin = {0};
    for (int64_t p = parts; p > 0; --p) {
      begin.push_back(cuts[p][begin.back()]);
    }
    return begin;
  }

private:
  /// First and last index, both included.
  struct Range {
    int64_t first;
    int64_t last;
  };

  /// The end of the longest part from `begin` on.
  int64_t farthest(int64_t begin, int64_t atMost) const {
    return std::upper_bound(sums.begin() + begin, sums.end(),
                            sums[begin] + atMost) -
           sums.begin() - 1;
  }

  bool fits(int64_t atMost) const {
    int64_t begin = 0;
    for (int64_t p = 0; p < parts && begin < count; ++p) {
      begin = farthest(begin, atMost);
    }
    return begin == count;
  }

  /// Fewer parts than asked for are no obstacle: splitting one keeps the limit.
  int64_t smallestLimit() const {
    int64_t low = 0;
    int64_t high = sums.back();
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (fits(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  /// For each number of parts, where the longest rest that they hold begins.
  std::vector<int64_t> lowestBegins() const {
    std::vector<int64_t> lowest = {count};
    for (int64_t p = 1; p <= parts; ++p) {
      const auto begin = std::lower_bound(sums.begin(), sums.end(),
                                          sums[lowest.back()] - limit);
      lowest.push_back(begin - sums.begin());
    }
    return lowest;
  }

  /// best(p, i) and its cut for all i in `begins`, whose cuts are in `among`.
  void fill(int64_t p, Range begins, Range among) {
    if (begins.first > begins.last) {
      return;
    }
    const int64_t i = begins.first + (begins.last - begins.first) / 2;
    const int64_t end = std::min(among.last, farthest(i, limit));
    best[i] = std::numeric_limits<int64_t>::max();
    for (int64_t j = std::max(among.first, i + 1); j <= end; ++j) {
      const int64_t cost = sums[j] - sums[i];
      const int64_t squares = cost * cost + previous[j];
      if (squares < best[i]) {
        best[i] = squares;
        cuts[p][i] = j;
      }
    }
    fill(p, {begins.first, i - 1}, {among.first, cuts[p][i]});
    fill(p, {i + 1, begins.last}, {cuts[p][i], among.last});
  }

  const int64_t count;
  const int64_t parts;
  /// Of the costs before each index.
  std::vector<int64_t> sums;
  int64_t limit = 0;
  std::vector<int64_t> best, previous;
  /// The first cut, by number of parts and begin.
  std::vector<std::vector<int64_t>> cuts;
};

/// Whole numbers whose sum is below 2^31, so that squares of sums fit.
std::vector<int64_t> wholeCosts(std::span<const PartitionUnit> units) {
  double total = 0;
  for (const PartitionUnit &unit : units) {
    total += unit.cost;
  }
  // A power of two: what is whole and small stays as it is.
  const int shift = total > 0 ? 30 - std::ilogb(total) : 0;
  std::vector<int64_t> costs;
  costs.reserve(units.size());
  for (const PartitionUnit &unit : units) {
    costs.push_back(std::llround(std::ldexp(unit.cost, shift)));
  }
  return costs;
}

} // namespace

StatusOr<std::vector<int64_t>> balance(std::span<const PartitionUnit> units,
                                       int64_t parts) {
  MEGA_RETURN_IF_ERROR(checkParts(units, parts));
  for (size_t i = 0; i < units.size(); ++i) {
    if (!std::isfinite(units[i].cost) || units[i].cost < 0) {
      return makeError(Code::Internal, "unit {} costs {}", i, units[i].cost);
    }
  }
  return Balancer(wholeCosts(units), parts).solve();
}

} // namespace mega
