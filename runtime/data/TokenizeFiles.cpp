#include "runtime/data/TokenizeFiles.h"

#include "runtime/core/BoundedJson.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/data/IndexedDatasetWriter.h"

#include <fmt/ranges.h>
#include <unistd.h>

namespace mega {

namespace {

/// Text of documents that are encoded together, per worker.
constexpr size_t kBatchBytes = size_t{1} << 20;
/// How deep the other values of a JSON line may nest.
constexpr int kJsonDepth = 64;

/// Encodes documents and writes them in order. Those of a tokenizer that takes
/// pieces are written as their text comes; others are gathered, and encoded by
/// all workers at once.
class Encoder {
public:
  Encoder(IndexedDatasetWriter &writer, const TokenizeOptions &options,
          const Tokenizer &tokenizer)
      : writer(writer), tokenizer(tokenizer), end(options.endOfDocument),
        workers(options.workers, /*scratchBytes=*/64) {}

  Status addText(std::string_view text) {
    hasText |= !text.empty();
    if (tokenizer.encodesInPieces()) {
      ids.clear();
      MEGA_RETURN_IF_ERROR(tokenizer.encode(text, ids));
      return writer.append(ids);
    }
    if (text.size() > kMostDocumentBytes - open.size()) {
      return badInput("a document of more than {} bytes: cut the text with "
                      "--document-separator",
                      kMostDocumentBytes);
    }
    open += text;
    return Status::ok();
  }

  /// `where` is for messages.
  Status endDocument(const std::string &where) {
    if (!std::exchange(hasText, false)) {
      ++empty;
      return Status::ok();
    }
    if (tokenizer.encodesInPieces()) {
      return finishDocument();
    }
    gatheredBytes += open.size();
    gathered.push_back({std::exchange(open, {}), where, {}, {}});
    return gatheredBytes < kBatchBytes * workers.threads() ? Status::ok()
                                                           : flush();
  }

  /// Writes what is gathered.
  Status flush() {
    workers.parallelFor(
        std::ssize(gathered), [&](int64_t i, std::span<std::byte>) {
          Document &document = gathered[i];
          document.status = tokenizer.encode(document.text, document.ids);
        });
    for (Document &document : gathered) {
      MEGA_RETURN_IF_ERROR_CONTEXT(std::move(document.status), "{}",
                                   document.where);
      MEGA_RETURN_IF_ERROR(writer.append(document.ids));
      MEGA_RETURN_IF_ERROR(finishDocument());
    }
    gathered.clear();
    gatheredBytes = 0;
    return Status::ok();
  }

  int64_t empty = 0;

private:
  struct Document {
    std::string text;
    std::string where;
    std::vector<int32_t> ids;
    Status status;
  };

  Status finishDocument() {
    MEGA_RETURN_IF_ERROR(writer.append(std::span(&end, 1)));
    writer.endDocument();
    return Status::ok();
  }

  IndexedDatasetWriter &writer;
  const Tokenizer &tokenizer;
  const int32_t end;
  ThreadPool workers;
  /// Of the document that is open.
  std::string open;
  bool hasText = false;
  std::vector<Document> gathered;
  size_t gatheredBytes = 0;
  std::vector<int32_t> ids;
};

/// Cuts one file of plain text into documents.
class PlainText {
public:
  PlainText(Encoder &encoder, const std::string &separator,
            const std::string &file)
      : encoder(encoder), separator(separator), file(file) {}

  /// A further piece of the file.
  Status add(std::string_view text) {
    if (separator.empty()) {
      return encoder.addText(text);
    }
    pending += text;
    size_t start = 0;
    for (size_t found;
         (found = pending.find(separator, start)) != std::string::npos;
         start = found + separator.size()) {
      MEGA_RETURN_IF_ERROR(addPending(start, found));
      MEGA_RETURN_IF_ERROR(endDocument());
    }
    // The end may be the beginning of a separator.
    const size_t keep = std::min(separator.size() - 1, pending.size() - start);
    const size_t safe = pending.size() - keep;
    MEGA_RETURN_IF_ERROR(addPending(start, safe));
    pending.erase(0, safe);
    return Status::ok();
  }

  Status end() {
    MEGA_RETURN_IF_ERROR(addPending(0, pending.size()));
    // A separator at the end of a file does not begin another document.
    return hasText || separator.empty() ? endDocument() : Status::ok();
  }

private:
  Status addPending(size_t begin, size_t end) {
    hasText |= end > begin;
    return encoder.addText(
        std::string_view(pending).substr(begin, end - begin));
  }
  Status endDocument() {
    hasText = false;
    return encoder.endDocument(
        fmt::format("{}: document {} (from 0)", file, documents++));
  }

  Encoder &encoder;
  const std::string &separator;
  const std::string &file;
  /// Text that has not been searched for the separator completely.
  std::string pending;
  int64_t documents = 0;
  bool hasText = false;
};

/// Takes one file of JSON lines apart.
class JsonLines {
public:
  JsonLines(Encoder &encoder, std::string key, const std::string &file)
      : encoder(encoder), key(std::move(key)), file(file) {}

  Status add(std::string_view text) {
    for (size_t newline; (newline = text.find('\n')) != std::string_view::npos;
         text.remove_prefix(newline + 1)) {
      MEGA_RETURN_IF_ERROR(gather(text.substr(0, newline)));
      MEGA_RETURN_IF_ERROR(endLine());
    }
    return gather(text);
  }

  Status end() { return endLine(); }

private:
  Status gather(std::string_view text) {
    if (text.size() > kMostDocumentBytes - line.size()) {
      return badInput("{}:{}: a line of more than {} bytes", file, number,
                      kMostDocumentBytes);
    }
    line += text;
    return Status::ok();
  }

  Status endLine() {
    const std::string where = fmt::format("{}:{}", file, number++);
    const std::string text = std::exchange(line, {});
    if (text.find_first_not_of(" \t\r") == std::string::npos) {
      return Status::ok();
    }
    auto parsed = parseBoundedJson(text, kJsonDepth);
    if (!parsed.isOk()) {
      return std::move(parsed).takeStatus().withContext(where);
    }
    const Json json = std::move(parsed).take();
    if (!json.is_object()) {
      return badInput("{}: {}, expected an object", where, shortJson(json));
    }
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string()) {
      std::vector<std::string> strings;
      for (const auto &[name, value] : json.items()) {
        if (value.is_string() && strings.size() < 8) {
          strings.push_back(name);
        }
      }
      return badInput("{}: {} {}; choose the text with --json-key (keys with "
                      "text: {})",
                      where,
                      found == json.end() ? "no key" : "no text under the key",
                      key, fmt::join(strings, ", "));
    }
    MEGA_RETURN_IF_ERROR_CONTEXT(
        encoder.addText(found->get_ref<const std::string &>()), "{}", where);
    return encoder.endDocument(where);
  }

  Encoder &encoder;
  const std::string key;
  const std::string &file;
  std::string line;
  int64_t number = 1;
};

Status readInput(const std::string &input, const std::string &name,
                 const std::function<Status(std::string_view)> &consume) {
  return input == "-" ? readInPieces(STDIN_FILENO, name, consume)
                      : readInPieces(input, consume);
}

} // namespace

StatusOr<TokenizeCounts> tokenizeFiles(const TokenizeOptions &options,
                                       const Tokenizer &tokenizer) {
  const auto isJson = [&](const std::string &input) {
    return options.jsonKey || input.ends_with(".jsonl");
  };
  for (const std::string &input : options.inputs) {
    if (isJson(input) && !options.documentSeparator.empty()) {
      return usageError("--document-separator is for plain text, but in {} "
                        "each JSON line is a document: give one of them",
                        input);
    }
  }
  MEGA_ASSIGN_OR_RETURN(
      IndexedDatasetWriter writer,
      IndexedDatasetWriter::create(options.prefix, tokenizer.vocabulary()));
  Encoder encoder(writer, options, tokenizer);
  for (const std::string &input : options.inputs) {
    const std::string name = input == "-" ? "standard input" : input;
    const auto run = [&](auto reader) {
      MEGA_RETURN_IF_ERROR(readInput(input, name, [&](std::string_view text) {
        return reader.add(text);
      }));
      return reader.end();
    };
    MEGA_RETURN_IF_ERROR(
        isJson(input)
            ? run(JsonLines(encoder, options.jsonKey.value_or("text"), name))
            : run(PlainText(encoder, options.documentSeparator, name)));
  }
  MEGA_RETURN_IF_ERROR(encoder.flush());
  if (writer.documents() == 0) {
    return badInput("no text in {}", fmt::join(options.inputs, ", "));
  }
  MEGA_RETURN_IF_ERROR(writer.finish());
  return TokenizeCounts{writer.type(), writer.documents(), writer.tokens(),
                        encoder.empty};
}

} // namespace mega
