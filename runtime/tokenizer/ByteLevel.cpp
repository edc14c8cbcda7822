#include "runtime/tokenizer/ByteLevel.h"

#include "runtime/tokenizer/Utf8.h"

#include <array>
#include <cstdint>

namespace mega {

namespace {

struct Alphabet {
  Alphabet() {
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7e) ||
                             (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      const uint32_t character = printable ? byte : next++;
      bytes[character] = static_cast<int16_t>(byte);
      if (character < 0x80) {
        characters[byte] = {static_cast<char>(character)};
      } else {
        characters[byte] = {static_cast<char>(0xc0 | character >> 6),
                            static_cast<char>(0x80 | (character & 0x3f))};
      }
    }
  }

  std::array<std::string, 256> characters;
  /// By character; the last one is U+0143. 0x200 is above all.
  std::array<int16_t, 0x200> bytes = [] {
    std::array<int16_t, 0x200> none;
    none.fill(-1);
    return none;
  }();
};

const Alphabet &alphabet() {
  static const Alphabet instance;
  return instance;
}

} // namespace

std::string_view byteLevelCharacter(unsigned char byte) {
  return alphabet().characters[byte];
}

std::string fromByteLevel(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const size_t size = characterBytes(text, at);
    const auto lead = static_cast<unsigned char>(text[at]);
    const uint32_t character =
        size == 1   ? lead
        : size == 2 ? (lead & 0x1fU) << 6 |
                          (static_cast<unsigned char>(text[at + 1]) & 0x3fU)
                    : 0x1ff;
    const int16_t byte =
        character < 0x200 ? alphabet().bytes[character] : int16_t{-1};
    if (byte >= 0) {
      bytes.push_back(static_cast<char>(byte));
    } else {
      bytes += text.substr(at, size);
    }
    at += size;
  }
  return bytes;
}

} // namespace mega
