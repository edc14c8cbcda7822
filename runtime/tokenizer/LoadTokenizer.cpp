#include "runtime/tokenizer/LoadTokenizer.h"

#include "runtime/core/Files.h"
#include "runtime/tokenizer/BpeTokenizer.h"
#include "runtime/tokenizer/ByteTokenizer.h"
#include "runtime/tokenizer/SentencePieceTokenizer.h"

#include <fmt/ranges.h>

#include <charconv>
#include <filesystem>

namespace mega {

namespace {

/// The largest published ones are a tenth of it.
constexpr size_t kMostBytes = size_t{256} << 20;

template <typename T>
StatusOr<std::unique_ptr<Tokenizer>> owned(StatusOr<T> parsed,
                                           const std::string &path) {
  if (!parsed.isOk()) {
    return std::move(parsed).takeStatus().withContext(path);
  }
  return std::unique_ptr<Tokenizer>(
      std::make_unique<T>(std::move(parsed).take()));
}

std::string candidates(const Tokenizer &tokenizer) {
  std::vector<std::string> tokens = tokenizer.specialTokens();
  const size_t count = tokens.size();
  tokens.resize(std::min<size_t>(count, 8));
  return count == 0
             ? "it names no special tokens"
             : fmt::format("its special tokens: {}{}", fmt::join(tokens, ", "),
                           count > 8 ? ", ..." : "");
}

} // namespace

StatusOr<std::unique_ptr<Tokenizer>> loadTokenizer(const std::string &name) {
  if (name == "byte") {
    return std::unique_ptr<Tokenizer>(std::make_unique<ByteTokenizer>());
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) {
    return ioError("{} is a directory: name tokenizer.json or tokenizer.model "
                   "in it",
                   name);
  }
  std::string content;
  MEGA_RETURN_IF_ERROR(readInPieces(name, [&](std::string_view piece) {
    content += piece;
    return content.size() <= kMostBytes
               ? Status::ok()
               : badInput("{}: more than {} bytes, too large for a tokenizer",
                          name, kMostBytes);
  }));
  const size_t first = content.find_first_not_of(" \t\r\n");
  return first != std::string::npos && content[first] == '{'
             ? owned(BpeTokenizer::parse(content), name)
             : owned(SentencePieceTokenizer::parse(content), name);
}

StatusOr<int32_t> chooseEndOfDocument(const Tokenizer &tokenizer,
                                      const std::string &wanted) {
  if (wanted.empty()) {
    if (const auto id = tokenizer.endOfDocument()) {
      return *id;
    }
    return usageError("the tokenizer has none of <|endoftext|>, "
                      "<|end_of_text|>, </s>, <eos> to end a document: give "
                      "--eod TOKEN or --eod ID ({})",
                      candidates(tokenizer));
  }
  if (wanted.find_first_not_of("0123456789") != std::string::npos) {
    if (const auto id = tokenizer.findToken(wanted)) {
      return *id;
    }
    return usageError("--eod {}: the tokenizer has no such token ({})", wanted,
                      candidates(tokenizer));
  }
  int32_t id = 0;
  const char *end = wanted.data() + wanted.size();
  if (std::from_chars(wanted.data(), end, id).ec != std::errc() ||
      id >= tokenizer.vocabulary()) {
    return usageError("--eod {}: ids of the tokenizer are 0 to {}", wanted,
                      tokenizer.vocabulary() - 1);
  }
  return id;
}

} // namespace mega
