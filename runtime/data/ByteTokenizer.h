//===- ByteTokenizer.h - One token per byte ---------------------*- C++ -*-===//
//
// The tokenizer that needs no file: token id = byte, and one more id that ends
// a document.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_BYTETOKENIZER_H
#define MEGA_RUNTIME_DATA_BYTETOKENIZER_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mega {

struct ByteTokenizer {
  static constexpr int32_t kEndOfDocument = 256;
  static constexpr int64_t kVocabulary = 257;

  /// Appends one token per byte to `tokens`.
  static void encode(std::string_view text, std::vector<int32_t> &tokens) {
    for (char c : text) {
      tokens.push_back(static_cast<unsigned char>(c));
    }
  }

  /// The bytes; ids that are no byte are left out.
  static std::string decode(std::span<const int32_t> tokens) {
    std::string text;
    for (int32_t token : tokens) {
      if (token >= 0 && token < kEndOfDocument) {
        text.push_back(static_cast<char>(token));
      }
    }
    return text;
  }
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_BYTETOKENIZER_H
