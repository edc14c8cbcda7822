//===- IndexBytes.h - .idx files written by hand ----------------*- C++ -*-===//
//
// Builds index and token bytes field by field, independent of the writer, so
// that tests can put anything into any field.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TEST_RUNTIME_DATA_INDEXBYTES_H
#define MEGA_TEST_RUNTIME_DATA_INDEXBYTES_H

#include "test/runtime/TemporaryDirectory.h"

#include <cstdint>
#include <vector>

namespace mega::test {

template <typename T> std::string raw(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(T)};
}

/// Two documents of two and one sequences: [3, 1] and [2].
struct IndexBytes {
  std::string magic{"MMIDIDX\0\0", 9};
  uint64_t version = 1;
  uint8_t code = 8;
  std::vector<int32_t> lengths = {3, 1, 2};
  std::vector<int64_t> offsets = {0, 6, 8};
  std::vector<int64_t> documents = {0, 2, 3};
  std::vector<int8_t> modes;
  /// Counts as written; those of the arrays unless set.
  int64_t sequenceCount = -1;
  int64_t documentCount = -1;

  std::string bytes() const {
    const auto count = [](int64_t written, size_t size) {
      return written < 0 ? static_cast<uint64_t>(size)
                         : static_cast<uint64_t>(written);
    };
    return magic + raw<uint64_t>({version}) + raw<uint8_t>({code}) +
           raw<uint64_t>({count(sequenceCount, lengths.size()),
                          count(documentCount, documents.size())}) +
           raw(lengths) + raw(offsets) + raw(documents) + raw(modes);
  }
};

inline void writeDataset(const std::string &prefix, const IndexBytes &index,
                         std::string_view bin) {
  writeFile(prefix + ".idx", index.bytes());
  writeFile(prefix + ".bin", bin);
}

/// The six tokens of IndexBytes as u16.
inline std::string sixTokens() {
  return raw<uint16_t>({10, 11, 12, 13, 14, 65535});
}

/// A dataset of `tokens` in one document, as i32.
inline void writeTokens(const std::string &prefix,
                        const std::vector<int32_t> &tokens) {
  IndexBytes index;
  index.code = 4;
  index.lengths = {static_cast<int32_t>(tokens.size())};
  index.offsets = {0};
  index.documents = {0, 1};
  writeDataset(prefix, index, raw(tokens));
}

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_DATA_INDEXBYTES_H
