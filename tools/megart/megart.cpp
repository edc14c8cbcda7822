// megart: executes plans. A thin main: one function per command, each with its
// work in runtime/.
#include "runtime/core/Files.h"
#include "runtime/plan/Inspect.h"
#include "runtime/plan/Verifier.h"

#include <CLI/CLI.hpp>

#include <cctype>
#include <cstdio>

using namespace mega;

namespace {

constexpr const char *kFooter =
    "Examples:\n"
    "  megart inspect gpt2.mega\n"
    "  megart inspect gpt2.mega --json | python3 -m json.tool\n"
    "\n"
    "Exit codes: 0 ok, 1 the run failed, 2 wrong usage, 65 bad plan or data, "
    "69 a device\nor memory is unavailable, 74 input/output error\n";

Status print(std::string_view text) {
  const bool done =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
      std::fflush(stdout) == 0;
  return done ? Status::ok() : osError("write", "standard output");
}

Status inspect(const std::string &path, bool json) {
  MEGA_ASSIGN_OR_RETURN(const LoadedPlan plan, loadPlanFile(path));
  MEGA_RETURN_IF_ERROR(print(json ? inspectJson(plan) : inspectText(plan)));
  // Printed first: a plan that computes nonsense is one to look at.
  MEGA_RETURN_IF_ERROR_CONTEXT(verifyPlan(plan.root()), "{}", path);
  return Status::ok();
}

/// CLI11's complaint in our words.
Status usage(const CLI::App &app, const CLI::ParseError &error, int argc,
             char **argv) {
  std::string what = error.what();
  if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
    std::string commands;
    for (const CLI::App *command : app.get_subcommands({})) {
      commands += (commands.empty() ? "" : ", ") + command->get_name();
    }
    what = fmt::format("unknown command {} (commands: {})", argv[1], commands);
  } else if (what.size() > 1 && std::isupper(what[0]) &&
             std::islower(what[1])) {
    what[0] = static_cast<char>(std::tolower(what[0]));
  }
  return usageError("{}; see megart --help", what);
}

int report(const Status &status) {
  if (!status.isOk()) {
    fmt::print(stderr, "megart: error: {}\n", status.message());
  }
  return static_cast<int>(status.code());
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Executes plans that megac compiled.", "megart");
  app.set_version_flag("--version", "megart " MEGA_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);

  std::string path;
  bool json = false;
  CLI::App *inspectCommand =
      app.add_subcommand("inspect", "Check a plan and print what is in it");
  inspectCommand->add_option("PLAN", path, "Plan file")->required();
  inspectCommand->add_flag("--json", json, "Print JSON");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) {
    // --help, --version.
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    return report(usage(app, error, argc, argv));
  }
  return report(inspect(path, json));
}
