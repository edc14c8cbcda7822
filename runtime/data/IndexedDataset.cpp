#include "runtime/data/IndexedDataset.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace mega {

namespace {

/// The fields are not aligned.
template <typename T> T load(std::span<const std::byte> bytes, int64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// Calls f with a value of the C++ type of `type`.
template <typename F> auto dispatch(TokenType type, F f) {
  switch (type) {
  case TokenType::U8:
    return f(uint8_t{});
  case TokenType::I8:
    return f(int8_t{});
  case TokenType::I16:
    return f(int16_t{});
  case TokenType::I64:
    return f(int64_t{});
  case TokenType::U16:
    return f(uint16_t{});
  case TokenType::I32:
    break;
  }
  return f(int32_t{});
}

/// Position of the first token outside [0, vocabulary), or `count`. Blocks
/// are tested branch-free and searched only when they hold one.
template <typename T>
int64_t findOutside(std::span<const std::byte> bytes, int64_t count,
                    uint64_t vocabulary) {
  constexpr int64_t kBlock = 4096;
  if (std::is_unsigned_v<T> && vocabulary > std::numeric_limits<T>::max()) {
    return count;
  }
  // The sign bit extends: a negative token is a huge unsigned one.
  const auto isOutside = [&](int64_t i) {
    return static_cast<uint64_t>(static_cast<int64_t>(
               load<T>(bytes, i * int64_t{sizeof(T)}))) >= vocabulary;
  };
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t last = std::min(count, first + kBlock);
    bool found = false;
    for (int64_t i = first; i < last; ++i) {
      found |= isOutside(i);
    }
    for (int64_t i = first; found && i < last; ++i) {
      if (isOutside(i)) {
        return i;
      }
    }
  }
  return count;
}

int64_t fileSize(const MappedFile &file) {
  return static_cast<int64_t>(file.bytes().size());
}

} // namespace

int64_t byteSize(TokenType type) {
  return dispatch(type, [](auto zero) { return int64_t{sizeof(zero)}; });
}

std::string_view name(TokenType type) {
  constexpr std::string_view names[] = {"?",   "u8", "i8", "i16", "i32",
                                        "i64", "?",  "?",  "u16"};
  return names[static_cast<int>(type)];
}

StatusOr<IndexedDataset> IndexedDataset::open(const std::string &prefix) {
  IndexedDataset dataset;
  dataset.prefix_ = prefix;
  auto index = MappedFile::open(prefix + ".idx");
  for (const std::string_view suffix : {".idx", ".bin"}) {
    if (!index.isOk() && prefix.ends_with(suffix)) {
      return ioError("{}; a dataset is named without {}: {}",
                     index.status().message(), suffix,
                     prefix.substr(0, prefix.size() - suffix.size()));
    }
  }
  MEGA_ASSIGN_OR_RETURN(dataset.index, std::move(index));
  MEGA_ASSIGN_OR_RETURN(dataset.bin, MappedFile::open(prefix + ".bin"));
  MEGA_RETURN_IF_ERROR(dataset.checkHeader());
  MEGA_RETURN_IF_ERROR(dataset.checkSequences());
  MEGA_RETURN_IF_ERROR(dataset.checkDocuments());
  return dataset;
}

Status IndexedDataset::checkHeader() {
  const auto bytes = index.bytes();
  const int64_t size = fileSize(index);
  const auto prefix = std::min<size_t>(bytes.size(), kIndexMagic.size());
  if (prefix > 0 &&
      std::memcmp(bytes.data(), kIndexMagic.data(), prefix) != 0) {
    return badInput("{}: not a Megatron index: it does not begin with MMIDIDX",
                    index.path());
  }
  if (size < kIndexHeaderBytes) {
    return badInput("{}: {} bytes, but the header alone has {}: the file is "
                    "cut short",
                    index.path(), size, kIndexHeaderBytes);
  }
  if (const auto version = load<uint64_t>(bytes, 9); version != kIndexVersion) {
    return badInput("{}: version {}, this program reads version {}",
                    index.path(), version, kIndexVersion);
  }
  const auto code = load<uint8_t>(bytes, 17);
  if (code < 1 || code > 8 || code == 6 || code == 7) {
    return badInput("{}: token type code {}{}, expected 1 (u8), 2 (i8), "
                    "3 (i16), 4 (i32), 5 (i64) or 8 (u16)",
                    index.path(), code,
                    code == 6   ? " (f64)"
                    : code == 7 ? " (f32)"
                                : "");
  }
  type_ = static_cast<TokenType>(code);

  // The counts come from the file: compare in 128 bits.
  const auto sequences = load<uint64_t>(bytes, 18);
  const auto indices = load<uint64_t>(bytes, 26);
  using Wide = unsigned __int128;
  const Wide expected =
      Wide{kIndexHeaderBytes} + Wide{12} * sequences + Wide{8} * indices;
  const bool hasModes = static_cast<Wide>(size) == expected + sequences;
  if (static_cast<Wide>(size) != expected && !hasModes) {
    return badInput("{}: {} bytes, but {} sequences and {} document indices "
                    "take {}: the file is damaged or cut short",
                    index.path(), size, sequences, indices,
                    expected > std::numeric_limits<uint64_t>::max()
                        ? std::string("more than 2^64")
                        : fmt::to_string(static_cast<uint64_t>(expected)));
  }
  if (indices == 0) {
    return badInput("{}: no document indices, expected at least one",
                    index.path());
  }
  sequences_ = static_cast<int64_t>(sequences);
  documents_ = static_cast<int64_t>(indices) - 1;
  for (int64_t i = 0; hasModes && i < sequences_; ++i) {
    const auto at = static_cast<int64_t>(expected) + i;
    if (const auto mode = load<uint8_t>(bytes, at); mode != 0) {
      return badInput("{}: sequence {} has mode {}, only text (mode 0) is "
                      "supported",
                      index.path(), i, mode);
    }
  }
  return Status::ok();
}

Status IndexedDataset::checkSequences() {
  const int64_t width = byteSize(type_);
  int64_t end = 0;
  for (int64_t i = 0; i < sequences_; ++i) {
    if (length(i) < 0) {
      return badInput("{}: sequence {} has {} tokens", index.path(), i,
                      length(i));
    }
    if (byteOffset(i) != end) {
      return badInput("{}: sequence {} is at byte {} of the .bin, but the one "
                      "before it ends at byte {}",
                      index.path(), i, byteOffset(i), end);
    }
    if (__builtin_add_overflow(end, length(i) * width, &end)) {
      return badInput("{}: sequence {} ends beyond 2^63 bytes", index.path(),
                      i);
    }
  }
  if (end != fileSize(bin)) {
    return badInput("{}: {} bytes, but its index {} describes {} ({} tokens "
                    "of type {}): the two files do not belong together or one "
                    "is cut short",
                    bin.path(), fileSize(bin), index.path(), end, end / width,
                    name(type_));
  }
  tokens_ = end / width;
  return Status::ok();
}

Status IndexedDataset::checkDocuments() const {
  int64_t previous = 0;
  for (int64_t i = 0; i <= documents_; ++i) {
    const int64_t current = documentIndex(i);
    if (i == 0 ? current != 0 : current < previous || current > sequences_) {
      return badInput("{}: document index {} is {}, expected {} to {}",
                      index.path(), i, current, previous,
                      i == 0 ? 0 : sequences_);
    }
    previous = current;
  }
  if (previous != sequences_) {
    return badInput("{}: the last document index is {}, expected {}, the "
                    "number of sequences",
                    index.path(), previous, sequences_);
  }
  return Status::ok();
}

int64_t IndexedDataset::length(int64_t sequence) const {
  return load<int32_t>(index.bytes(), kIndexHeaderBytes + 4 * sequence);
}

int64_t IndexedDataset::byteOffset(int64_t sequence) const {
  return load<int64_t>(index.bytes(),
                       kIndexHeaderBytes + 4 * sequences_ + 8 * sequence);
}

int64_t IndexedDataset::documentIndex(int64_t document) const {
  return load<int64_t>(index.bytes(),
                       kIndexHeaderBytes + 12 * sequences_ + 8 * document);
}

int64_t IndexedDataset::documentStart(int64_t document) const {
  const int64_t sequence = documentIndex(document);
  return sequence == sequences_ ? tokens_
                                : byteOffset(sequence) / byteSize(type_);
}

int64_t IndexedDataset::documentOf(int64_t position) const {
  // The last document that starts at or before `position`; empty documents
  // before it start there as well and are skipped.
  int64_t low = 0;
  int64_t high = documents_;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (documentStart(middle) <= position ? low : high) = middle;
  }
  return low;
}

int64_t IndexedDataset::token(int64_t position) const {
  return dispatch(type_, [&](auto zero) -> int64_t {
    return load<decltype(zero)>(bin.bytes(), position * int64_t{sizeof(zero)});
  });
}

void IndexedDataset::read(int64_t first, std::span<int32_t> out) const {
  dispatch(type_, [&](auto zero) {
    for (size_t i = 0; i < out.size(); ++i) {
      const auto at = (first + static_cast<int64_t>(i)) * int64_t{sizeof(zero)};
      // A negative i8 is a negative token.
      // NOLINTNEXTLINE(bugprone-signed-char-misuse)
      out[i] = static_cast<int32_t>(load<decltype(zero)>(bin.bytes(), at));
    }
  });
}

std::pair<int64_t, int64_t> IndexedDataset::tokenRange() const {
  return dispatch(type_, [&](auto zero) {
    using T = decltype(zero);
    T low = load<T>(bin.bytes(), 0);
    T high = low;
    for (int64_t i = 1; i < tokens_; ++i) {
      const T token = load<T>(bin.bytes(), i * int64_t{sizeof(T)});
      low = std::min(low, token);
      high = std::max(high, token);
    }
    return std::pair<int64_t, int64_t>(low, high);
  });
}

Status IndexedDataset::checkVocabulary(int64_t vocabulary) const {
  const int64_t position = dispatch(type_, [&](auto zero) {
    return findOutside<decltype(zero)>(bin.bytes(), tokens_,
                                       static_cast<uint64_t>(vocabulary));
  });
  if (position == tokens_) {
    return Status::ok();
  }
  const int64_t document = documentOf(position);
  return badInput("{}: token {} of document {} (both from 0) is {}, outside "
                  "the vocabulary of {}: tokenize with the model's tokenizer",
                  bin.path(), position - documentStart(document), document,
                  token(position), vocabulary);
}

} // namespace mega
