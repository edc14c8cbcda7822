//===- Normalizer.h - `normalizer` of tokenizer.json ------------*- C++ -*-===//
//
// Rewrites text before it is cut: NFC, NFD, NFKC, NFKD (by utf8proc), Prepend,
// Replace of a string, and sequences of them. Anything else is refused.
// Immutable; any thread.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_NORMALIZER_H
#define MEGA_RUNTIME_TOKENIZER_NORMALIZER_H

#include "runtime/tokenizer/JsonFields.h"

#include <vector>

namespace mega {

class Normalizer {
public:
  /// Code::BadInput naming what is not supported, and what is.
  static StatusOr<Normalizer> parse(const Json &json);

  /// Rewrites valid UTF-8. Code::BadInput if the text grows without measure.
  Status apply(std::string &text) const;

private:
  enum class Kind { Unicode, Prepend, Replace };
  struct Step {
    Kind kind = Kind::Unicode;
    /// Flags of utf8proc_map.
    int form = 0;
    std::string from;
    std::string to;
  };
  Status add(const Json &json, const std::string &where);

  std::vector<Step> steps;
};

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_NORMALIZER_H
