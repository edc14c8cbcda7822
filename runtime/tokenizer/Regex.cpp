#include "runtime/tokenizer/Regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cctype>

namespace mega {

namespace {

constexpr size_t kMostPatternBytes = 16384;
constexpr int kMostGroups = 64;

/// Unicode's word characters, as inside a class.
constexpr std::string_view kWord =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}";

class Translator {
public:
  explicit Translator(std::string_view in) : in(in) {}

  StatusOr<std::string> run() {
    if (in.size() > kMostPatternBytes) {
      return badInput("a pattern of {} bytes, at most {} are supported",
                      in.size(), kMostPatternBytes);
    }
    while (at < in.size()) {
      MEGA_RETURN_IF_ERROR(next());
    }
    return std::move(out);
  }

private:
  char peek(size_t ahead = 0) const {
    return at + ahead < in.size() ? in[at + ahead] : '\0';
  }
  void copy(size_t count = 1) {
    out += in.substr(at, count);
    at += count;
  }
  template <typename... Args> Status refuse(std::string_view what) const {
    return badInput("{} at byte {} of the pattern {} is not supported", what,
                    at, in);
  }

  Status next() {
    switch (peek()) {
    case '\\':
      return escape();
    case '[':
      return inClass ? refuse("a class inside a class") : openClass();
    case ']':
      inClass = false;
      copy();
      return Status::ok();
    case '&':
      if (inClass && peek(1) == '&') {
        return refuse("the intersection &&");
      }
      break;
    case '(':
      return inClass ? copied() : group();
    case '^':
    case '$':
      // Oniguruma's match at every line.
      if (!inClass) {
        return refuse(peek() == '^' ? "the anchor ^" : "the anchor $");
      }
      break;
    case '{':
      if (!inClass && peek(1) == ',') {
        return refuse("a repetition without a least count");
      }
      break;
    case '}':
      if (!inClass && peek(1) == '+') {
        return refuse("+ after a counted repetition");
      }
      break;
    default:
      break;
    }
    return copied();
  }

  Status copied() {
    copy();
    return Status::ok();
  }

  Status openClass() {
    copy();
    if (peek() == '^') {
      copy();
    }
    if (peek() == ']') {
      return refuse("] as the first member of a class");
    }
    inClass = true;
    return Status::ok();
  }

  Status group() {
    if (peek(1) != '?') {
      if (peek(1) == '*') {
        return refuse("a verb (*");
      }
      return copied();
    }
    if (++groups > kMostGroups) {
      return refuse("more than 64 groups");
    }
    for (const std::string_view known :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}) {
      if (in.substr(at).starts_with(known)) {
        copy(known.size());
        return Status::ok();
      }
    }
    return refuse("a group other than (?: (?= (?! (?<= (?<! (?> (?i:");
  }

  Status escape() {
    const char letter = peek(1);
    switch (letter) {
    case 's':
    case 'S':
      out += letter == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
      at += 2;
      return Status::ok();
    case 'w':
      out += inClass ? std::string(kWord) : fmt::format("[{}]", kWord);
      at += 2;
      return Status::ok();
    case 'W':
      if (inClass) {
        return refuse("\\W inside a class");
      }
      out += fmt::format("[^{}]", kWord);
      at += 2;
      return Status::ok();
    case 'd':
    case 'D':
    case 't':
    case 'n':
    case 'r':
    case 'f':
      copy(2);
      return Status::ok();
    case 'p':
    case 'P':
      return property();
    case 'u':
    case 'x':
      return character();
    case '\0':
      return refuse("a lone \\");
    default:
      if (std::isalnum(static_cast<unsigned char>(letter)) ||
          static_cast<unsigned char>(letter) >= 128) {
        return refuse(fmt::format("the escape \\{}", letter));
      }
      copy(2);
      return Status::ok();
    }
  }

  /// \p{L}, \p{^Lu}, \p{Han}: categories are the same, names are scripts.
  Status property() {
    const size_t close = in.find('}', at);
    if (peek(2) != '{' || close == std::string_view::npos) {
      return refuse("a property without braces");
    }
    std::string_view name = in.substr(at + 3, close - at - 3);
    const bool negated = name.starts_with('^');
    name.remove_prefix(negated ? 1 : 0);
    if (name.empty() || !std::ranges::all_of(name, [](unsigned char c) {
          return std::isalpha(c) || c == '_';
        })) {
      return refuse("this property");
    }
    out += fmt::format("\\{}{{{}{}{}}}", peek(1), negated ? "^" : "",
                       name.size() > 2 ? "sc:" : "", name);
    at = close + 1;
    return Status::ok();
  }

  /// \uHHHH, \xHH, \x{H...}.
  Status character() {
    size_t first = at + 2;
    size_t count = peek(1) == 'u' ? 4 : 2;
    size_t end = first + count;
    if (peek(1) == 'x' && peek(2) == '{') {
      first = at + 3;
      end = in.find('}', first);
      if (end == std::string_view::npos) {
        return refuse("\\x{ without }");
      }
      count = end - first;
      ++end;
    }
    const std::string_view digits =
        first <= in.size() ? in.substr(first, count) : std::string_view();
    if (digits.size() != count || count == 0 || count > 6 ||
        !std::ranges::all_of(
            digits, [](unsigned char c) { return std::isxdigit(c); })) {
      return refuse("a character that is not written in hexadecimal");
    }
    out += fmt::format("\\x{{{}}}", digits);
    at = end;
    return Status::ok();
  }

  std::string_view in;
  std::string out;
  size_t at = 0;
  int groups = 0;
  bool inClass = false;
};

std::string errorText(int code) {
  PCRE2_UCHAR text[128];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char *>(text);
}

/// What a thread needs to match.
struct Matcher {
  Matcher()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(32 << 10, 1 << 20, nullptr)) {
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_depth_limit(context, 100'000);
    pcre2_set_heap_limit(context, 64 << 10);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Matcher() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  Matcher(const Matcher &) = delete;
  Matcher &operator=(const Matcher &) = delete;

  int match(const pcre2_code *code, std::string_view text, size_t from) {
    const auto *subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const int found = pcre2_match(code, subject, text.size(), from,
                                  PCRE2_NO_UTF_CHECK, data, context);
    if (found != PCRE2_ERROR_JIT_STACKLIMIT) {
      return found;
    }
    // The interpreter finds the same, on the heap.
    return pcre2_match(code, subject, text.size(), from,
                       PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, context);
  }

  pcre2_match_data *data;
  pcre2_match_context *context;
  pcre2_jit_stack *stack;
};

} // namespace

StatusOr<std::string> translatePattern(std::string_view oniguruma) {
  return Translator(oniguruma).run();
}

std::string quotePattern(std::string_view text) {
  std::string quoted;
  for (char c : text) {
    if (std::ispunct(static_cast<unsigned char>(c)) != 0) {
      quoted += '\\';
    }
    quoted += c;
  }
  return quoted;
}

void Regex::Free::operator()(void *code) const {
  pcre2_code_free(static_cast<pcre2_code *>(code));
}

StatusOr<Regex> Regex::compile(std::string_view oniguruma) {
  MEGA_ASSIGN_OR_RETURN(const std::string pattern, translatePattern(oniguruma));
  struct Context {
    pcre2_compile_context *context = pcre2_compile_context_create(nullptr);
    ~Context() { pcre2_compile_context_free(context); }
  } compile;
  // What `.` does not match.
  pcre2_set_newline(compile.context, PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(compile.context, kMostGroups);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Regex regex;
  regex.pattern_ = oniguruma;
  regex.code.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset,
      compile.context));
  if (!regex.code) {
    return badInput("the pattern {} does not compile: {}", oniguruma,
                    errorText(error));
  }
  uint32_t matchesEmpty = 0;
  pcre2_pattern_info(static_cast<pcre2_code *>(regex.code.get()),
                     PCRE2_INFO_MATCHEMPTY, &matchesEmpty);
  if (matchesEmpty != 0) {
    return badInput("the pattern {} may match no text at all, which is not "
                    "supported",
                    oniguruma);
  }
  // Without it (no permission to map executable memory) the interpreter runs.
  pcre2_jit_compile(static_cast<pcre2_code *>(regex.code.get()),
                    PCRE2_JIT_COMPLETE);
  return regex;
}

Status
Regex::forEachMatch(std::string_view text,
                    const std::function<void(size_t, size_t)> &each) const {
  thread_local Matcher matcher;
  const auto *compiled = static_cast<const pcre2_code *>(code.get());
  size_t from = 0;
  while (from < text.size()) {
    const int found = matcher.match(compiled, text, from);
    if (found == PCRE2_ERROR_NOMATCH) {
      return Status::ok();
    }
    if (found < 0) {
      return badInput("the pattern {} gives up at byte {} of {}: {}", pattern_,
                      from, text.size(), errorText(found));
    }
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(matcher.data);
    each(bounds[0], bounds[1]);
    from = bounds[1];
  }
  return Status::ok();
}

} // namespace mega
