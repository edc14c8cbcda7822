//===- ByteTokenizer.h - One token per byte ---------------------*- C++ -*-===//
//
// The tokenizer that needs no file: token id = byte, and one more id that ends
// a document. Takes any bytes.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_BYTETOKENIZER_H
#define MEGA_RUNTIME_TOKENIZER_BYTETOKENIZER_H

#include "runtime/tokenizer/Tokenizer.h"

namespace mega {

class ByteTokenizer final : public Tokenizer {
public:
  static constexpr int32_t kEndOfDocument = 256;
  static constexpr int64_t kVocabulary = 257;

  std::string_view kind() const override { return "byte"; }
  int64_t vocabulary() const override { return kVocabulary; }
  bool encodesInPieces() const override { return true; }

  Status encode(std::string_view text,
                std::vector<int32_t> &ids) const override {
    for (char c : text) {
      ids.push_back(static_cast<unsigned char>(c));
    }
    return Status::ok();
  }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (int32_t id : ids) {
      if (id >= 0 && id < kEndOfDocument) {
        text.push_back(static_cast<char>(id));
      }
    }
    return text;
  }

  std::optional<int32_t> findToken(std::string_view token) const override {
    return token.size() == 1
               ? std::optional<int32_t>(static_cast<unsigned char>(token[0]))
               : std::nullopt;
  }
  std::string token(int32_t id) const override {
    return decode(std::span(&id, 1));
  }
  std::optional<int32_t> endOfDocument() const override {
    return kEndOfDocument;
  }
  std::vector<std::string> specialTokens() const override { return {}; }
};

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_BYTETOKENIZER_H
