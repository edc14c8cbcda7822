//===- TokenizeFiles.h - Text to a dataset ----------------------*- C++ -*-===//
//
// What `mega-data tokenize` does: streams text files through the byte tokenizer
// into an indexed dataset. Memory does not grow with the text.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_TOKENIZEFILES_H
#define MEGA_RUNTIME_DATA_TOKENIZEFILES_H

#include "runtime/data/IndexedDataset.h"

#include <string>
#include <vector>

namespace mega {

struct TokenizeOptions {
  /// Files, in this order; `-` is standard input.
  std::vector<std::string> inputs;
  /// Where the dataset goes: PREFIX.bin and PREFIX.idx.
  std::string prefix;
  /// Ends a document and is no part of it. Empty: a file is one document. A
  /// document never spans two files.
  std::string documentSeparator;
};

struct TokenizeCounts {
  TokenType type = TokenType::U16;
  int64_t documents = 0;
  /// End-of-document tokens included.
  int64_t tokens = 0;
  /// Documents without text, which are left out.
  int64_t emptyDocuments = 0;
};

/// Writes every document followed by ByteTokenizer::kEndOfDocument. Code::Io
/// for files that cannot be read or written, Code::BadInput if the inputs hold
/// no text at all. On failure no file is left behind or changed.
StatusOr<TokenizeCounts> tokenizeFiles(const TokenizeOptions &options);

} // namespace mega

#endif // MEGA_RUNTIME_DATA_TOKENIZEFILES_H
