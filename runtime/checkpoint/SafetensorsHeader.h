//===- SafetensorsHeader.h - The JSON header of safetensors -----*- C++ -*-===//
//
// Formats and parses the header described in Safetensors.h. Internal to
// checkpoint/; separate because this is the part that faces untrusted text and
// the JSON library, whose exceptions end here.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CHECKPOINT_SAFETENSORSHEADER_H
#define MEGA_RUNTIME_CHECKPOINT_SAFETENSORSHEADER_H

#include "runtime/checkpoint/Safetensors.h"

namespace mega::safetensors {

/// The limit of the reference implementation.
inline constexpr uint64_t kMaximumHeaderBytes = 100'000'000;

struct Entry {
  TensorInfo info;
  /// Bytes of the data section; 0 <= begin <= end <= its size.
  int64_t begin = 0;
  int64_t end = 0;
};

struct Header {
  /// Sorted by name, without duplicates.
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
};

/// The padded header for tensors stored back to back in the given order.
/// `metadata` gets "format": "pt".
StatusOr<std::string>
formatHeader(const std::vector<TensorInfo> &tensors,
             const std::map<std::string, std::string> &metadata);

/// Parses and checks the header of a data section of `dataBytes`: tensors cover
/// it exactly.
StatusOr<Header> parseHeader(std::string_view text, int64_t dataBytes);

} // namespace mega::safetensors

#endif // MEGA_RUNTIME_CHECKPOINT_SAFETENSORSHEADER_H
