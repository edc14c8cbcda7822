//===- VerifyTies.cpp - Parameters that two stages share ------------------===//
//
// Of a parameter that the first and the last stage both have, each computes
// part of the gradient (V17: together they are the whole). V20: they add these
// parts up once, element by element, of these parameters and of no others.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/StageGroup.h"
#include "runtime/plan/StepExecution.h"
#include "runtime/plan/Verifier.h"

#include <map>
#include <set>
#include <tuple>

namespace mega {
namespace {

/// A gradient that a stage adds to another's: number of the sum, place in it.
using Summed = std::map<std::string, std::pair<size_t, int64_t>>;

/// Adds the gradients in `box`, an operand of a sum.
Status addGradients(const VerifierContext &context, const Touch &touch,
                    size_t number, Summed &summed) {
  for (const LogicalParameter &parameter : context.parameters) {
    const Box gradient =
        Box::interval(parameter.gradient.offset,
                      parameter.gradient.offset +
                          parameter.elements * byteSize(DataType::F32));
    if (parameter.gradient.region != touch.space.region ||
        !overlap(gradient, touch.box)) {
      continue;
    }
    if (gradient.begin < touch.box.begin || gradient.end() > touch.box.end() ||
        !summed
             .emplace(parameter.name,
                      std::pair(number, gradient.begin - touch.box.begin))
             .second) {
      return badInput("{} sums a part of the gradient of parameter {}, or sums "
                      "it twice",
                      describe(context.plan, touch.site), parameter.name);
    }
  }
  return Status::ok();
}

StatusOr<Summed> summedOf(const VerifierContext &context,
                          const plan::EntryPoint &entry) {
  Summed summed;
  size_t number = 0;
  for (const uint32_t p : programsOf(entry)) {
    const StageTransfer transfer = transferOf(context.plan, p);
    if (transfer.kernel != Kernel::SumStages) {
      continue;
    }
    for (const CallEffects &call : context.effects[p].calls) {
      for (const Touch &touch : call.reads) {
        Summed found;
        MEGA_RETURN_IF_ERROR(addGradients(context, touch, number, found));
        ++number;
        if (!found.empty() &&
            transfer.group != static_cast<int64_t>(StageGroup::Tie)) {
          return badInput("{} sums the gradient of parameter {} over all "
                          "stages, expected the first and the last",
                          describe(context.plan, touch.site),
                          found.begin()->first);
        }
        for (const auto &[name, place] : found) {
          if (!summed.emplace(name, place).second) {
            return badInput("{} sums the gradient of parameter {} a second "
                            "time",
                            describe(context.plan, touch.site), name);
          }
        }
      }
    }
  }
  return summed;
}

} // namespace

Status verifyTies(const std::vector<VerifierContext> &stages, uint32_t e) {
  std::vector<Summed> summed;
  std::vector<const plan::Plan *> trained;
  for (size_t s = 0; s < stages.size(); ++s) {
    const plan::EntryPoint &entry = *stages[s].plan.entry_points()->Get(e);
    MEGA_ASSIGN_OR_RETURN(Summed own, summedOf(stages[s], entry));
    summed.push_back(std::move(own));
    trained.push_back(isTraining(stages[s], entry) ? &stages[s].plan : nullptr);
  }
  if (summed.front() != summed.back()) {
    return badInput("the first and the last stage sum other gradients, or in "
                    "another order");
  }
  const auto shared = repeatedNames(trained);
  const std::set<size_t> ends = {0, stages.size() - 1};
  for (const auto &[name, on] : shared) {
    if (on != ends) {
      return badInput("parameter {} is on {} stages, expected one, or the "
                      "first and the last",
                      name, on.size());
    }
    if (!summed.front().contains(name)) {
      return badInput("parameter {} is on {} stages, and its gradient is not "
                      "summed over them",
                      name, on.size());
    }
  }
  for (const auto &[name, place] : summed.front()) {
    if (!shared.contains(name)) {
      return badInput("parameter {} is on 1 stages, and its gradient is summed "
                      "over them",
                      name);
    }
  }
  return Status::ok();
}

} // namespace mega
