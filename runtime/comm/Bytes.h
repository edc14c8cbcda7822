//===- Bytes.h - Addresses and copies of untyped buffers --------*- C++ -*-===//
#ifndef MEGA_RUNTIME_COMM_BYTES_H
#define MEGA_RUNTIME_COMM_BYTES_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mega {

/// `offset` bytes from `base`.
inline const std::byte *at(const void *base, int64_t offset) {
  return static_cast<const std::byte *>(base) + offset;
}
inline std::byte *at(void *base, int64_t offset) {
  return static_cast<std::byte *>(base) + offset;
}

/// Nothing if both are the same memory, or there is nothing to copy.
inline void copyBytes(void *to, const void *from, int64_t bytes) {
  if (to != from && bytes > 0) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

} // namespace mega

#endif // MEGA_RUNTIME_COMM_BYTES_H
