//===- Split.h - Train, validation and test part of a dataset ---*- C++ -*-===//
//
// Cuts a dataset into three runs of whole documents, in file order, in
// proportion to three weights by tokens: each cut is at the document boundary
// nearest to its share (the earlier of two that are as near). It depends on the
// dataset and the weights only.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_SPLIT_H
#define MEGA_RUNTIME_DATA_SPLIT_H

#include "runtime/data/IndexedDataset.h"

#include <array>

namespace mega {

enum class Part { Train, Valid, Test };

/// `train`, `valid`, `test`.
std::string_view name(Part part);
/// Code::Usage for another name.
StatusOr<Part> parsePart(const std::string &text);

class Split {
public:
  /// Reads `969,30,1`: three finite numbers of at least 0, the first above 0.
  static StatusOr<Split> parse(const std::string &text);

  /// As it was given.
  const std::string &text() const { return text_; }
  /// Whether the part has a weight above 0.
  bool has(Part part) const { return weights[static_cast<int>(part)] > 0; }

  /// First document of a part, and the one after its last; may be the same.
  std::pair<int64_t, int64_t> documents(const IndexedDataset &dataset,
                                        Part part) const;

private:
  int64_t boundary(const IndexedDataset &dataset, int parts) const;

  std::array<double, 3> weights{};
  std::string text_;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_SPLIT_H
