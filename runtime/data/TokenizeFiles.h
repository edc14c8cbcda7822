//===- TokenizeFiles.h - Text to a dataset ----------------------*- C++ -*-===//
//
// What `mega-data tokenize` does: streams text files through a tokenizer into
// an indexed dataset. Plain text is cut into documents by a separator; of JSON
// lines (files named *.jsonl) each is a document. Memory does not grow with the
// text: with the byte tokenizer hardly any is used, with others a few documents
// per worker are held whole. The output does not depend on the workers.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_TOKENIZEFILES_H
#define MEGA_RUNTIME_DATA_TOKENIZEFILES_H

#include "runtime/data/IndexedDataset.h"
#include "runtime/tokenizer/Tokenizer.h"

#include <optional>
#include <string>
#include <vector>

namespace mega {

/// Bytes of a document that is held whole.
inline constexpr size_t kMostDocumentBytes = size_t{1} << 30;

struct TokenizeOptions {
  /// Files, in this order; `-` is standard input.
  std::vector<std::string> inputs;
  /// Where the dataset goes: PREFIX.bin, PREFIX.idx and PREFIX.meta.
  std::string prefix;
  /// Ends a document of plain text and is no part of it. Empty: a file is one
  /// document. A document never spans two files.
  std::string documentSeparator;
  /// The key of a JSON line that holds its text. Set: all inputs are JSON
  /// lines. Unset: those named *.jsonl are, with the key `text`.
  std::optional<std::string> jsonKey;
  /// Threads that encode, the caller's included.
  int workers = 1;
  /// Ends every document.
  int32_t endOfDocument = 0;
};

struct TokenizeCounts {
  TokenType type = TokenType::U16;
  int64_t documents = 0;
  /// End-of-document tokens included.
  int64_t tokens = 0;
  /// Documents without text, which are left out.
  int64_t emptyDocuments = 0;
};

/// Writes every document followed by options.endOfDocument. Code::Io for files
/// that cannot be read or written; Code::BadInput, with file and line or
/// document, for text the tokenizer refuses, JSON lines without the key and
/// inputs with no text at all; Code::Usage for a separator with JSON lines. On
/// failure no file is left behind or changed.
StatusOr<TokenizeCounts> tokenizeFiles(const TokenizeOptions &options,
                                       const Tokenizer &tokenizer);

} // namespace mega

#endif // MEGA_RUNTIME_DATA_TOKENIZEFILES_H
