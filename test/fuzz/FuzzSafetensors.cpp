//===- FuzzSafetensors.cpp - Headers of weight files ----------------------===//
//
// The first four bytes are the size of the data section, the rest is the text
// of the header. What it accepts covers the section, tensor by tensor.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/SafetensorsHeader.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

using namespace mega;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 4) {
    return 0;
  }
  uint32_t dataBytes = 0;
  std::memcpy(&dataBytes, data, 4);
  const std::string_view text(reinterpret_cast<const char *>(data) + 4,
                              size - 4);
  const auto header = safetensors::parseHeader(text, dataBytes);
  if (!header.isOk()) {
    if (header.status().code() != Code::BadInput) {
      std::abort();
    }
    return 0;
  }
  int64_t covered = 0;
  for (const auto &entry : header->entries) {
    if (entry.begin < 0 || entry.begin > entry.end || entry.end > dataBytes) {
      std::abort();
    }
    covered += entry.end - entry.begin;
  }
  if (covered != dataBytes) {
    std::abort();
  }
  return 0;
}
