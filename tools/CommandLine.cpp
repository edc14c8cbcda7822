#include "tools/CommandLine.h"

#include "runtime/core/Files.h"

#include <cctype>
#include <cstdio>

namespace mega {

Status usageStatus(const CLI::App &app, const CLI::ParseError &error, int argc,
                   char **argv) {
  std::string what = error.what();
  if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
    std::string commands;
    for (const CLI::App *command : app.get_subcommands({})) {
      commands += (commands.empty() ? "" : ", ") + command->get_name();
    }
    what = fmt::format("unknown command {} (commands: {})", argv[1], commands);
  } else if (what.size() > 1 && std::isupper(what[0]) &&
             !std::isupper(what[1])) {
    // Not the name of an argument, which is in capitals throughout.
    what[0] = static_cast<char>(std::tolower(what[0]));
  }
  return usageError("{}; see {} --help", what, app.get_name());
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
