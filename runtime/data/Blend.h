//===- Blend.h - Which dataset a row reads ----------------------*- C++ -*-===//
//
// Several datasets by weight. The weights become whole numbers of rows in a
// period of T = 126,000 rows (largest remainder), and the period is laid out by
// Megatron's rule: the next row goes to the dataset furthest behind its share,
// ties to the first. The period repeats without end:
//
//   weights 1 : 2 : 1      row      0 1 2 3 4 5 6 7 8 ...
//                          dataset  1 0 2 1 1 0 2 1 1 ...
//                          turn     0 0 0 1 2 1 1 3 4 ...
//
// Row g is position g % T of period g / T, so its dataset and how many rows
// that dataset had before ("turn") are found without a walk, without a file,
// and the same in every process. T divides into thousandths, sevenths and
// ninths, so weights like 0.7 or 969 : 31 come out exactly.
//
// The table is made once, 8 bytes per row of a period. Immutable; any thread.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_BLEND_H
#define MEGA_RUNTIME_DATA_BLEND_H

#include "runtime/plan/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace mega {

/// T: 2^4 * 3^2 * 5^3 * 7.
inline constexpr int64_t kBlendPeriod = 126'000;

class Blend {
public:
  /// Code::Usage for weights that are no finite numbers above 0, more than
  /// kBlendPeriod / 64 datasets, or a share too small for one row of a period.
  /// The index of the dataset is in the message.
  static StatusOr<Blend> create(std::span<const double> weights);

  struct Pick {
    int32_t dataset = 0;
    /// Rows that the dataset gave before this one.
    int64_t turn = 0;
  };
  /// The dataset of row `row` of the run, from 0.
  Pick pick(int64_t row) const {
    const Entry &entry = table[row % period];
    return {entry.dataset, row / period * counts[entry.dataset] + entry.turn};
  }

  int64_t datasets() const { return std::ssize(counts); }
  /// The share of rows that `dataset` really has.
  double fraction(int64_t dataset) const {
    return static_cast<double>(counts[dataset]) / static_cast<double>(period);
  }

private:
  struct Entry {
    int32_t dataset = 0;
    int32_t turn = 0;
  };
  void layOut();

  /// Rows of a period; 1 if there is one dataset.
  int64_t period = 1;
  /// Of each dataset in a period; they add up to it.
  std::vector<int64_t> counts;
  std::vector<Entry> table;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_BLEND_H
