//===- DataSource.h - What --data and --split say ---------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_DATA_DATASOURCE_H
#define MEGA_RUNTIME_DATA_DATASOURCE_H

#include "runtime/data/Split.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mega {

struct WeightedPrefix {
  double weight = 1;
  std::string prefix;
};

struct DataSource {
  DataSource() = default;
  /// One dataset, all of it.
  DataSource(std::string prefix) : datasets{{1, std::move(prefix)}} {}

  /// Reads `PREFIX` or `W1 PREFIX1 W2 PREFIX2 ...`. Code::Usage, naming
  /// `option`, the values and the fix, for anything else: an odd list, a
  /// weight that is no number above 0, a prefix that is a number, a prefix
  /// twice.
  static StatusOr<DataSource> parse(std::string_view option,
                                    std::span<const std::string> values);

  bool empty() const { return datasets.empty(); }

  std::vector<WeightedPrefix> datasets;
  /// Absent: all documents.
  std::optional<Split> split;
  Part part = Part::Train;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_DATASOURCE_H
