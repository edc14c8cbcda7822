#include "runtime/tokenizer/Utf8.h"

#include <utf8proc.h>

namespace mega {

Status checkUtf8(std::string_view text) {
  const auto *bytes = reinterpret_cast<const utf8proc_uint8_t *>(text.data());
  for (size_t at = 0; at < text.size();) {
    if (bytes[at] < 0x80) {
      ++at;
      continue;
    }
    utf8proc_int32_t character = 0;
    const utf8proc_ssize_t size = utf8proc_iterate(
        bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at),
        &character);
    if (size < 0) {
      return badInput("the text is not UTF-8 at byte {} (0x{:02x}): convert it "
                      "first, for example with iconv, or use --tokenizer byte",
                      at, bytes[at]);
    }
    at += static_cast<size_t>(size);
  }
  return Status::ok();
}

} // namespace mega
