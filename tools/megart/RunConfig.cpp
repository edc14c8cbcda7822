#include "tools/megart/RunConfig.h"

#include "runtime/core/Files.h"

#include <toml++/toml.h>

#include <sstream>

namespace mega {
namespace {

/// The value as one would write it on the command line.
std::string commandLineText(const toml::node &node) {
  if (const auto *text = node.as_string()) {
    return text->get();
  }
  std::ostringstream out;
  node.visit([&](const auto &value) { out << value; });
  return out.str();
}

Status applyKey(CLI::App &command, const std::string &path,
                std::string_view key, const toml::node &node) {
  CLI::Option *option =
      key == "config" || key == "help"
          ? nullptr
          : command.get_option_no_throw(fmt::format("--{}", key));
  if (option == nullptr) {
    return usageError("{}:{}: no option --{}", path, node.source().begin.line,
                      key);
  }
  if (!option->empty()) {
    return Status::ok();
  }
  if (const toml::array *values = node.as_array()) {
    for (const toml::node &value : *values) {
      option->add_result(commandLineText(value));
    }
  } else {
    option->add_result(commandLineText(node));
  }
  try {
    option->run_callback();
  } catch (const CLI::Error &error) {
    return usageError("{}:{}: {}", path, node.source().begin.line,
                      error.what());
  }
  return Status::ok();
}

} // namespace

Status applyConfig(CLI::App &command, const std::string &path) {
  MEGA_ASSIGN_OR_RETURN(const std::string text, readWholeFile(path));
  try {
    const toml::table table = toml::parse(text, path);
    for (const auto &[key, node] : table) {
      MEGA_RETURN_IF_ERROR(applyKey(command, path, key.str(), node));
    }
  } catch (const toml::parse_error &error) {
    return usageError("{}:{}: {}", path, error.source().begin.line,
                      error.description());
  }
  return Status::ok();
}

} // namespace mega
