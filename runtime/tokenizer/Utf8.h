//===- Utf8.h - Characters of UTF-8 text ------------------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_TOKENIZER_UTF8_H
#define MEGA_RUNTIME_TOKENIZER_UTF8_H

#include "runtime/plan/Status.h"

#include <cstddef>
#include <string_view>

namespace mega {

/// Code::BadInput with the offset of the first byte that belongs to no
/// character (surrogates and overlong forms included).
Status checkUtf8(std::string_view text);

/// Bytes of the character that begins at `at`; the text is valid.
inline size_t characterBytes(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_UTF8_H
