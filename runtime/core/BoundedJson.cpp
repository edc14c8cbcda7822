#include "runtime/core/BoundedJson.h"

#include <algorithm>

namespace mega {

namespace {

/// The deepest nesting of brackets, counted before anything is built. Not by
/// the parser's callback: with one, an array of N objects takes N^2 steps.
int nesting(std::string_view text) {
  int open = 0;
  int deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      i += c == '\\' ? 1 : 0;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++open);
    } else if (c == '}' || c == ']') {
      --open;
    }
  }
  return deepest;
}

} // namespace

StatusOr<Json> parseBoundedJson(std::string_view text, int depth) {
  if (const int found = nesting(text); found > depth) {
    return badInput("JSON nested {} deep, at most {} are supported", found,
                    depth);
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception &error) {
    return badInput("not valid JSON: {}", error.what());
  }
}

std::string shortJson(const Json &value) {
  constexpr size_t kMost = 60;
  // Long before it is printed: a whole vocabulary would be.
  if (value.is_structured() && value.size() > 8) {
    return fmt::format("{} of {} values",
                       value.is_array() ? "a list" : "an object", value.size());
  }
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kMost ? text.substr(0, kMost - 3) + "..." : text;
}

} // namespace mega
