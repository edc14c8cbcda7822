//===- Verifier.cpp - What a plan computes --------------------------------===//
#include "runtime/plan/Verifier.h"

#include <algorithm>

namespace mega {

std::vector<uint32_t> programsOf(const plan::EntryPoint &entry) {
  std::vector<uint32_t> programs;
  std::vector<bool> seen;
  for (uint32_t s = 0; s < length(entry.stages()); ++s) {
    for (const plan::Action &action :
         elements(entry.stages()->Get(s)->actions())) {
      if (action.program() >= seen.size()) {
        seen.resize(action.program() + 1);
      }
      if (!seen[action.program()]) {
        seen[action.program()] = true;
        programs.push_back(action.program());
      }
    }
  }
  return programs;
}

bool isTraining(const VerifierContext &context, const plan::EntryPoint &entry) {
  const std::vector<uint32_t> programs = programsOf(entry);
  return std::any_of(programs.begin(), programs.end(), [&](uint32_t p) {
    return context.plan.programs()->Get(p)->kind() ==
               plan::ActionKind::Backward ||
           std::any_of(context.ranges.begin(), context.ranges.end(),
                       [p](const OptimizerRange &range) {
                         return range.site.program == p;
                       });
  });
}

namespace {

/// Runs `check(stage)` for every stage of every entry point.
template <typename Check>
Status forEachStage(const plan::Plan &plan, Check check) {
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(e);
    for (uint32_t s = 0; s < length(entry.stages()); ++s) {
      MEGA_RETURN_IF_ERROR_CONTEXT(check(entry, *entry.stages()->Get(s)), "{}",
                                   text(entry.name()));
    }
  }
  return Status::ok();
}

/// The proofs of one stage by itself.
StatusOr<VerifierContext> verifyStage(const plan::Plan &plan) {
  // First, because it bounds micro-batches by the number of actions.
  MEGA_RETURN_IF_ERROR(
      forEachStage(plan, [&](const auto &entry, const auto &stage) {
        return verifyOrder(plan, entry, stage);
      }));
  RunSample sample(plan);
  VerifierContext context{plan,
                          {},
                          logicalParameters(plan, sample),
                          optimizerRanges(plan),
                          copyRanges(plan),
                          std::move(sample)};
  for (uint32_t p = 0; p < length(plan.programs()); ++p) {
    MEGA_ASSIGN_OR_RETURN(ProgramEffects effects,
                          analyseProgram(plan, p, context.sample));
    context.effects.push_back(std::move(effects));
  }
  MEGA_RETURN_IF_ERROR(verifyState(context));
  MEGA_RETURN_IF_ERROR(verifySetupCopies(context));
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(e);
    MEGA_RETURN_IF_ERROR_CONTEXT(verifyUpdates(context, entry), "{}",
                                 text(entry.name()));
    MEGA_RETURN_IF_ERROR_CONTEXT(verifyStepCopies(context, entry), "{}",
                                 text(entry.name()));
    MEGA_RETURN_IF_ERROR_CONTEXT(verifyLossTerms(context, entry), "{}",
                                 text(entry.name()));
  }
  MEGA_RETURN_IF_ERROR(
      forEachStage(plan, [&](const auto &entry, const auto &stage) {
        return verifyActions(context, entry, stage);
      }));
  MEGA_RETURN_IF_ERROR(verifyLattice(plan));
  return context;
}

} // namespace

Status verifyPlan(const plan::Plan &plan) {
  std::vector<VerifierContext> stages;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    auto stage = verifyStage(stagePlan(plan, s));
    if (!stage.isOk()) {
      return plan.stages() ? std::move(stage).takeStatus().withContext(
                                 fmt::format("stage {}", s))
                           : std::move(stage).takeStatus();
    }
    stages.push_back(std::move(*stage));
  }
  MEGA_RETURN_IF_ERROR(verifyPipeline(stages));
  MEGA_RETURN_IF_ERROR(verifySpreads(stages));
  return verifyValues(stages);
}

} // namespace mega
