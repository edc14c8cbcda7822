//===- IndexedDataset.h - Megatron's .bin/.idx, read ------------*- C++ -*-===//
//
// PREFIX.bin holds the tokens of all sequences back to back; PREFIX.idx says
// where sequences and documents begin. Little endian, no padding:
//
//   .idx  0  9 bytes  "MMIDIDX\0\0"
//         9  u64      version, 1
//        17  u8       token type code (TokenType)
//        18  u64      S, number of sequences
//        26  u64      D, number of documents plus one
//        34  i32[S]   tokens of each sequence
//            i64[S]   byte offset of each sequence in .bin
//            i64[D]   sequences before each document: first 0, last S
//            i8[S]    modes; optional, must all be 0 (text)
//
// open() checks all of it against the sizes of both files, so the accessors
// need no checks. Both files are untrusted. A sequence must begin where the one
// before it ends: the tokens of the dataset are then one flat array, which is
// the stream that samples are cut from.
//
// Files stay mapped for the life of the object. All const members may be
// called from any thread and allocate nothing.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_INDEXEDDATASET_H
#define MEGA_RUNTIME_DATA_INDEXEDDATASET_H

#include "runtime/core/Files.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace mega {

/// The codes of the file format. Its codes 6 (f64) and 7 (f32) hold no tokens
/// and are refused.
enum class TokenType : uint8_t {
  U8 = 1,
  I8 = 2,
  I16 = 3,
  I32 = 4,
  I64 = 5,
  U16 = 8,
};

/// Bytes of one token.
int64_t byteSize(TokenType type);
/// `u16`, `i32`, ...
std::string_view name(TokenType type);

/// The first bytes of an .idx, shared with the writer.
inline constexpr std::string_view kIndexMagic("MMIDIDX\0\0", 9);
inline constexpr uint64_t kIndexVersion = 1;
inline constexpr int64_t kIndexHeaderBytes = 34;

class IndexedDataset {
public:
  /// Opens PREFIX.idx and PREFIX.bin. Code::Io if one cannot be read,
  /// Code::BadInput if they are damaged or do not belong together.
  static StatusOr<IndexedDataset> open(const std::string &prefix);

  /// As it was opened.
  const std::string &prefix() const { return prefix_; }
  const std::string &indexPath() const { return index.path(); }
  const std::string &binPath() const { return bin.path(); }
  /// The whole .idx.
  std::span<const std::byte> indexBytes() const { return index.bytes(); }
  TokenType type() const { return type_; }
  int64_t tokens() const { return tokens_; }
  int64_t sequences() const { return sequences_; }
  int64_t documents() const { return documents_; }

  /// Position in the stream of the first token of `document`, in
  /// [0, documents()]; documentStart(documents()) == tokens().
  int64_t documentStart(int64_t document) const;
  /// The document that token `position` lies in.
  int64_t documentOf(int64_t position) const;

  /// The token at `position`, in [0, tokens()).
  int64_t token(int64_t position) const;
  /// Tokens [first, first + out.size()), each narrowed to 32 bits: call
  /// checkVocabulary() first.
  void read(int64_t first, std::span<int32_t> out) const;

  /// Smallest and largest token; needs at least one. Reads the whole stream.
  std::pair<int64_t, int64_t> tokenRange() const;
  /// Reads the whole stream once and reports the first token outside
  /// [0, vocabulary) with its document and its offset therein.
  Status checkVocabulary(int64_t vocabulary) const;

private:
  Status checkHeader();
  Status checkSequences();
  Status checkDocuments() const;

  int64_t length(int64_t sequence) const;
  int64_t byteOffset(int64_t sequence) const;
  int64_t documentIndex(int64_t document) const;

  std::string prefix_;
  MappedFile index;
  MappedFile bin;
  TokenType type_ = TokenType::I32;
  int64_t tokens_ = 0;
  int64_t sequences_ = 0;
  int64_t documents_ = 0;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_INDEXEDDATASET_H
