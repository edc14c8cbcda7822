//===- DataInputs.h - What the data loader can fill -------------*- C++ -*-===//
//
// The inputs of a model by name: what compiler, loader of plans and data loader
// agree on. Each is [batch, sequence] of i32.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_DATAINPUTS_H
#define MEGA_RUNTIME_PLAN_DATAINPUTS_H

#include <cstdint>
#include <limits>
#include <string_view>

namespace mega {

/// Ids, which are below the vocabulary.
inline constexpr std::string_view kTokensInput = "tokens";
inline constexpr std::string_view kLabelsInput = "labels";
/// The place of a token in its document, or in its row if the document began
/// before the row: below the sequence length.
inline constexpr std::string_view kPositionsInput = "positions";
/// The number in its row of the token with which a token's document begins, 0
/// if the document began before the row: below the sequence length. With the
/// position it adds up to the token's own number in the row.
inline constexpr std::string_view kSegmentsInput = "segment_ids";

/// Whether what it holds comes from the data itself.
constexpr bool isTokenInput(std::string_view name) {
  return name == kTokensInput || name == kLabelsInput;
}
constexpr bool isDataInput(std::string_view name) {
  return isTokenInput(name) || name == kPositionsInput ||
         name == kSegmentsInput;
}

/// The limit of an input that indexes no table.
inline constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_DATAINPUTS_H
