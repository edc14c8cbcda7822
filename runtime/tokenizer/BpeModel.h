//===- BpeModel.h - Byte-pair encoding of words -----------------*- C++ -*-===//
//
// A vocabulary and its merges: `model` of tokenizer.json, type BPE. A word
// begins as its characters; the merge of lowest rank, the leftmost first, is
// applied until none is left. N characters take N log N steps.
//
// A character without a token is spelt by the byte tokens `<0x00>` to `<0xFF>`
// (byte_fallback), or is unk_token, or an error: nothing is dropped.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_BPEMODEL_H
#define MEGA_RUNTIME_TOKENIZER_BPEMODEL_H

#include "runtime/tokenizer/JsonFields.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace mega {

class BpeModel {
public:
  /// Code::BadInput naming the key; merges in both spellings, "a b" and
  /// ["a", "b"].
  static StatusOr<BpeModel> parse(const Json &json);

  /// Appends the ids of one word, valid UTF-8 and not empty.
  Status encode(std::string_view word, std::vector<int32_t> &ids) const;

  std::optional<int32_t> find(std::string_view token) const;
  /// Null if no token has this id.
  const std::string *token(int32_t id) const;
  /// One more than the largest id.
  int64_t vocabulary() const { return vocabulary_; }
  bool byteFallback() const { return byteFallback_; }

private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  struct Merge {
    int32_t rank = 0;
    int32_t id = 0;
  };
  /// A token of the word in the making, in a list by position.
  struct Symbol {
    int32_t id = 0;
    int32_t previous = -1;
    int32_t next = -1;
    /// Part of the one before it now.
    bool gone = false;
  };

  Status parseVocabulary(const Json &json);
  Status parseMerges(const Json &json);
  Status addMerge(const std::string &left, const std::string &right,
                  size_t rank);
  Status toSymbols(std::string_view word, std::vector<Symbol> &symbols) const;
  void merge(std::vector<Symbol> &symbols) const;

  static uint64_t pair(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids;
  /// Points at the keys of `ids`, which stay where they are.
  std::unordered_map<int32_t, const std::string *> tokens;
  std::unordered_map<uint64_t, Merge> merges;
  std::optional<int32_t> unknown;
  int64_t vocabulary_ = 0;
  bool fuseUnknown = false;
  bool byteFallback_ = false;
  bool ignoreMerges = false;
};

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_BPEMODEL_H
