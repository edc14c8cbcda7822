//===- IndexedDatasetWriter.h - Megatron's .bin/.idx, written ---*- C++ -*-===//
//
// Streams documents into the format of IndexedDataset.h, one sequence per
// document. Both files grow under temporary names (`PREFIX.bin.tmp-<pid>`) and
// get their names in finish(), together with PREFIX.meta (DatasetMeta.h); a
// writer destroyed before leaves nothing behind and the old files, if any,
// untouched. Memory: 4 bytes per document.
//
// Tokens are stored as u16 if the vocabulary is below 65500 and as i32
// otherwise, as Megatron does. Move-only, one thread.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_INDEXEDDATASETWRITER_H
#define MEGA_RUNTIME_DATA_INDEXEDDATASETWRITER_H

#include "runtime/data/IndexedDataset.h"

#include <limits>
#include <vector>

namespace mega {

class IndexedDatasetWriter {
public:
  /// Code::Io if a temporary cannot be created.
  static StatusOr<IndexedDatasetWriter> create(const std::string &prefix,
                                               int64_t vocabulary);

  /// Adds tokens to the open document; Code::BadInput for one outside
  /// [0, vocabulary) or a document of more than 2^31 - 1 tokens.
  Status append(std::span<const int32_t> tokens);
  /// Closes the open document, which may be empty.
  void endDocument();
  /// Closes the open document if it has tokens, and names the files. A .meta of
  /// an older dataset is removed first: it never stands beside foreign files.
  Status finish();

  TokenType type() const { return type_; }
  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return static_cast<int64_t>(lengths.size()); }

private:
  Status writeIndex();

  AtomicFile bin;
  AtomicFile index;
  TokenType type_ = TokenType::I32;
  std::string prefix;
  int64_t vocabulary = 0;
  int64_t tokens_ = 0;
  int32_t lowest = std::numeric_limits<int32_t>::max();
  int32_t highest = -1;
  /// Tokens of the closed documents.
  std::vector<int32_t> lengths;
  /// Tokens of the open document.
  int32_t open = 0;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_INDEXEDDATASETWRITER_H
