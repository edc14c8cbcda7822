//===- AddedTokens.h - `added_tokens` of tokenizer.json ---------*- C++ -*-===//
//
// Tokens that are found in the text itself, before it is cut into words. Those
// with `normalized` false are looked for in the text as it is, the others in
// what the normalizer makes of the rest. At each place the longest one counts.
//
// Flags: `single_word`, only between characters that are no word characters;
// `lstrip`, `rstrip`, takes the white space before, after it along; `special`
// changes no ids.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_ADDEDTOKENS_H
#define MEGA_RUNTIME_TOKENIZER_ADDEDTOKENS_H

#include "runtime/tokenizer/JsonFields.h"
#include "runtime/tokenizer/Normalizer.h"

#include <array>
#include <optional>
#include <vector>

namespace mega {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;
  bool normalized = false;
  bool singleWord = false;
  bool lstrip = false;
  bool rstrip = false;
};

/// Reads the list; Code::BadInput for an empty or doubled token or id.
StatusOr<std::vector<AddedToken>> parseAddedTokens(const Json &json);

/// One of the two sets. Immutable after the last add(); any thread.
class AddedTokenSet {
public:
  /// Looked for as `spelling`, not empty.
  void add(AddedToken token, std::string spelling);

  /// A piece of the text: a token, or what lies between two.
  struct Piece {
    size_t begin = 0;
    size_t end = 0;
    std::optional<int32_t> id;
  };
  /// In order. `text` is valid UTF-8; an empty one has no pieces.
  std::vector<Piece> split(std::string_view text) const;

private:
  struct Entry {
    AddedToken token;
    std::string spelling;
  };
  /// The longest one that `text` goes on with at `at`, or null.
  const Entry *find(std::string_view text, size_t at) const;

  /// By first byte, the longest first.
  std::array<std::vector<Entry>, 256> entries;
  bool empty = true;
};

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_ADDEDTOKENS_H
