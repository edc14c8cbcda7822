//===- CommandLine.h - What the tools' mains share --------------*- C++ -*-===//
#ifndef MEGA_TOOLS_COMMANDLINE_H
#define MEGA_TOOLS_COMMANDLINE_H

#include "runtime/plan/Status.h"

#include <CLI/CLI.hpp>

#include <string_view>

namespace mega {

/// CLI11's complaint in our words, as Code::Usage; an unknown command is
/// answered with the list of those there are.
Status usageStatus(const CLI::App &app, const CLI::ParseError &error, int argc,
                   char **argv);

/// Writes to standard output, at once. Code::Io.
Status print(std::string_view text);

/// `TOOL: error: MESSAGE` on standard error unless all is well; the exit code.
int finish(const CLI::App &app, const Status &status);

} // namespace mega

#endif // MEGA_TOOLS_COMMANDLINE_H
