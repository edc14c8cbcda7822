//===- ScheduleChecks.cpp - Fields, runs and waits of a schedule ----------===//
#include "runtime/plan/ScheduleChecks.h"

namespace mega::schedule {
namespace {

using Kind = ScheduleEvent::Kind;

std::string_view workName(Work work) {
  return work == Work::Forward    ? "forward"
         : work == Work::Backward ? "backward"
                                  : "weight";
}

std::string kindName(const ScheduleGraphInput &input, const EventPlace &place) {
  const ScheduleEvent &event = at(input, place);
  switch (event.kind) {
  case Kind::Run:
    return runName(event.work, event.part, event.microBatch);
  case Kind::Send:
  case Kind::Receive:
    return fmt::format("{} of {}",
                       event.kind == Kind::Send ? "send" : "receive",
                       valueName(event.work, event.part, event.microBatch));
  case Kind::Collective:
    return fmt::format("collective on communicator {}", event.communicator);
  case Kind::Wait:
    break;
  }
  // Of what was not started there may be nothing to say.
  if (event.event < 0 || event.event >= place.index) {
    return fmt::format("wait for event {}", event.event);
  }
  return fmt::format("wait for event {}, {}", event.event,
                     kindName(input, {place.stage, event.event}));
}

Status checkShape(const ScheduleGraphInput &input) {
  if (input.stages < 1 || input.parts < 1 || input.microBatches < 1) {
    return badInput("a schedule of {} stages, {} parts and {} micro-batches",
                    input.stages, input.parts, input.microBatches);
  }
  if (input.events.size() != static_cast<size_t>(input.stages) ||
      input.stageOfPart.size() != static_cast<size_t>(input.parts)) {
    return badInput("events of {} stages and the stages of {} parts, expected "
                    "{} and {}",
                    input.events.size(), input.stageOfPart.size(), input.stages,
                    input.parts);
  }
  for (size_t part = 0; part < input.stageOfPart.size(); ++part) {
    if (input.stageOfPart[part] < 0 ||
        input.stageOfPart[part] >= input.stages) {
      return badInput("part {} is on stage {} of {}", part,
                      input.stageOfPart[part], input.stages);
    }
  }
  size_t events = 0;
  for (const auto &list : input.events) {
    events += list.size();
  }
  // Tables are as long as the runs that must be there.
  if (events / input.microBatches < static_cast<size_t>(input.parts)) {
    return badInput("{} events cannot run {} parts for {} micro-batches",
                    events, input.parts, input.microBatches);
  }
  // Nodes and edges of the event graph are numbered in 32 bits.
  if (events > size_t{1} << 27) {
    return badInput("a schedule of {} events is too long", events);
  }
  return Status::ok();
}

/// What is wrong with the numbers of an event, if anything.
std::string badField(const ScheduleGraphInput &input, int32_t stage,
                     const ScheduleEvent &event) {
  // A stage needs no more of either than it has events.
  const auto most = static_cast<int64_t>(input.events[stage].size());
  const bool runs = event.kind == Kind::Run;
  if (event.kind > Kind::Collective || event.work > Work::Weight) {
    return "is of an unknown kind";
  }
  if ((runs || isTransfer(event)) &&
      (event.part < 0 || event.part >= input.parts || event.microBatch < 0 ||
       event.microBatch >= input.microBatches)) {
    return fmt::format("there are {} parts and {} micro-batches", input.parts,
                       input.microBatches);
  }
  if (event.slot < -1 || event.slot >= (runs ? most : 0)) {
    return fmt::format("has slot {}", event.slot);
  }
  if (event.buffer < (isTransfer(event) ? 0 : -1) ||
      event.buffer >= (runs || isTransfer(event) ? most : 0)) {
    return fmt::format("has buffer {}", event.buffer);
  }
  if (isOperation(event) && event.communicator < 0) {
    return fmt::format("has communicator {}", event.communicator);
  }
  if (isTransfer(event) && event.work == Work::Weight) {
    return "a weight run has no result to move";
  }
  if (isTransfer(event) &&
      (event.peer < 0 || event.peer >= input.stages || event.peer == stage)) {
    return fmt::format("has stage {} of {} as its peer", event.peer,
                       input.stages);
  }
  return {};
}

/// Marks the runs of a schedule.
class RunTable {
public:
  explicit RunTable(const ScheduleGraphInput &input)
      : input(input), done(size_t{3} * input.parts * input.microBatches) {}

  /// What is wrong with running it now, if anything.
  std::string mark(int32_t stage, const ScheduleEvent &event) {
    if (input.stageOfPart[event.part] != stage) {
      return fmt::format("its part is on stage {}",
                         input.stageOfPart[event.part]);
    }
    if (!isExpected(event.work)) {
      return "the schedule has no such runs";
    }
    const size_t run = number(event.work, event.part, event.microBatch);
    const size_t runsOfWork = done.size() / 3;
    if (done[run] != 0) {
      return "runs a second time";
    }
    if (event.work != Work::Forward && done[run - runsOfWork] == 0) {
      return fmt::format("runs before its {}",
                         event.work == Work::Backward ? "forward" : "backward");
    }
    done[run] = 1;
    return {};
  }

  Status checkComplete() const {
    for (Work work : {Work::Forward, Work::Backward, Work::Weight}) {
      for (int32_t part = 0; isExpected(work) && part < input.parts; ++part) {
        for (int32_t m = 0; m < input.microBatches; ++m) {
          if (done[number(work, part, m)] == 0) {
            return badInput("stage {}: {} does not run",
                            input.stageOfPart[part], runName(work, part, m));
          }
        }
      }
    }
    return Status::ok();
  }

private:
  bool isExpected(Work work) const {
    return work == Work::Forward ||
           (input.train && (work == Work::Backward || input.splitsWeight));
  }
  size_t number(Work work, int32_t part, int32_t microBatch) const {
    return (static_cast<size_t>(work) * input.parts + part) *
               input.microBatches +
           microBatch;
  }

  const ScheduleGraphInput &input;
  std::vector<uint8_t> done;
};

} // namespace

std::string runName(Work work, int32_t part, int32_t microBatch) {
  return fmt::format("{} of part {}, micro-batch {}", workName(work), part,
                     microBatch);
}

std::string valueName(Work work, int32_t part, int32_t microBatch) {
  return fmt::format("{} of part {}, micro-batch {}",
                     work == Work::Forward ? "activation" : "gradient", part,
                     microBatch);
}

std::string eventName(const ScheduleGraphInput &input,
                      const EventPlace &place) {
  return fmt::format("stage {}, event {}: {}", place.stage, place.index,
                     kindName(input, place));
}

Status checkFields(const ScheduleGraphInput &input) {
  MEGA_RETURN_IF_ERROR(checkShape(input));
  for (int32_t stage = 0; stage < input.stages; ++stage) {
    const auto &events = input.events[stage];
    for (size_t i = 0; i < events.size(); ++i) {
      if (const std::string wrong = badField(input, stage, events[i]);
          !wrong.empty()) {
        return badInput("{}: {}",
                        eventName(input, {stage, static_cast<int32_t>(i)}),
                        wrong);
      }
    }
  }
  return Status::ok();
}

Status checkRuns(const ScheduleGraphInput &input) {
  RunTable table(input);
  for (int32_t stage = 0; stage < input.stages; ++stage) {
    const auto &events = input.events[stage];
    for (size_t i = 0; i < events.size(); ++i) {
      if (events[i].kind != Kind::Run) {
        continue;
      }
      if (const std::string wrong = table.mark(stage, events[i]);
          !wrong.empty()) {
        return badInput("{}: {}",
                        eventName(input, {stage, static_cast<int32_t>(i)}),
                        wrong);
      }
    }
  }
  return table.checkComplete();
}

Status checkWaits(const ScheduleGraphInput &input) {
  for (int32_t stage = 0; stage < input.stages; ++stage) {
    const auto &events = input.events[stage];
    const auto count = static_cast<int32_t>(events.size());
    /// By event: the one that waits for it.
    std::vector<int32_t> waited(events.size(), -1);
    for (int32_t i = 0; i < count; ++i) {
      if (events[i].kind != Kind::Wait) {
        continue;
      }
      const int32_t event = events[i].event;
      if (event < 0 || event >= i || !isOperation(events[event])) {
        return badInput("{}: waits for what was not started",
                        eventName(input, {stage, i}));
      }
      if (waited[event] >= 0) {
        return badInput("{}: event {} has waited for it already",
                        eventName(input, {stage, i}), waited[event]);
      }
      waited[event] = i;
    }
    for (int32_t i = 0; i < count; ++i) {
      if (isTransfer(events[i]) && waited[i] < 0) {
        return badInput("{}: nothing waits for it",
                        eventName(input, {stage, i}));
      }
    }
  }
  return Status::ok();
}

} // namespace mega::schedule
