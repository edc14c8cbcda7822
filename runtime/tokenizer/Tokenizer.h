//===- Tokenizer.h - Text to token ids --------------------------*- C++ -*-===//
//
// The interface of all tokenizers. Ids are those of the tokenizer's file for
// plain text: nothing is put in front or behind (what Python calls
// `add_special_tokens=False`). A tokenizer is immutable; all const members may
// be called from any thread. Header-only, so that those who only hand a
// tokenizer on link no implementation.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_TOKENIZER_H
#define MEGA_RUNTIME_TOKENIZER_TOKENIZER_H

#include "runtime/plan/Status.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mega {

class Tokenizer {
public:
  virtual ~Tokenizer() = default;

  /// `byte`, `bpe`, `sentencepiece`.
  virtual std::string_view kind() const = 0;
  /// Every id is below it. A model's vocabulary may be larger, never smaller.
  virtual int64_t vocabulary() const = 0;
  /// Whether a text may be encoded in pieces, cut at any byte.
  virtual bool encodesInPieces() const { return false; }

  /// Appends the ids of `text`. Code::BadInput for text the tokenizer cannot
  /// represent, such as bytes that are no UTF-8; `ids` may then hold part.
  virtual Status encode(std::string_view text,
                        std::vector<int32_t> &ids) const = 0;
  /// The text of ids, for people to read. Ids without a token are left out.
  virtual std::string decode(std::span<const int32_t> ids) const = 0;

  /// The id of a token as the file spells it.
  virtual std::optional<int32_t> findToken(std::string_view token) const = 0;
  /// The token with this id; empty if there is none.
  virtual std::string token(int32_t id) const = 0;
  /// The id that by default ends a document.
  virtual std::optional<int32_t> endOfDocument() const = 0;
  /// Tokens that may end a document, for messages.
  virtual std::vector<std::string> specialTokens() const = 0;
};

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_TOKENIZER_H
