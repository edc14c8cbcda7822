//===- VerifyValues.cpp - Forward, evaluation, derivative, step -----------===//
#include "runtime/plan/ValueExecution.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

namespace mega {
namespace {

/// Programs of a kind that the entry point runs.
std::vector<uint32_t> ofKind(const plan::Plan &plan,
                             const plan::EntryPoint &entry,
                             plan::ActionKind kind) {
  std::vector<uint32_t> found;
  for (uint32_t p : programsOf(entry)) {
    if (plan.programs()->Get(p)->kind() == kind) {
      found.push_back(p);
    }
  }
  return found;
}

/// The programs of `kind`, over one memory.
Status runAll(ValueExecution &execution, const plan::Plan &plan,
              const plan::EntryPoint &entry, plan::ActionKind kind,
              bool keepDropout, Tape *tape,
              const ValueExecution::Observer &observer) {
  for (uint32_t p : ofKind(plan, entry, kind)) {
    MEGA_RETURN_IF_ERROR(execution.run(p, keepDropout, tape, observer));
  }
  return Status::ok();
}

Status nobody(const Site &, const ValueLaunch &, const std::vector<Value> &) {
  return Status::ok();
}

/// The first launch whose results are not among expected ones.
struct Stranger {
  std::optional<Site> site;

  template <typename Knows>
  void look(const Site &at, const ValueLaunch &launch,
            const std::vector<Value> &results, Knows knows) {
    const KernelSpec &spec = kernelSpec(launch.kernel);
    for (uint32_t i = 0; i < results.size() && !site; ++i) {
      const Access access = spec.operands[i].access;
      if (access != Access::Read && access != Access::Scratch &&
          results[i] != 0 && !knows(results[i])) {
        site = at;
        site->operand = i;
      }
    }
  }

  std::string text(const plan::Plan &plan) const {
    return site ? fmt::format("; the first difference is {}",
                              describe(plan, *site))
                : "";
  }
};

//===----------------------------------------------------------------------===//
// V16: entry points agree
//===----------------------------------------------------------------------===//

/// What the forward of an entry point computes, dropout apart.
struct Losses {
  std::vector<Value> sums;
  std::unordered_set<Value> values;
};

StatusOr<Losses> lossesOf(const plan::Plan &plan, const plan::EntryPoint &entry,
                          const Losses *expected, Stranger &stranger) {
  MEGA_ASSIGN_OR_RETURN(ValueExecution execution,
                        ValueExecution::begin(plan, entry));
  MEGA_RETURN_IF_ERROR(runAll(execution, plan, entry,
                              plan::ActionKind::Prologue, false, nullptr,
                              nobody));
  Losses losses;
  MEGA_RETURN_IF_ERROR(
      runAll(execution, plan, entry, plan::ActionKind::Forward, false, nullptr,
             [&](const Site &site, const ValueLaunch &launch,
                 const std::vector<Value> &results) {
               if (expected) {
                 stranger.look(site, launch, results, [&](Value value) {
                   return expected->values.count(value) != 0;
                 });
               }
               losses.values.insert(results.begin(), results.end());
               return Status::ok();
             }));
  for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
    MEGA_ASSIGN_OR_RETURN(const Value value,
                          execution.valueOf(*plan.loss_terms()->Get(i)->sum()));
    losses.sums.push_back(value);
  }
  return losses;
}

Status verifyAgreement(const plan::Plan &plan) {
  std::optional<Losses> first;
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(e);
    Stranger stranger;
    auto losses = lossesOf(plan, entry, first ? &*first : nullptr, stranger);
    if (!losses.isOk()) {
      return std::move(losses).takeStatus().withContext(
          std::string(text(entry.name())));
    }
    if (!first) {
      first = std::move(*losses);
      continue;
    }
    for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
      if (losses->sums[i] != first->sums[i]) {
        return badInput(
            "{}: the sum of loss term {} is another function of parameters and "
            "inputs than in {}{}",
            text(entry.name()), text(plan.loss_terms()->Get(i)->name()),
            text(plan.entry_points()->Get(0)->name()), stranger.text(plan));
      }
    }
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// V17 and V18: a step
//===----------------------------------------------------------------------===//

class StepValues {
public:
  StepValues(const plan::Plan &plan, const plan::EntryPoint &entry,
             ValueExecution execution)
      : plan(plan), entry(entry), execution(std::move(execution)) {}

  Status verify(bool training) {
    MEGA_RETURN_IF_ERROR(prologue());
    MEGA_RETURN_IF_ERROR(forward(training));
    if (!training) {
      return Status::ok();
    }
    MEGA_RETURN_IF_ERROR(backward());
    return finish();
  }

private:
  Status prologue();
  Status forward(bool training);
  Status backward();
  Status finish();
  Status verifyGradient(uint32_t parameter, uint32_t k,
                        const Stranger &stranger);

  Status all(plan::ActionKind kind, Tape *recording,
             const ValueExecution::Observer &observer) {
    return runAll(execution, plan, entry, kind, true, recording, observer);
  }

  const plan::Plan &plan;
  const plan::EntryPoint &entry;
  ValueExecution execution;
  Tape tape;
  /// By loss term.
  std::vector<Value> counts;
  /// Every count_valid and loss_seed of the prologue: result and operand.
  std::vector<std::pair<ValueLaunch, Value>> counted;
  std::vector<Value> seeds;
};

Status StepValues::prologue() {
  MEGA_RETURN_IF_ERROR(all(plan::ActionKind::Prologue, nullptr,
                           [&](const Site &, const ValueLaunch &launch,
                               const std::vector<Value> &results) {
                             if (launch.kernel == Kernel::CountValid) {
                               counted.emplace_back(launch, results[1]);
                             }
                             return Status::ok();
                           }));
  for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
    const plan::LossTerm &term = *plan.loss_terms()->Get(i);
    MEGA_ASSIGN_OR_RETURN(const Value count, execution.valueOf(*term.count()));
    counts.push_back(count);
    ValueLaunch seed;
    seed.kernel = Kernel::LossSeed;
    seed.types = {bufferType(*term.count()), BufferType()};
    seed.floats = {term.weight()};
    seed.before = {count, 0};
    seeds.push_back(resultsOf(seed)[1]);
  }
  return Status::ok();
}

Status StepValues::forward(bool training) {
  MEGA_RETURN_IF_ERROR(all(
      plan::ActionKind::Forward, &tape,
      [&](const Site &site, const ValueLaunch &launch,
          const std::vector<Value> &) {
        return training || dropoutOf(launch) == 0
                   ? Status::ok()
                   : badInput("{} drops out, in an entry point that does not "
                              "train",
                              describe(plan, site));
      }));
  MEGA_RETURN_IF_ERROR(execution.checkLimits());
  for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
    const plan::LossTerm &term = *plan.loss_terms()->Get(i);
    MEGA_ASSIGN_OR_RETURN(const Value sum, execution.valueOf(*term.sum()));
    const ValueLaunch *loss = tape.find(Kernel::HeadLoss, sum);
    if (!loss) {
      return badInput("the sum of loss term {} is not what one head_loss adds "
                      "to zero",
                      text(term.name()));
    }
    const auto counting =
        std::find_if(counted.begin(), counted.end(),
                     [&](const auto &c) { return c.second == counts[i]; });
    if (counting == counted.end()) {
      return badInput("the count of loss term {} is not what one count_valid "
                      "found",
                      text(term.name()));
    }
    bool same = false;
    for (uint32_t input = 0; input < length(plan.inputs()); ++input) {
      same |= loss->before[3] == inputValue(input, false) &&
              counting->first.before[0] == inputValue(input, true);
    }
    if (!same) {
      return badInput("the count of loss term {} is of other labels than its "
                      "sum",
                      text(term.name()));
    }
    tape.seed(sum, seeds[i]);
  }
  return Status::ok();
}

Status StepValues::verifyGradient(uint32_t parameter, uint32_t k,
                                  const Stranger &stranger) {
  const plan::Parameter &p = *plan.parameters()->Get(parameter);
  const plan::Buffer &gradient = *p.gradient();
  const int64_t offset = gradient.offset() + (int64_t{p.first_instance()} + k) *
                                                 gradient.per_instance();
  MEGA_ASSIGN_OR_RETURN(
      const Value found,
      execution.valueAt({gradient.region(), offset}, bufferType(gradient)));
  if (found != tape.derivative(parameterValue(parameter, k))) {
    return badInput("what backward leaves as the gradient of parameter {} is "
                    "not the derivative of what forward computes{}",
                    logicalName(p, k), stranger.text(plan));
  }
  return Status::ok();
}

Status StepValues::backward() {
  MEGA_RETURN_IF_ERROR(tape.differentiate());
  Stranger stranger;
  MEGA_RETURN_IF_ERROR(all(plan::ActionKind::Backward, nullptr,
                           [&](const Site &site, const ValueLaunch &launch,
                               const std::vector<Value> &results) {
                             stranger.look(site, launch, results, [&](Value v) {
                               return tape.knows(v);
                             });
                             return Status::ok();
                           }));
  for (uint32_t i = 0; i < length(plan.parameters()); ++i) {
    for (uint32_t k = 0; k < plan.parameters()->Get(i)->count(); ++k) {
      MEGA_RETURN_IF_ERROR(verifyGradient(i, k, stranger));
    }
  }
  return Status::ok();
}

Status StepValues::finish() {
  Value norm = 0;
  std::vector<std::pair<Site, Value>> scales;
  std::map<Value, Value> clips;
  MEGA_RETURN_IF_ERROR(all(plan::ActionKind::Finish, nullptr,
                           [&](const Site &site, const ValueLaunch &launch,
                               const std::vector<Value> &results) {
                             if (launch.kernel == Kernel::SumSquares) {
                               norm = sum(norm, results[1]);
                             } else if (launch.kernel == Kernel::ClipScale) {
                               clips[results[1]] = launch.before[0];
                             } else if (launch.kernel == Kernel::AdamW) {
                               scales.emplace_back(site, launch.before[4]);
                             }
                             return Status::ok();
                           }));
  MEGA_ASSIGN_OR_RETURN(const Value total,
                        execution.valueOf(*plan.gradient_square_sum()));
  if (total != norm) {
    return badInput("gradient_square_sum does not end up with the sum of "
                    "squares of all gradients and of nothing else");
  }
  for (const auto &[site, scale] : scales) {
    const auto clip = clips.find(scale);
    if (clip == clips.end() || clip->second != norm) {
      return badInput("{} scales by what is not the clip_scale of the norm of "
                      "all gradients",
                      describe(plan, site));
    }
  }
  return Status::ok();
}

} // namespace

Status verifyValues(const VerifierContext &context) {
  const plan::Plan &plan = context.plan;
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(e);
    if (length(entry.stages()) != 1) {
      return badInput("{}: it has {} stages, the values of 1 can be proved",
                      text(entry.name()), length(entry.stages()));
    }
    const bool training = isTraining(context, entry);
    MEGA_ASSIGN_OR_RETURN(ValueExecution execution,
                          ValueExecution::begin(plan, entry));
    StepValues step(plan, entry, std::move(execution));
    MEGA_RETURN_IF_ERROR_CONTEXT(step.verify(training), "{}",
                                 text(entry.name()));
  }
  return verifyAgreement(plan);
}

} // namespace mega
