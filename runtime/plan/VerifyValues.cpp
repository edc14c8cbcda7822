//===- VerifyValues.cpp - Forward, evaluation, derivative, step -----------===//
#include "runtime/plan/DataInputs.h"
#include "runtime/plan/StepExecution.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

namespace mega {
namespace {

/// The first launch whose results are not among expected ones.
struct Stranger {
  std::optional<Site> site;
  int64_t stage = 0;

  template <typename Knows>
  void look(int64_t on, const Site &at, const ValueLaunch &launch,
            const std::vector<Value> &results, Knows knows) {
    const KernelSpec &spec = kernelSpec(launch.kernel);
    for (uint32_t i = 0; i < results.size() && !site; ++i) {
      const Access access = spec.operands[i].access;
      if (access != Access::Read && access != Access::Scratch &&
          results[i] != 0 && !knows(results[i])) {
        site = at;
        site->operand = i;
        stage = on;
      }
    }
  }

  std::string text(const StepExecution &step) const {
    if (!site) {
      return "";
    }
    return fmt::format("; the first difference is {}{}",
                       step.stages() == 1 ? ""
                                          : fmt::format("on stage {}, ", stage),
                       describe(step.plan(stage), *site));
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

/// The value of a counter on all stages, of which one has added to it.
StatusOr<Value> totalOf(StepExecution &step,
                        const plan::Buffer *(*counter)(const plan::Plan &,
                                                       uint32_t),
                        uint32_t term) {
  Value total = 0;
  for (int64_t s = 0; s < step.stages(); ++s) {
    MEGA_ASSIGN_OR_RETURN(const Value value,
                          step.on(s).valueOf(*counter(step.plan(s), term)));
    total = sum(total, value);
  }
  return total;
}

const plan::Buffer *sumOf(const plan::Plan &plan, uint32_t term) {
  return plan.loss_terms()->Get(term)->sum();
}

StatusOr<Losses> lossesOf(StepExecution &step, const Losses *expected,
                          Stranger &stranger) {
  StepExecution::Watch watch;
  watch.keepDropout = false;
  MEGA_RETURN_IF_ERROR(step.prologue(watch));
  Losses losses;
  watch.launch = [&](int64_t stage, plan::ActionKind kind, const Site &site,
                     const ValueLaunch &launch,
                     const std::vector<Value> &results) {
    if (kind == plan::ActionKind::Forward) {
      if (expected) {
        stranger.look(stage, site, launch, results, [&](Value value) {
          return expected->values.count(value) != 0;
        });
      }
      losses.values.insert(results.begin(), results.end());
    }
    return Status::ok();
  };
  watch.forwardDone = [&]() -> Status {
    for (uint32_t i = 0; i < length(step.plan(0).loss_terms()); ++i) {
      MEGA_ASSIGN_OR_RETURN(const Value value, totalOf(step, sumOf, i));
      losses.sums.push_back(value);
    }
    return Status::ok();
  };
  MEGA_RETURN_IF_ERROR(step.microBatch(watch));
  return losses;
}

Status verifyAgreement(const std::vector<VerifierContext> &stages) {
  std::optional<Losses> first;
  const plan::Plan &stage = stages.front().plan;
  for (uint32_t e = 0; e < length(stage.entry_points()); ++e) {
    const plan::EntryPoint &entry = *stage.entry_points()->Get(e);
    Stranger stranger;
    MEGA_ASSIGN_OR_RETURN(StepExecution step, StepExecution::begin(stages, e));
    auto losses = lossesOf(step, first ? &*first : nullptr, stranger);
    if (!losses.isOk()) {
      return std::move(losses).takeStatus().withContext(
          std::string(text(entry.name())));
    }
    if (!first) {
      first = std::move(*losses);
      continue;
    }
    for (uint32_t i = 0; i < length(stage.loss_terms()); ++i) {
      if (losses->sums[i] != first->sums[i]) {
        return badInput(
            "{}: the sum of loss term {} is another function of parameters and "
            "inputs than in {}{}",
            text(entry.name()), text(stage.loss_terms()->Get(i)->name()),
            text(stage.entry_points()->Get(0)->name()), stranger.text(step));
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
  StepValues(StepExecution &step) : step(step), plan(step.plan(0)) {}

  Status verify(bool training) {
    MEGA_RETURN_IF_ERROR(prologue());
    MEGA_RETURN_IF_ERROR(microBatch(training));
    return training ? finish() : Status::ok();
  }

private:
  Status prologue();
  Status microBatch(bool training);
  Status forwardDone();
  Status verifyLimits();
  Status verifyLoss(uint32_t term);
  Status verifyGradients(const Stranger &stranger);
  Status finish();
  Status verifyNorm(Value norm);

  StepExecution &step;
  /// Of stage 0; terms and inputs are those of all.
  const plan::Plan &plan;
  Tape tape;
  /// By loss term.
  std::vector<Value> counts;
  /// Every count_valid and loss_seed of the prologue: result and operand.
  std::vector<std::pair<ValueLaunch, Value>> counted;
  std::vector<Value> seeds;
  std::vector<Value> losses;
};

Status StepValues::prologue() {
  StepExecution::Watch watch;
  watch.launch = [&](int64_t, plan::ActionKind, const Site &,
                     const ValueLaunch &launch,
                     const std::vector<Value> &results) {
    if (launch.kernel == Kernel::CountValid) {
      counted.emplace_back(launch, results[1]);
    }
    return Status::ok();
  };
  MEGA_RETURN_IF_ERROR(step.prologue(watch));
  for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
    const plan::LossTerm &term = *plan.loss_terms()->Get(i);
    MEGA_ASSIGN_OR_RETURN(const Value count, step.on(0).valueOf(*term.count()));
    for (int64_t s = 1; s < step.stages(); ++s) {
      MEGA_ASSIGN_OR_RETURN(
          const Value other,
          step.on(s).valueOf(*step.plan(s).loss_terms()->Get(i)->count()));
      if (other != count) {
        return badInput("the count of loss term {} is another on stage {} than "
                        "on stage 0",
                        text(term.name()), s);
      }
    }
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

Status StepValues::microBatch(bool training) {
  Stranger stranger;
  StepExecution::Watch watch;
  watch.tape = &tape;
  watch.launch = [&](int64_t stage, plan::ActionKind kind, const Site &site,
                     const ValueLaunch &launch,
                     const std::vector<Value> &results) {
    if (kind == plan::ActionKind::Forward) {
      return training || dropoutOf(launch) == 0
                 ? Status::ok()
                 : badInput("{} drops out, in an entry point that does not "
                            "train",
                            describe(step.plan(stage), site));
    }
    if (isGradient(kind)) {
      stranger.look(stage, site, launch, results,
                    [&](Value v) { return tape.knows(v); });
    }
    return Status::ok();
  };
  watch.forwardDone = [&]() -> Status {
    MEGA_RETURN_IF_ERROR(forwardDone());
    return training ? tape.differentiate() : Status::ok();
  };
  MEGA_RETURN_IF_ERROR(step.microBatch(watch));
  return training ? verifyGradients(stranger) : Status::ok();
}

Status StepValues::forwardDone() {
  MEGA_RETURN_IF_ERROR(verifyLimits());
  for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
    MEGA_RETURN_IF_ERROR(verifyLoss(i));
  }
  return Status::ok();
}

/// The limit of every input is that of the smallest table that it indexes; of
/// one that indexes none, there is no limit.
Status StepValues::verifyLimits() {
  std::map<uint32_t, int64_t> fewest;
  for (int64_t s = 0; s < step.stages(); ++s) {
    for (const auto &[i, rows] : step.on(s).indexedRows()) {
      int64_t &least = fewest.try_emplace(i, rows).first->second;
      least = std::min(least, rows);
    }
  }
  for (uint32_t i = 0; i < length(plan.inputs()); ++i) {
    const plan::Input &input = *plan.inputs()->Get(i);
    const auto found = fewest.find(i);
    if (found == fewest.end()) {
      if (input.limit() != kNoLimit) {
        return badInput("elements of input {} are below {}, but they index no "
                        "table; expected {}",
                        text(input.name()), input.limit(), kNoLimit);
      }
    } else if (input.limit() != static_cast<uint64_t>(found->second)) {
      return badInput("ids of input {} are below {}, but the smallest table "
                      "that they index has {} rows",
                      text(input.name()), input.limit(), found->second);
    }
  }
  return Status::ok();
}

Status StepValues::verifyLoss(uint32_t i) {
  const plan::LossTerm &term = *plan.loss_terms()->Get(i);
  MEGA_ASSIGN_OR_RETURN(const Value sum, totalOf(step, sumOf, i));
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
  losses.push_back(sum);
  tape.seed(sum, seeds[i]);
  return Status::ok();
}

/// A tied parameter has a part of its gradient on every stage that has it.
Status StepValues::verifyGradients(const Stranger &stranger) {
  struct Found {
    Value value = 0;
    std::string name;
  };
  std::map<Value, Found> gradients;
  for (int64_t s = 0; s < step.stages(); ++s) {
    const plan::Plan &stage = step.plan(s);
    for (const LogicalParameter &parameter : step.parameters(s)) {
      const plan::Buffer &gradient =
          *stage.parameters()->Get(parameter.entry)->gradient();
      MEGA_ASSIGN_OR_RETURN(
          const Value value,
          step.on(s).valueAt(parameter.gradient, bufferType(gradient)));
      MEGA_RETURN_IF_ERROR_CONTEXT(
          step.on(s).checkLayout(parameter.gradient, gradient),
          "the gradient of parameter {}", parameter.name);
      Found &found = gradients[parameterValue(parameter.name)];
      found.value = sum(found.value, value);
      found.name = parameter.name;
    }
  }
  for (const auto &[parameter, found] : gradients) {
    if (found.value != tape.derivative(parameter)) {
      return badInput("what backward leaves as the gradient of parameter {} is "
                      "not the derivative of what forward computes{}",
                      found.name, stranger.text(step));
    }
  }
  return Status::ok();
}

Status StepValues::finish() {
  Value norm = 0;
  std::vector<std::tuple<int64_t, Site, Value>> scales;
  std::map<Value, Value> clips;
  StepExecution::Watch watch;
  watch.launch = [&](int64_t stage, plan::ActionKind, const Site &site,
                     const ValueLaunch &launch,
                     const std::vector<Value> &results) {
    if (launch.kernel == Kernel::SumSquares) {
      norm = sum(norm, results[1]);
    } else if (launch.kernel == Kernel::ClipScale) {
      clips[results[1]] = launch.before[0];
    } else if (launch.kernel == Kernel::AdamW) {
      scales.emplace_back(stage, site, launch.before[4]);
    }
    return Status::ok();
  };
  MEGA_RETURN_IF_ERROR(step.finish(watch));
  MEGA_RETURN_IF_ERROR(verifyNorm(norm));
  for (const auto &[stage, site, scale] : scales) {
    const auto clip = clips.find(scale);
    if (clip == clips.end() || clip->second != norm) {
      return badInput("{} scales by what is not the clip_scale of the norm of "
                      "all gradients",
                      describe(step.plan(stage), site));
    }
  }
  return Status::ok();
}

/// Every stage ends up with what is reported.
Status StepValues::verifyNorm(Value norm) {
  for (int64_t s = 0; s < step.stages(); ++s) {
    const plan::Plan &stage = step.plan(s);
    MEGA_ASSIGN_OR_RETURN(const Value total,
                          step.on(s).valueOf(*stage.gradient_square_sum()));
    if (total != norm) {
      return badInput("gradient_square_sum does not end up with the sum of "
                      "squares of all gradients and of nothing else");
    }
    for (uint32_t i = 0; i < losses.size(); ++i) {
      MEGA_ASSIGN_OR_RETURN(const Value sum,
                            step.on(s).valueOf(*sumOf(stage, i)));
      if (sum != losses[i]) {
        return badInput("the sum of loss term {} does not end up on stage {}",
                        text(stage.loss_terms()->Get(i)->name()), s);
      }
    }
  }
  return Status::ok();
}

} // namespace

Status verifyValues(const std::vector<VerifierContext> &stages) {
  for (uint32_t e = 0; e < length(stages.front().plan.entry_points()); ++e) {
    bool training = false;
    for (const VerifierContext &stage : stages) {
      training |= isTraining(stage, *stage.plan.entry_points()->Get(e));
    }
    MEGA_ASSIGN_OR_RETURN(StepExecution step, StepExecution::begin(stages, e));
    StepValues values(step);
    MEGA_RETURN_IF_ERROR_CONTEXT(values.verify(training), "{}",
                                 text(step.entry(0).name()));
  }
  return verifyAgreement(stages);
}

} // namespace mega
