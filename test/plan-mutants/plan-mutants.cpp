//===- plan-mutants.cpp - Every spoilt plan is refused --------------------===//
//
//   plan-mutants [--write DIR] PLAN...
//
// Makes all mutants (Mutants.h) of valid plans, and expects of each that it
// differs from its plan, has a name of its own, and that loader or verifier
// refuse it with Code::BadInput and a message. Prints how many there were and
// what refused them. Exit code 1, and their names, if any survives. With
// --write, one mutant of each kind is written to DIR as a plan file.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Verifier.h"
#include "test/plan-mutants/Mutants.h"

#include <cstdio>
#include <map>
#include <set>
#include <unordered_set>

using namespace mega;

namespace {

/// What of the proofs of one stage refuses it, by rule; empty if nothing does.
std::string ruleOfStage(const plan::Plan &plan, VerifierContext &context) {
  const auto entries = [&](auto check) {
    for (const auto *entry : *plan.entry_points()) {
      if (!check(*entry, *entry->stages()->Get(0)).isOk()) {
        return true;
      }
    }
    return false;
  };
  if (entries([&](const auto &e, const auto &s) {
        return verifyOrder(plan, e, s);
      })) {
    return "V9 order";
  }
  for (uint32_t p = 0; p < length(plan.programs()); ++p) {
    auto effects = analyseProgram(plan, p, RunSample());
    if (!effects.isOk()) {
      return "V1-V5 launches and actions";
    }
    context.effects.push_back(std::move(*effects));
  }
  if (!verifyState(context).isOk()) {
    return "V6-V7 state";
  }
  if (!verifySetupCopies(context).isOk()) {
    return "V13 copies";
  }
  for (const auto *entry : *plan.entry_points()) {
    if (!verifyUpdates(context, *entry).isOk()) {
      return "V6, V8 updates";
    }
    if (!verifyStepCopies(context, *entry).isOk()) {
      return "V13 copies";
    }
    if (!verifyLossTerms(context, *entry).isOk()) {
      return "V12 loss";
    }
  }
  if (entries([&](const auto &e, const auto &s) {
        return verifyActions(context, e, s);
      })) {
    return "V10-V11 needs and slots";
  }
  return verifyLattice(plan).isOk() ? "" : "V19 layouts";
}

/// What of verifyPlan refuses a loaded plan, by rule.
std::string ruleOf(const plan::Plan &plan) {
  std::vector<VerifierContext> stages;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    const plan::Plan &stage = stagePlan(plan, s);
    stages.push_back({stage,
                      {},
                      logicalParameters(stage),
                      optimizerRanges(stage),
                      copyRanges(stage)});
    if (std::string rule = ruleOfStage(stage, stages.back()); !rule.empty()) {
      return rule;
    }
  }
  if (!verifyPipeline(stages).isOk()) {
    return "V20 pipeline";
  }
  if (!verifySpreads(stages).isOk()) {
    return "V19 layouts";
  }
  return verifyValues(stages).isOk() ? "no rule" : "V14-V18 values";
}

/// All mutants of the plan, or of each of its stages.
std::vector<Mutant> allMutantsOf(const plan::PlanT &plan) {
  if (plan.stages.empty()) {
    return mutantsOf(plan);
  }
  std::vector<Mutant> all;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    for (Mutant &mutant : mutantsOf(*plan.stages[s])) {
      all.push_back({mutant.kind, fmt::format("stage {}, {}", s, mutant.site),
                     [s, apply = std::move(mutant.apply)](plan::PlanT &whole) {
                       apply(*whole.stages[s]);
                     }});
    }
  }
  return all;
}

struct Census {
  std::map<std::string, int> stages;
  std::map<std::string, int> kinds;
  std::vector<std::string> faults;
  std::set<std::string> written;
  int mutants = 0;
};

bool writeFile(const std::string &path, const std::vector<std::byte> &bytes) {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  if (!file) {
    return false;
  }
  const bool good =
      std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return std::fclose(file) == 0 && good;
}

/// Where it is refused; empty if it is not.
std::string judge(const std::vector<std::byte> &bytes, Status &status) {
  auto loaded = loadPlan(bytes);
  if (!loaded.isOk()) {
    status = std::move(loaded).takeStatus();
    return "loader";
  }
  status = verifyPlan(loaded->root());
  return status.isOk() ? "" : "verifier, " + ruleOf(loaded->root());
}

void spoil(const std::string &path, const LoadedPlan &valid,
           const std::string &directory, Census &census) {
  std::unique_ptr<plan::PlanT> original(valid.root().UnPack());
  const std::vector<std::byte> originalBytes = packPlan(*original);
  std::set<std::vector<std::byte>> seen;
  std::unordered_set<std::string> names;
  for (const Mutant &mutant : allMutantsOf(*original)) {
    const auto fault = [&](std::string_view what) {
      census.faults.push_back(
          fmt::format("{}: {}: {}", path, mutant.name(), what));
    };
    plan::PlanT changed(*original);
    mutant.apply(changed);
    const std::vector<std::byte> bytes = packPlan(changed);
    if (!names.insert(mutant.name()).second) {
      fault("two mutants of this name");
    }
    if (bytes == originalBytes) {
      fault("changes nothing");
    }
    // Two ways to the same change count once.
    if (!seen.insert(bytes).second) {
      continue;
    }
    ++census.mutants;
    ++census.kinds[mutant.kind];
    Status status;
    const std::string stage = judge(bytes, status);
    if (stage.empty()) {
      fault("survives");
      continue;
    }
    if (status.code() != Code::BadInput || status.message().size() < 16) {
      fault("refused without a reason: " + status.message());
    }
    ++census.stages[stage];
    if (!directory.empty() && census.written.insert(mutant.kind).second &&
        !writeFile(directory + "/" + mutant.kind + ".mega", bytes)) {
      fault("cannot be written to " + directory);
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  std::string directory;
  Census census;
  int first = 1;
  if (argc > 2 && std::string_view(argv[1]) == "--write") {
    directory = argv[2];
    first = 3;
  }
  if (first >= argc) {
    std::fprintf(stderr, "usage: plan-mutants [--write DIR] PLAN...\n");
    return 2;
  }
  for (int i = first; i < argc; ++i) {
    const auto plan = loadPlanFile(argv[i]);
    const Status status =
        plan.isOk() ? verifyPlan(plan->root())
                    : Status(plan.status().code(), plan.status().message());
    if (!status.isOk()) {
      std::fprintf(stderr, "%s is not valid itself: %s\n", argv[i],
                   status.message().c_str());
      return 1;
    }
    spoil(argv[i], *plan, directory, census);
  }
  int refused = 0;
  for (const auto &[stage, count] : census.stages) {
    std::printf("%6d refused by %s\n", count, stage.c_str());
    refused += count;
  }
  std::printf("%d mutants of %zu kinds in %d plans: %d refused, %d survive\n",
              census.mutants, census.kinds.size(), argc - first, refused,
              census.mutants - refused);
  for (const std::string &fault : census.faults) {
    std::fprintf(stderr, "%s\n", fault.c_str());
  }
  return census.faults.empty() ? 0 : 1;
}
