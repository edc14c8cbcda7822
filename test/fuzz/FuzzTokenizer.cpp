//===- FuzzTokenizer.cpp - tokenizer.json ---------------------------------===//
//
// Up to the first zero byte the file, after it a text to encode. Every id of a
// tokenizer that is accepted is below its vocabulary.
//
//===----------------------------------------------------------------------===//
#include "runtime/tokenizer/BpeTokenizer.h"

#include <cstdint>
#include <cstdlib>

using namespace mega;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view all(reinterpret_cast<const char *>(data), size);
  const size_t zero = std::min(all.find('\0'), size);
  const auto tokenizer = BpeTokenizer::parse(all.substr(0, zero));
  if (!tokenizer.isOk()) {
    if (tokenizer.status().code() != Code::BadInput) {
      std::abort();
    }
    return 0;
  }
  for (const std::string_view text :
       {std::string_view("Hello, world! 1234  caf\xc3\xa9\n"),
        all.substr(std::min(zero + 1, size))}) {
    std::vector<int32_t> ids;
    if (!tokenizer->encode(text, ids).isOk()) {
      continue;
    }
    for (const int32_t id : ids) {
      if (id < 0 || id >= tokenizer->vocabulary()) {
        std::abort();
      }
    }
    (void)tokenizer->decode(ids);
  }
  (void)tokenizer->endOfDocument();
  (void)tokenizer->specialTokens();
  return 0;
}
