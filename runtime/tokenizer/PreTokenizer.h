//===- PreTokenizer.h - `pre_tokenizer` of tokenizer.json -------*- C++ -*-===//
//
// Cuts text into the words that byte-pair encoding works on. Supported, and
// sequences of them: ByteLevel (add_prefix_space, use_regex), Split (a string
// or regex; isolated or removed; inverted), Digits, Metaspace. Anything else is
// refused. Immutable; any thread.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_PRETOKENIZER_H
#define MEGA_RUNTIME_TOKENIZER_PRETOKENIZER_H

#include "runtime/tokenizer/JsonFields.h"
#include "runtime/tokenizer/Regex.h"

#include <memory>
#include <utility>
#include <vector>

namespace mega {

/// A text and the words in it, in order: [begin, end) in bytes, none empty.
struct Words {
  std::string text;
  std::vector<std::pair<size_t, size_t>> spans;
  /// Whether the text is the beginning of what was asked to be encoded.
  bool first = true;
};

class PreTokenizer {
public:
  /// Code::BadInput naming what is not supported, and what is.
  static StatusOr<PreTokenizer> parse(const Json &json);

  /// Cuts the words that are there further, and rewrites the text.
  Status apply(Words &words) const;

  /// Words are spelt in the alphabet of ByteLevel.h afterwards.
  bool byteLevel() const;

private:
  struct Step {
    enum class Kind { Split, ByteLevel, Metaspace };
    enum class Prepend { Never, First, Always };
    Kind kind = Kind::Split;
    /// Split, and ByteLevel with use_regex.
    std::shared_ptr<const Regex> regex;
    bool remove = false;
    bool invert = false;
    bool addPrefixSpace = false;
    std::string replacement;
    Prepend prepend = Prepend::Always;
    bool split = true;
  };
  Status add(const Json &json, const std::string &where);
  static StatusOr<Step> parseByteLevel(const Fields &fields);
  static StatusOr<Step> parseSplit(const Fields &fields);
  static StatusOr<Step> parseDigits(const Fields &fields);
  static StatusOr<Step> parseMetaspace(const Fields &fields);

  static Status split(const Step &step, Words &words);
  static Status toByteLevel(const Step &step, Words &words);
  static void toMetaspace(const Step &step, Words &words);

  std::vector<Step> steps;
};

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_PRETOKENIZER_H
