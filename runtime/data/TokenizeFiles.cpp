#include "runtime/data/TokenizeFiles.h"

#include "runtime/data/ByteTokenizer.h"
#include "runtime/data/IndexedDatasetWriter.h"

#include <fmt/ranges.h>
#include <unistd.h>

namespace mega {

namespace {

/// Cuts the text of one file after another into documents.
class Documents {
public:
  Documents(IndexedDatasetWriter &writer, const std::string &separator)
      : writer(writer), separator(separator) {}

  /// A further piece of the open file.
  Status addText(std::string_view text) {
    if (separator.empty()) {
      return addToDocument(text);
    }
    pending += text;
    size_t start = 0;
    for (size_t found;
         (found = pending.find(separator, start)) != std::string::npos;
         start = found + separator.size()) {
      const std::string_view all = pending;
      MEGA_RETURN_IF_ERROR(addToDocument(all.substr(start, found - start)));
      MEGA_RETURN_IF_ERROR(endDocument());
    }
    // The end may be the beginning of a separator.
    const size_t keep = std::min(separator.size() - 1, pending.size() - start);
    const size_t safe = pending.size() - keep;
    MEGA_RETURN_IF_ERROR(
        addToDocument(std::string_view(pending).substr(start, safe - start)));
    pending.erase(0, safe);
    return Status::ok();
  }

  Status endFile() {
    MEGA_RETURN_IF_ERROR(addToDocument(pending));
    pending.clear();
    // A separator at the end of a file does not begin another document.
    return hasText || separator.empty() ? endDocument() : Status::ok();
  }

  int64_t empty = 0;

private:
  Status addToDocument(std::string_view text) {
    hasText |= !text.empty();
    tokens.clear();
    ByteTokenizer::encode(text, tokens);
    return writer.append(tokens);
  }

  Status endDocument() {
    if (!std::exchange(hasText, false)) {
      ++empty;
      return Status::ok();
    }
    MEGA_RETURN_IF_ERROR(
        writer.append(std::span(&ByteTokenizer::kEndOfDocument, 1)));
    writer.endDocument();
    return Status::ok();
  }

  IndexedDatasetWriter &writer;
  const std::string &separator;
  /// Text that has not been searched for the separator completely.
  std::string pending;
  std::vector<int32_t> tokens;
  bool hasText = false;
};

} // namespace

StatusOr<TokenizeCounts> tokenizeFiles(const TokenizeOptions &options) {
  MEGA_ASSIGN_OR_RETURN(
      IndexedDatasetWriter writer,
      IndexedDatasetWriter::create(options.prefix, ByteTokenizer::kVocabulary));
  Documents documents(writer, options.documentSeparator);
  const auto consume = [&](std::string_view text) {
    return documents.addText(text);
  };
  for (const std::string &input : options.inputs) {
    MEGA_RETURN_IF_ERROR(
        input == "-" ? readInPieces(STDIN_FILENO, "standard input", consume)
                     : readInPieces(input, consume));
    MEGA_RETURN_IF_ERROR(documents.endFile());
  }
  if (writer.documents() == 0) {
    return badInput("no text in {}", fmt::join(options.inputs, ", "));
  }
  MEGA_RETURN_IF_ERROR(writer.finish());
  return TokenizeCounts{writer.type(), writer.documents(), writer.tokens(),
                        documents.empty};
}

} // namespace mega
