//===- RunConfig.h - Options from a TOML file -------------------*- C++ -*-===//
#ifndef MEGA_TOOLS_MEGART_RUNCONFIG_H
#define MEGA_TOOLS_MEGART_RUNCONFIG_H

#include "runtime/plan/Status.h"

#include <CLI/CLI.hpp>

#include <string>

namespace mega {

/// Sets every option of `command` that the file names and the command line did
/// not give: `lr = 3e-3` stands for `--lr 3e-3`. Code::Io if the file cannot be
/// read; Code::Usage for a syntax error, an unknown key or a value the option
/// refuses.
Status applyConfig(CLI::App &command, const std::string &path);

} // namespace mega

#endif // MEGA_TOOLS_MEGART_RUNCONFIG_H
