//===- CommandLine.h - What the command lines share -------------*- C++ -*-===//
//
// Numbers of options checked in our words, complaints of the parser turned into
// a Status, the end of a program. For tools made of commands
// (`megart train ...`), on CLI11.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TOOLS_SUPPORT_COMMANDLINE_H
#define MEGA_TOOLS_SUPPORT_COMMANDLINE_H

#include "runtime/plan/Status.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace mega {

/// Accepts whole numbers in [least, most], written in decimal.
CLI::Validator wholeNumber(int64_t least = 0,
                           int64_t most = std::numeric_limits<int64_t>::max());

/// Accepts finite numbers of at least 0 ...
CLI::Validator nonNegative();
/// ... above 0 ...
CLI::Validator positive();
/// ... in [0, 1).
CLI::Validator fraction();

/// An option with one value, called `value` in the help.
template <typename T>
CLI::Option *addValue(CLI::App &command, const char *name, T &variable,
                      const char *value, const std::string &help) {
  return command.add_option(name, variable, help)->option_text(value);
}

/// The same with a default that the help states.
template <typename T>
CLI::Option *addDefault(CLI::App &command, const char *name, T &variable,
                        const char *value, const char *help) {
  return addValue(command, name, variable, value,
                  fmt::format("{} ({})", help, variable));
}

/// What the parser of `app` complains about, as Code::Usage: lower case, with
/// the way to the help.
Status usage(const CLI::App &app, const CLI::ParseError &error, int argc,
             char **argv);

/// Writes to standard output, at once; Code::Io if that fails.
Status print(std::string_view text);

/// Prints the error, if it is one, after the program's name; the exit code.
int finish(const CLI::App &app, const Status &status);

} // namespace mega

#endif // MEGA_TOOLS_SUPPORT_COMMANDLINE_H
