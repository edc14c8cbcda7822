#include "runtime/plan/StepExecution.h"

#include "runtime/plan/PlanLayouts.h"

#include <algorithm>

namespace mega {

StageTransfer transferOf(const plan::Plan &plan, uint32_t program) {
  for (const plan::Call &call :
       elements(plan.programs()->Get(program)->calls())) {
    const plan::Function &function = *plan.functions()->Get(call.function());
    for (const plan::Launch &launch : elements(function.launches())) {
      const auto kernel = static_cast<Kernel>(launch.kernel());
      if (isBetweenStages(kernel)) {
        const auto integers =
            elements(function.integers()).subspan(launch.first_integer());
        return {kernel, integers[0],
                kernel == Kernel::SumStages ? 0 : integers[1]};
      }
    }
  }
  return {};
}

StatusOr<StepExecution>
StepExecution::begin(const std::vector<VerifierContext> &stages,
                     uint32_t entryPoint) {
  StepExecution step;
  step.entryPoint = entryPoint;
  for (const VerifierContext &stage : stages) {
    MEGA_ASSIGN_OR_RETURN(
        ValueExecution execution,
        ValueExecution::begin(stage,
                              *stage.plan.entry_points()->Get(entryPoint)));
    step.contexts.push_back(&stage);
    step.executions.push_back(std::move(execution));
  }
  return step;
}

void StepExecution::beginNextStep() {
  for (ValueExecution &execution : executions) {
    execution.beginNextStep();
  }
}

StepExecution::Actions
StepExecution::actionsOf(std::optional<plan::ActionKind> kind) const {
  Actions all;
  for (int64_t s = 0; s < stages(); ++s) {
    std::vector<plan::Action> own;
    for (const plan::Action &action :
         elements(entry(s).stages()->Get(0)->actions())) {
      const plan::ActionKind of =
          plan(s).programs()->Get(action.program())->kind();
      if (kind ? of == *kind
               : isPerMicroBatch(of) && action.micro_batch() == 0) {
        own.push_back(action);
      }
    }
    all.push_back(std::move(own));
  }
  return all;
}

Status StepExecution::prologue(const Watch &watch) {
  return run(actionsOf(plan::ActionKind::Prologue), watch);
}

Status StepExecution::microBatch(const Watch &watch) {
  forwardDone = false;
  MEGA_RETURN_IF_ERROR(run(actionsOf(std::nullopt), watch));
  for (const auto &[key, queue] : queues) {
    if (!queue.empty()) {
      return badInput("stage {} sends a value to stage {} that is not received",
                      std::get<1>(key), std::get<2>(key));
    }
  }
  return forwardDone || !watch.forwardDone ? Status::ok() : watch.forwardDone();
}

Status StepExecution::finish(const Watch &watch) {
  return run(actionsOf(plan::ActionKind::Finish), watch);
}

Status StepExecution::run(const Actions &actions, const Watch &watch) {
  std::vector<size_t> next(actions.size());
  sums.clear();
  rounds.clear();
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t s = 0; s < stages(); ++s) {
      while (next[at(s)] < actions[at(s)].size()) {
        auto done = tryAction(s, actions[at(s)][next[at(s)]], watch);
        if (!done.isOk()) {
          return stages() == 1 ? std::move(done).takeStatus()
                               : std::move(done).takeStatus().withContext(
                                     fmt::format("stage {}", s));
        }
        if (!*done) {
          break;
        }
        ++next[at(s)];
        moved = true;
      }
    }
  }
  for (int64_t s = 0; s < stages(); ++s) {
    if (next[at(s)] < actions[at(s)].size()) {
      return badInput("stage {}: {} waits for another stage, for ever", s,
                      nameOf(s, actions[at(s)][next[at(s)]]));
    }
  }
  return Status::ok();
}

std::string_view StepExecution::nameOf(int64_t stage,
                                       const plan::Action &action) const {
  return text(plan(stage).programs()->Get(action.program())->name());
}

StatusOr<bool> StepExecution::tryAction(int64_t stage,
                                        const plan::Action &action,
                                        const Watch &watch) {
  const StageTransfer transfer = transferOf(plan(stage), action.program());
  const int64_t peer = (stage + transfer.shift) % stages();
  ValueExecution &execution = on(stage);
  execution.exchange = {};
  if (transfer.kernel == Kernel::SumStages) {
    return trySum(stage, action, transfer.group, watch);
  }
  if (transfer.kernel == Kernel::ReceiveWait) {
    auto &queue = queues[{transfer.group, peer, stage}];
    if (queue.empty()) {
      return false;
    }
    execution.exchange.received.push_back(queue.front());
    queue.pop_front();
  }
  MEGA_RETURN_IF_ERROR(runAction(stage, action, watch));
  if (!execution.exchange.received.empty() ||
      execution.exchange.sent.size() > 1) {
    return badInput("{} exchanges more than one value with other stages",
                    nameOf(stage, action));
  }
  for (const StageMessage &message : execution.exchange.sent) {
    queues[{transfer.group, stage, peer}].push_back(message);
  }
  return true;
}

/// What stages put in, added up.
static StatusOr<std::vector<StageMessage>>
totalOf(const std::map<int64_t, std::vector<StageMessage>> &arrived) {
  const auto &[first, values] = *arrived.begin();
  std::vector<StageMessage> total = values;
  for (auto it = std::next(arrived.begin()); it != arrived.end(); ++it) {
    const auto &[stage, others] = *it;
    if (others.size() != total.size()) {
      return badInput("stage {} sums {} values over stages, stage {} {}", first,
                      total.size(), stage, others.size());
    }
    for (size_t i = 0; i < total.size(); ++i) {
      if (others[i].type != total[i].type ||
          others[i].layout != total[i].layout) {
        return badInput("stage {} sums {} with layout [{}] over stages, stage "
                        "{} {} with layout [{}]",
                        first, toString(total[i].type), total[i].layout.str(),
                        stage, toString(others[i].type),
                        others[i].layout.str());
      }
      total[i].value = sum(total[i].value, others[i].value);
    }
  }
  return total;
}

/// Once all members are at a sum over the group, each runs its own when it is
/// looked at next.
StatusOr<bool> StepExecution::trySum(int64_t stage, const plan::Action &action,
                                     int64_t group, const Watch &watch) {
  const bool tie =
      elements(plan(stage).groups())[at(group)].axes()->Get(0) == kTieAxis;
  const size_t members = tie ? 2 : executions.size();
  // A stage may be at its next sum before the others have run this one.
  auto &arrived = sums[{group, rounds[{group, stage}]}];
  if (!arrived.contains(stage)) {
    if (tie && stage != 0 && stage != stages() - 1) {
      return badInput("{} sums over the first and the last stage",
                      nameOf(stage, action));
    }
    MEGA_ASSIGN_OR_RETURN(arrived[stage],
                          on(stage).contributions(action.program()));
  }
  if (arrived.size() < members) {
    return false;
  }
  MEGA_ASSIGN_OR_RETURN(on(stage).exchange.received, totalOf(arrived));
  MEGA_RETURN_IF_ERROR(runAction(stage, action, watch));
  ++rounds[{group, stage}];
  return true;
}

Status StepExecution::runAction(int64_t stage, const plan::Action &action,
                                const Watch &watch) {
  const plan::ActionKind kind =
      plan(stage).programs()->Get(action.program())->kind();
  if (isGradient(kind) && !forwardDone) {
    forwardDone = true;
    if (watch.forwardDone) {
      MEGA_RETURN_IF_ERROR(watch.forwardDone());
    }
  }
  return on(stage).run(action, watch.keepDropout,
                       kind == plan::ActionKind::Forward ? watch.tape : nullptr,
                       [&](const Site &site, const ValueLaunch &launch,
                           const std::vector<Value> &results) {
                         return watch.launch ? watch.launch(stage, kind, site,
                                                            launch, results)
                                             : Status::ok();
                       });
}

} // namespace mega
