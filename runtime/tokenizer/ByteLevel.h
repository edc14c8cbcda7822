//===- ByteLevel.h - Bytes as printable characters --------------*- C++ -*-===//
//
// The alphabet of GPT-2's vocabulary files: each byte is one character of at
// most two bytes of UTF-8. Printable bytes of Latin-1 are themselves, the
// others, in order, are U+0100, U+0101, ...: a space is U+0120.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_BYTELEVEL_H
#define MEGA_RUNTIME_TOKENIZER_BYTELEVEL_H

#include <string>
#include <string_view>

namespace mega {

/// The character of a byte.
std::string_view byteLevelCharacter(unsigned char byte);
/// The bytes of characters of the alphabet; others stay as they are.
std::string fromByteLevel(std::string_view text);

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_BYTELEVEL_H
