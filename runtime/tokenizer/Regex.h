//===- Regex.h - Patterns of tokenizer.json, by PCRE2 -----------*- C++ -*-===//
//
// The patterns in tokenizer.json are written for Oniguruma. compile() turns
// what the two libraries read differently into PCRE2 (white space is Unicode's
// White_Space, \w its word characters, \uHHHH a character, \p{Han} a script)
// and refuses by name whatever is not known to mean the same in both. RE2 is
// not enough: the patterns look ahead.
//
// Move-only. forEachMatch() may be called from any number of threads; it bounds
// the work of one match (kMatchLimit) and its memory.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TOKENIZER_REGEX_H
#define MEGA_RUNTIME_TOKENIZER_REGEX_H

#include "runtime/plan/Status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace mega {

/// Steps of one match. A run of white space of N bytes takes about N.
inline constexpr uint32_t kMatchLimit = 50'000'000;

/// The pattern for PCRE2. Code::BadInput for syntax that has no sure
/// translation.
StatusOr<std::string> translatePattern(std::string_view oniguruma);
/// Quoted: matches `text` and nothing else.
std::string quotePattern(std::string_view text);

class Regex {
public:
  /// Code::BadInput for a pattern that is refused or does not compile.
  static StatusOr<Regex> compile(std::string_view oniguruma);

  /// Calls each(begin, end), in bytes, for every match from left to right.
  /// `text` must be valid UTF-8. Code::BadInput if a match takes too long.
  Status forEachMatch(std::string_view text,
                      const std::function<void(size_t, size_t)> &each) const;

  const std::string &pattern() const { return pattern_; }

private:
  struct Free {
    void operator()(void *code) const;
  };
  /// pcre2_code, which only the .cpp knows.
  std::unique_ptr<void, Free> code;
  std::string pattern_;
};

} // namespace mega

#endif // MEGA_RUNTIME_TOKENIZER_REGEX_H
