//===- VerifyPipeline.cpp - The stages of a plan do not wait for ever -----===//
//
// V20: what the stages of a plan do, as events (ScheduleGraph.h): runs of the
// parts, transfers in the buffers between stages, sums over stages.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/ScheduleGraph.h"
#include "runtime/plan/StageGroup.h"
#include "runtime/plan/StepExecution.h"
#include "runtime/plan/ValueLayouts.h"
#include "runtime/plan/Verifier.h"

#include <map>

namespace mega {
namespace {

using Kind = ScheduleEvent::Kind;

/// The events of one stage.
class StageEvents {
public:
  StageEvents(const VerifierContext &context, int64_t stage, int64_t stages)
      : context(context), plan(context.plan), stage(stage), stages(stages) {}

  Status add(const plan::Action &action) {
    const plan::Program &program = *plan.programs()->Get(action.program());
    switch (program.kind()) {
    case plan::ActionKind::Forward:
    case plan::ActionKind::Backward:
    case plan::ActionKind::Weight:
      return addRun(action, program);
    case plan::ActionKind::Transfer:
      return addTransfer(action, program);
    case plan::ActionKind::Finish:
      return addSum(action);
    default:
      return Status::ok();
    }
  }

  /// A program touches one buffer between stages, that of its action.
  Status checkBoundary(uint32_t program) {
    const ProgramEffects &effects = context.effects[program];
    const auto check = [&](const MemorySpace &space, const Box &box) {
      if (partOf(plan, space.region) != plan::Part::Boundary) {
        return Status::ok();
      }
      if (bytes == 0) {
        bytes = space.perSlot;
      }
      return space.perSlot == bytes && space.perMicroBatch == 0 &&
                     box.begin >= 0 && box.end() <= bytes
                 ? Status::ok()
                 : badInput("{} touches bytes {} to {} of buffers between "
                            "stages that are {} bytes apart, others are {}",
                            text(plan.programs()->Get(program)->name()),
                            box.begin, box.end(), space.perSlot, bytes);
    };
    for (const NeededBytes &need : effects.reads) {
      MEGA_RETURN_IF_ERROR(check(need.space, need.box));
    }
    for (const auto &[space, written] : effects.writes) {
      for (const Box &box : written.boxes()) {
        MEGA_RETURN_IF_ERROR(check(space, box));
      }
    }
    return Status::ok();
  }

  std::vector<ScheduleEvent> events;

private:
  ScheduleEvent eventOf(Kind kind, const plan::Action &action,
                        const plan::Program &program) const {
    ScheduleEvent event{};
    event.kind = kind;
    event.part = static_cast<int32_t>(program.part());
    event.microBatch = static_cast<int32_t>(action.micro_batch());
    event.buffer = static_cast<int32_t>(action.buffer());
    return event;
  }

  Status addRun(const plan::Action &action, const plan::Program &program) {
    ScheduleEvent event = eventOf(Kind::Run, action, program);
    event.work = workOf(program.kind());
    event.slot = static_cast<int32_t>(action.slot());
    if (event.work == Work::Weight) {
      event.buffer = -1;
    }
    events.push_back(event);
    return Status::ok();
  }

  Status addTransfer(const plan::Action &action, const plan::Program &program) {
    const StageTransfer transfer = transferOf(plan, action.program());
    const auto calls = elements(program.calls());
    if (calls.size() != 1 || calls[0].count() != 1 ||
        length(plan.functions()->Get(calls[0].function())->launches()) != 1 ||
        transfer.kernel == Kernel::Zero ||
        transfer.kernel == Kernel::SumStages) {
      return badInput("{} is a transfer, expected one launch that starts or "
                      "ends one",
                      text(program.name()));
    }
    const bool sends = transfer.kernel == Kernel::SendStart ||
                       transfer.kernel == Kernel::SendWait;
    const bool starts = transfer.kernel == Kernel::SendStart ||
                        transfer.kernel == Kernel::ReceiveStart;
    Started &open = started[{sends, action.buffer()}];
    const Touch touch = touchesOf(plan, action.program(), 0, 0).front();
    const Moved moved = {transfer.group, transfer.shift, touch.type,
                         bufferOf(plan, touch.site).layout()};
    ScheduleEvent event =
        eventOf(sends ? Kind::Send : Kind::Receive, action, program);
    if (!starts) {
      ScheduleEvent wait{};
      wait.kind = Kind::Wait;
      wait.event = open.event;
      if (open.event >= 0 && open.moved != moved) {
        return badInput("{} of micro-batch {} waits for another transfer than "
                        "buffer {} is in: type, layout, group or direction "
                        "differ",
                        text(program.name()), action.micro_batch(),
                        action.buffer());
      }
      open.event = -1;
      events.push_back(wait);
      return Status::ok();
    }
    if (open.event >= 0) {
      return badInput("{} of micro-batch {} starts in buffer {}, where another "
                      "transfer was not waited for",
                      text(program.name()), action.micro_batch(),
                      action.buffer());
    }
    event.work = transfer.group == static_cast<int64_t>(StageGroup::Activations)
                     ? Work::Forward
                     : Work::Backward;
    const int64_t peer = (stage + transfer.shift) % stages;
    const int64_t source = sends ? stage : peer;
    const int64_t target = sends ? peer : stage;
    event.peer = static_cast<int32_t>(peer);
    event.communicator = static_cast<int32_t>((source * stages + target) * 2 +
                                              (event.work == Work::Backward));
    event.queue = event.communicator;
    event.bytes = touch.type.extentBytes();
    open = {static_cast<int32_t>(events.size()), moved};
    events.push_back(event);
    return Status::ok();
  }

  Status addSum(const plan::Action &action) {
    const StageTransfer transfer = transferOf(plan, action.program());
    if (transfer.kernel == Kernel::Zero) {
      return Status::ok();
    }
    ScheduleEvent event{};
    event.kind = Kind::Collective;
    event.communicator =
        static_cast<int32_t>(2 * stages * stages + transfer.group);
    event.queue = event.communicator;
    events.push_back(event);
    return Status::ok();
  }

  const VerifierContext &context;
  const plan::Plan &plan;
  const int64_t stage;
  const int64_t stages;
  /// What a transfer is, apart from its buffer.
  struct Moved {
    int64_t group;
    int64_t shift;
    BufferType type;
    uint8_t layout;
    friend bool operator==(const Moved &, const Moved &) = default;
  };
  /// The event that started a transfer; -1 once it was waited for.
  struct Started {
    int32_t event = -1;
    Moved moved{};
  };
  /// By direction and buffer.
  std::map<std::pair<bool, uint32_t>, Started> started;
  /// Of a buffer between stages.
  int64_t bytes = 0;
};

/// On which stage each part runs.
StatusOr<std::vector<int32_t>>
stagesOfParts(const std::vector<VerifierContext> &stages, uint32_t entry) {
  std::map<uint32_t, int32_t> found;
  for (size_t s = 0; s < stages.size(); ++s) {
    const plan::Plan &plan = stages[s].plan;
    for (const uint32_t p : programsOf(*plan.entry_points()->Get(entry))) {
      const plan::Program &program = *plan.programs()->Get(p);
      if (program.kind() == plan::ActionKind::Forward &&
          !found.emplace(program.part(), static_cast<int32_t>(s)).second) {
        return badInput("part {} of the model runs on stage {} and on stage {}",
                        program.part(), found[program.part()], s);
      }
    }
  }
  std::vector<int32_t> stageOfPart;
  for (const auto &[part, stage] : found) {
    if (part != stageOfPart.size()) {
      return badInput("part {} of the model runs nowhere", stageOfPart.size());
    }
    stageOfPart.push_back(stage);
  }
  return stageOfPart;
}

Status verifyEntry(const std::vector<VerifierContext> &stages, uint32_t entry) {
  ScheduleGraphInput input{};
  input.stages = static_cast<int32_t>(stages.size());
  MEGA_ASSIGN_OR_RETURN(input.stageOfPart, stagesOfParts(stages, entry));
  input.parts = static_cast<int32_t>(input.stageOfPart.size());
  const plan::EntryPoint &first = *stages[0].plan.entry_points()->Get(entry);
  input.microBatches = static_cast<int32_t>(first.micro_batches());
  for (size_t s = 0; s < stages.size(); ++s) {
    StageEvents events(stages[s], static_cast<int64_t>(s), input.stages);
    const plan::EntryPoint &own = *stages[s].plan.entry_points()->Get(entry);
    for (const uint32_t program : programsOf(own)) {
      MEGA_RETURN_IF_ERROR_CONTEXT(events.checkBoundary(program), "stage {}",
                                   s);
      input.splitsWeight |= stages[s].plan.programs()->Get(program)->kind() ==
                            plan::ActionKind::Weight;
    }
    for (const plan::Action &action :
         elements(own.stages()->Get(0)->actions())) {
      MEGA_RETURN_IF_ERROR_CONTEXT(events.add(action), "stage {}", s);
    }
    input.train |= isTraining(stages[s], own);
    input.events.push_back(std::move(events.events));
  }
  return verifySchedule(input);
}

} // namespace

Status verifyPipeline(const std::vector<VerifierContext> &stages) {
  if (stages.size() == 1) {
    return Status::ok();
  }
  for (uint32_t e = 0; e < length(stages[0].plan.entry_points()); ++e) {
    const auto verify = [&]() -> Status {
      MEGA_RETURN_IF_ERROR(verifyEntry(stages, e));
      return verifyTies(stages, e);
    };
    MEGA_RETURN_IF_ERROR_CONTEXT(
        verify(), "{}", text(stages[0].plan.entry_points()->Get(e)->name()));
  }
  return Status::ok();
}

} // namespace mega
