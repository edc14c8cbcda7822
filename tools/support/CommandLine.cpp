#include "tools/support/CommandLine.h"

#include "runtime/core/Files.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace mega {
namespace {

/// The whole of `text` as a number.
template <typename T> std::optional<T> parse(const std::string &text) {
  T value{};
  const char *end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(value)
                                                       : std::nullopt;
}

bool isWholeNumber(const std::string &text) {
  const size_t first = text.starts_with('-') ? 1 : 0;
  return text.size() > first &&
         text.find_first_not_of("0123456789", first) == std::string::npos;
}

/// A validator without a name: nothing of it is seen in the help.
template <typename Check> CLI::Validator validator(Check check) {
  return CLI::Validator(check, "");
}

/// Options are f32: what overflows there is no number either.
template <typename Accept>
CLI::Validator number(const char *wanted, Accept accept) {
  return validator([=](const std::string &text) {
    const auto value = parse<double>(text);
    if (!value) {
      return fmt::format("{} is not a number", text);
    }
    return std::isfinite(static_cast<float>(*value)) && accept(*value)
               ? std::string()
               : fmt::format("{} is not {}", text, wanted);
  });
}

std::string commandNames(const CLI::App &app) {
  std::string names;
  for (const CLI::App *command : app.get_subcommands({})) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

std::string lowerCase(std::string text) {
  if (text.size() > 1 && std::isupper(text[0]) && std::islower(text[1])) {
    text[0] = static_cast<char>(std::tolower(text[0]));
  }
  return text;
}

std::string complaint(const CLI::App &command, const CLI::ParseError &error) {
  const std::string what = error.what();
  // Named before anything that is missing.
  if (const auto rest = command.remaining(); !rest.empty()) {
    return fmt::format("{} {}",
                       rest[0].starts_with('-') ? "unknown option"
                                                : "unexpected argument",
                       rest[0]);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch *>(&error)) {
    const std::string name = what.substr(0, what.find(':'));
    return what.find("At Most") != std::string::npos
               ? fmt::format("{} is given more than once", name)
               : fmt::format("{} needs a value", name);
  }
  return lowerCase(what);
}

} // namespace

CLI::Validator wholeNumber(int64_t least, int64_t most) {
  return validator([=](const std::string &text) {
    if (!isWholeNumber(text)) {
      return fmt::format("{} is not a whole number", text);
    }
    const auto value = parse<int64_t>(text);
    if (text.starts_with('-') ? !value || *value < least
                              : value && *value < least) {
      return fmt::format("{} is less than {}", text, least);
    }
    if (!value || *value > most) {
      return fmt::format("{} is more than {}", text, most);
    }
    return std::string();
  });
}

CLI::Validator nonNegative() {
  return number("0 or more", [](double value) { return value >= 0; });
}

CLI::Validator positive() {
  return number("above 0", [](double value) { return value > 0; });
}

CLI::Validator fraction() {
  return number("0 or more and below 1",
                [](double value) { return value >= 0 && value < 1; });
}

Status usage(const CLI::App &app, const CLI::ParseError &error, int argc,
             char **argv) {
  const std::vector<CLI::App *> commands = app.get_subcommands();
  if (!commands.empty()) {
    return usageError("{}; see {} {} --help", complaint(*commands[0], error),
                      app.get_name(), commands[0]->get_name());
  }
  if (argc > 1 && argv[1][0] != '-') {
    return usageError("unknown command {} (commands: {}); see {} --help",
                      argv[1], commandNames(app), app.get_name());
  }
  if (argc > 1) {
    return usageError("{}; see {} --help", complaint(app, error),
                      app.get_name());
  }
  return usageError("no command (commands: {}); see {} --help",
                    commandNames(app), app.get_name());
}

Status print(std::string_view text) {
  const bool done =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0;
  return done ? Status::ok() : osError("write", "standard output");
}

int finish(const CLI::App &app, const Status &status) {
  if (!status.isOk()) {
    fmt::print(stderr, "{}: error: {}\n", app.get_name(), status.message());
  }
  return static_cast<int>(status.code());
}

} // namespace mega
