//===- compile.cpp - How the cost of compiling grows ----------------------===//
//
// Runs megac on a model while one of stages, micro-batches, layers and ranks
// grows, and prints what it takes: instructions in user space, processor time,
// peak memory, bytes and actions of the plan. Each is followed by its ratio to
// the first row, beside that of what grows, so one sees what is flat and what
// is linear. Last come the 3,072 ranks that have their own limits.
//
//   bench-compile MEGAC MODEL [--sweep NAME] [--count COUNTER]
//   bench-compile --prove PLAN
//
// The layers of MODEL are the number after `times` in its text, which has to be
// there once. Compiling has to be flat in depth: the exit code is 1 if 16 times
// the layers take more than a fifth more instructions (layers have names, which
// are looked at one by one), or if a limit is broken. Of
// depth, what loading and proving the plan takes by itself is measured too, by
// this program with --prove, which does nothing else; the rest is what the
// phases take, and reading their libraries.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Verifier.h"
#include "tools/support/CommandLine.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "bench/MeasuredCommand.h"

using namespace mega;

namespace {

/// What megac is asked for.
struct Setup {
  int64_t layers = 128;
  int64_t tp = 8;
  int64_t dp = 1;
  int64_t pp = 64;
  int64_t vpp = 1;
  int64_t microBatches = 512;
  bool zeroBubble = false;

  int64_t ranks() const { return tp * dp * pp; }
};

struct Row {
  std::string label;
  int64_t value; // what grows
  Setup setup;
};

struct Sweep {
  std::string name, title, column;
  std::vector<Row> rows;
  /// Whether the proof is measured by itself.
  bool proof = false;
  /// Whether megac writes its page too.
  bool report = false;
};

struct Cost {
  CommandCost command;
  std::optional<CommandCost> proof;
  int64_t planBytes = 0;
  int64_t actions = 0;
};

/// Removed with all that is in it.
class TemporaryFolder {
public:
  static StatusOr<TemporaryFolder> create() {
    std::string path =
        std::filesystem::temp_directory_path() / "bench-compile-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return ioError("cannot make {}", path);
    }
    return TemporaryFolder(path);
  }
  TemporaryFolder(TemporaryFolder &&other) noexcept { path.swap(other.path); }
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  ~TemporaryFolder() {
    if (!path.empty()) {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  }
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }

private:
  explicit TemporaryFolder(std::string path) : path(std::move(path)) {}
  std::string path;
};

int64_t actionsOf(const plan::Plan &plan) {
  int64_t actions = 0;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    for (const plan::EntryPoint *entry : *stagePlan(plan, s).entry_points()) {
      for (const plan::Stage *stage : *entry->stages()) {
        actions += length(stage->actions());
      }
    }
  }
  return actions;
}

/// megac, and a model whose depth can be set.
class Compiler {
public:
  static StatusOr<Compiler> create(std::string megac, const std::string &model,
                                   InstructionCounter counter) {
    std::ifstream file(model);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) {
      return ioError("cannot read {}", model);
    }
    MEGA_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::create());
    Compiler compiler(std::move(megac), text.str(), counter, std::move(folder));
    const std::string &whole = compiler.text;
    const auto found = std::distance(
        std::sregex_iterator(whole.begin(), whole.end(), compiler.times), {});
    if (found != 1) {
      return badInput("{}: `times N` is there {} times, expected 1", model,
                      found);
    }
    return compiler;
  }

  StatusOr<Cost> compile(const Setup &setup, const Sweep &sweep) const {
    const std::string model = folder / "model.mlir";
    const std::string plan = folder / "model.mega";
    std::ofstream(model) << std::regex_replace(
        text, times, fmt::format("times {}", setup.layers));
    std::vector<std::string> command = {
        megac,
        model,
        "-o",
        plan,
        "--micro-batch-size",
        "1",
        "--global-batch-size",
        std::to_string(setup.microBatches * setup.dp),
        "--tp",
        std::to_string(setup.tp),
        "--dp",
        std::to_string(setup.dp),
        "--pp",
        std::to_string(setup.pp),
        "--vpp",
        std::to_string(setup.vpp)};
    if (setup.zeroBubble) {
      command.insert(command.end(), {"--schedule", "zero-bubble"});
    }
    if (sweep.report) {
      command.push_back("--report=" + (folder / "model.html"));
    }
    Cost cost;
    MEGA_ASSIGN_OR_RETURN(cost.command, measure(command, counter));
    MEGA_ASSIGN_OR_RETURN(const LoadedPlan loaded, loadPlanFile(plan));
    cost.planBytes = std::ssize(loaded.bytes());
    cost.actions = actionsOf(loaded.root());
    if (sweep.proof) {
      MEGA_ASSIGN_OR_RETURN(
          cost.proof, measure({std::filesystem::read_symlink("/proc/self/exe"),
                               "--prove", plan},
                              counter));
    }
    return cost;
  }

private:
  Compiler(std::string megac, std::string text, InstructionCounter counter,
           TemporaryFolder folder)
      : megac(std::move(megac)), text(std::move(text)), counter(counter),
        folder(std::move(folder)) {}

  std::string megac, text;
  InstructionCounter counter;
  TemporaryFolder folder;
  std::regex times{R"(\btimes \d+)"};
};

/// `first`, `factor` times that, ... up to `last`.
std::vector<int64_t> powers(int64_t first, int64_t last, int64_t factor) {
  std::vector<int64_t> values;
  for (int64_t value = first; value <= last; value *= factor) {
    values.push_back(value);
  }
  return values;
}

Sweep sweepOf(std::string name, std::string title, std::string column,
              const std::vector<int64_t> &values, Setup setup,
              int64_t Setup::*grows) {
  Sweep sweep{std::move(name), std::move(title), std::move(column), {}};
  for (const int64_t value : values) {
    setup.*grows = value;
    sweep.rows.push_back({std::to_string(value), value, setup});
  }
  return sweep;
}

std::vector<Sweep> allSweeps() {
  std::vector<Sweep> sweeps;
  sweeps.push_back(sweepOf("pp", "stages: 128 layers, tp 8, 256 micro-batches",
                           "pp", powers(1, 64, 2), {.microBatches = 256},
                           &Setup::pp));
  sweeps.push_back(
      sweepOf("micro-batches", "micro-batches: 128 layers, tp 8, pp 64",
              "micro-batches", powers(64, 4096, 4), {}, &Setup::microBatches));
  sweeps.push_back(sweepOf("depth", "depth: tp 8, pp 8, 64 micro-batches",
                           "layers", powers(64, 1024, 2),
                           {.pp = 8, .microBatches = 64}, &Setup::layers));
  sweeps.back().proof = true;
  Sweep ranks{"ranks",
              "ranks: 128 layers, pp 8, 64 micro-batches of each replica",
              "ranks (tp x dp)",
              {}};
  for (const auto &[tp, dp] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {2, 1}, {4, 1}, {8, 1}, {8, 8}, {8, 64}, {8, 512}}) {
    const Setup setup{.tp = tp, .dp = dp, .pp = 8, .microBatches = 64};
    ranks.rows.push_back({fmt::format("{} ({}x{})", setup.ranks(), tp, dp),
                          setup.ranks(), setup});
  }
  sweeps.push_back(std::move(ranks));
  Sweep target{"target",
               "3,072 ranks: tp 8, pp 64, dp 6, 512 micro-batches of each "
               "replica, with the report's page",
               "vpp",
               {}};
  target.report = true;
  for (const bool zeroBubble : {false, true}) {
    for (const int64_t vpp : {1, 2}) {
      target.rows.push_back(
          {fmt::format("{}{}", zeroBubble ? "zero-bubble " : "", vpp), vpp,
           Setup{.dp = 6, .vpp = vpp, .zeroBubble = zeroBubble}});
    }
  }
  sweeps.push_back(std::move(target));
  return sweeps;
}

template <typename T> std::string ratio(T value, T first) {
  return fmt::format("{:.2f}x",
                     static_cast<double>(value) / static_cast<double>(first));
}

void printHeader(const Sweep &sweep) {
  fmt::print("{}\n{:>15} {:>5} {:>12} {:>7} {:>7} {:>7} {:>6} {:>6} {:>9} "
             "{:>7} {:>8} {:>5}\n",
             sweep.title, sweep.column, "", "instructions", "", "seconds", "",
             "MiB", "", "bytes", "", "actions", "each");
}

void printRow(const Row &row, const Cost &cost, const Row &firstRow,
              const Cost &first) {
  const CommandCost &command = cost.command;
  const auto &count = command.instructions;
  fmt::print("{:>15} {:>4}x {:>12} {:>7} {:>7.3f} {:>7} {:>6.1f} {:>6} {:>9} "
             "{:>7} {:>8} {:>5.1f}\n",
             row.label, row.value / firstRow.value,
             count ? std::to_string(*count) : "null",
             count ? ratio(*count, *first.command.instructions) : "-",
             command.processorSeconds,
             ratio(command.processorSeconds, first.command.processorSeconds),
             static_cast<double>(command.peakBytes) / (1 << 20),
             ratio(command.peakBytes, first.command.peakBytes), cost.planBytes,
             ratio(cost.planBytes, first.planBytes), cost.actions,
             static_cast<double>(cost.planBytes) /
                 static_cast<double>(cost.actions));
  std::fflush(stdout);
}

StatusOr<std::vector<Cost>> runSweep(const Compiler &compiler,
                                     const Sweep &sweep) {
  printHeader(sweep);
  std::vector<Cost> costs;
  for (const Row &row : sweep.rows) {
    MEGA_ASSIGN_OR_RETURN(Cost cost, compiler.compile(row.setup, sweep));
    costs.push_back(cost);
    printRow(row, cost, sweep.rows.front(), costs.front());
  }
  return costs;
}

std::string_view verdict(bool holds) { return holds ? "holds" : "BROKEN"; }

/// Flat in depth, if instructions were counted.
bool judgeDepth(const Sweep &sweep, const std::vector<Cost> &costs) {
  constexpr double kFlat = 1.2;
  const Cost &least = costs.front();
  const Cost &most = costs.back();
  if (!least.command.instructions || !most.command.instructions) {
    fmt::print("instructions are not counted here: nothing is said of depth\n");
    return true;
  }
  const int64_t layers = sweep.rows.back().value - sweep.rows.front().value;
  const auto growth = [&](std::string_view what, uint64_t before,
                          uint64_t after) {
    const double times =
        static_cast<double>(after) / static_cast<double>(before);
    fmt::print("{:>6} {:>15} {:>15} {:>8.2f}x {:>10.0f} for each layer\n", what,
               before, after, times,
               (static_cast<double>(after) - static_cast<double>(before)) /
                   static_cast<double>(layers));
    return times;
  };
  const uint64_t leastProof = *least.proof->instructions;
  const uint64_t mostProof = *most.proof->instructions;
  fmt::print("instructions of {} and {} layers\n", sweep.rows.front().value,
             sweep.rows.back().value);
  growth("rest", *least.command.instructions - leastProof,
         *most.command.instructions - mostProof);
  growth("proof", leastProof, mostProof);
  const bool flat = growth("all", *least.command.instructions,
                           *most.command.instructions) <= kFlat;
  fmt::print("flat in depth, at most {:.2f}x: {}\n", kFlat, verdict(flat));
  return flat;
}

bool judgeTarget(const std::vector<Cost> &costs) {
  bool all = true;
  for (const Cost &cost : costs) {
    const int64_t most = 16 * cost.actions + 1'000'000;
    const bool holds = cost.command.processorSeconds < 5 &&
                       cost.command.peakBytes < 1'000'000'000 &&
                       cost.planBytes <= most;
    fmt::print("{:.2f} of 5 seconds, {} of 1,000 MB, {} of {} bytes (16 of "
               "each action, 1 MB): {}\n",
               cost.command.processorSeconds,
               cost.command.peakBytes / 1'000'000, cost.planBytes, most,
               verdict(holds));
    all = all && holds;
  }
  return all;
}

Status run(int argc, char **argv, CLI::App &app) {
  std::string megac, model, only, proved;
  std::string count = "auto";
  app.add_option("MEGAC", megac, "the compiler");
  app.add_option("MODEL", model, "its model");
  app.add_option("--prove", proved, "load and prove this plan, nothing else")
      ->option_text("PLAN");
  app.add_option("--sweep", only, "one of them (all)")
      ->option_text("NAME")
      ->check(
          CLI::IsMember({"pp", "micro-batches", "depth", "ranks", "target"}));
  app.add_option("--count", count,
                 "who counts instructions: hardware, valgrind, none (auto: "
                 "the first that is there)")
      ->option_text("COUNTER")
      ->check(CLI::IsMember({"auto", "hardware", "valgrind", "none"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &) {
    return print(app.help());
  } catch (const CLI::ParseError &error) {
    return usageError("{}; see bench-compile --help", error.what());
  }
  if (!proved.empty()) {
    MEGA_ASSIGN_OR_RETURN(const LoadedPlan plan, loadPlanFile(proved));
    return verifyPlan(plan.root());
  }
  if (model.empty()) {
    return usageError("MEGAC and MODEL are missing; see bench-compile --help");
  }
  const InstructionCounter counter =
      count == "auto"       ? findInstructionCounter()
      : count == "hardware" ? InstructionCounter::Hardware
      : count == "valgrind" ? InstructionCounter::Valgrind
                            : InstructionCounter::None;
  fmt::print("instructions in user space: {}\n",
             counter == InstructionCounter::Hardware   ? "the processor's count"
             : counter == InstructionCounter::Valgrind ? "valgrind's count"
                                                       : "not counted");
  MEGA_ASSIGN_OR_RETURN(const Compiler compiler,
                        Compiler::create(megac, model, counter));
  bool good = true;
  for (const Sweep &sweep : allSweeps()) {
    if (!only.empty() && sweep.name != only) {
      continue;
    }
    fmt::print("\n");
    MEGA_ASSIGN_OR_RETURN(const std::vector<Cost> costs,
                          runSweep(compiler, sweep));
    if (sweep.name == "depth") {
      good = judgeDepth(sweep, costs) && good;
    } else if (sweep.name == "target") {
      good = judgeTarget(costs) && good;
    }
  }
  std::fflush(stdout);
  return good ? Status::ok() : makeError(Code::Failed, "a limit is broken");
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Measures how the cost of compiling a model grows.",
               "bench-compile");
  return finish(app, run(argc, argv, app));
}
