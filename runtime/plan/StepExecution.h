//===- StepExecution.h - A step of all stages over values -------*- C++ -*-===//
//
// The entry point of a checked plan over values (ValueExecution.h), on all its
// stages. Programs that only the order of their own stage holds back run in
// that order; one that receives waits until the value was sent, and one that
// sums over stages until all of them are there. Every (source, destination,
// group) is a queue: what goes in first comes out first. Micro-batches run one
// after the other, each in the order in which the stages do things for the
// first, and where they do: how micro-batches overlap is a question of V11 and
// V20.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_STEPEXECUTION_H
#define MEGA_RUNTIME_PLAN_STEPEXECUTION_H

#include "runtime/plan/PipelineSchedule.h"
#include "runtime/plan/ValueExecution.h"

#include <deque>
#include <functional>
#include <vector>

namespace mega {

class StepExecution {
public:
  /// What is done with launches. `forward` records on the tape, if there is
  /// one.
  struct Watch {
    bool keepDropout = true;
    Tape *tape = nullptr;
    std::function<Status(int64_t stage, plan::ActionKind kind, const Site &,
                         const ValueLaunch &, const std::vector<Value> &)>
        launch;
    /// Before the first backward of the micro-batch.
    std::function<Status()> forwardDone;
  };

  /// The memory of all stages after the setup.
  static StatusOr<StepExecution>
  begin(const std::vector<VerifierContext> &stages, uint32_t entryPoint);

  Status prologue(const Watch &watch);
  Status microBatch(const Watch &watch);
  Status finish(const Watch &watch);
  /// From here on parameters are what AdamW left.
  void beginNextStep();

  int64_t stages() const { return std::ssize(executions); }
  const plan::Plan &plan(int64_t stage) const {
    return contexts[at(stage)]->plan;
  }
  /// Those that are looked at.
  const std::vector<LogicalParameter> &parameters(int64_t stage) const {
    return contexts[at(stage)]->parameters;
  }
  const plan::EntryPoint &entry(int64_t stage) const {
    return *plan(stage).entry_points()->Get(entryPoint);
  }
  ValueExecution &on(int64_t stage) { return executions[at(stage)]; }

private:
  using Queues =
      std::map<std::tuple<int64_t, int64_t, int64_t>, std::deque<StageMessage>>;

  std::string_view nameOf(int64_t stage, const plan::Action &action) const;
  static size_t at(int64_t stage) { return static_cast<size_t>(stage); }
  /// Of each stage, in order.
  using Actions = std::vector<std::vector<plan::Action>>;
  /// Of one kind, or all that the first micro-batch takes.
  Actions actionsOf(std::optional<plan::ActionKind> kind) const;
  Status run(const Actions &actions, const Watch &watch);
  StatusOr<bool> tryAction(int64_t stage, const plan::Action &action,
                           const Watch &watch);
  StatusOr<bool> trySum(int64_t stage, const plan::Action &action,
                        int64_t group, const Watch &watch);
  Status runAction(int64_t stage, const plan::Action &action,
                   const Watch &watch);

  uint32_t entryPoint = 0;
  std::vector<const VerifierContext *> contexts;
  std::vector<ValueExecution> executions;
  Queues queues;
  /// By group and how many sums over it came before: what the stages that have
  /// come to it put in.
  std::map<std::pair<int64_t, int64_t>,
           std::map<int64_t, std::vector<StageMessage>>>
      sums;
  /// By group and stage: sums that it ran.
  std::map<std::pair<int64_t, int64_t>, int64_t> rounds;
  bool forwardDone = false;
};

/// What a run (isRun) does for its part.
inline Work workOf(plan::ActionKind run) {
  return run == plan::ActionKind::Forward    ? Work::Forward
         : run == plan::ActionKind::Backward ? Work::Backward
                                             : Work::Weight;
}

/// What a program exchanges with other stages; at most one launch does.
struct StageTransfer {
  Kernel kernel = Kernel::Zero;
  int64_t group = -1;
  int64_t shift = 0;
};
/// kernel is zero if it exchanges nothing.
StageTransfer transferOf(const plan::Plan &plan, uint32_t program);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_STEPEXECUTION_H
