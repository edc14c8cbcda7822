//===- ScheduleEvents.cpp - A solved schedule, as events ------------------===//
#include "runtime/plan/ScheduleGraph.h"

#include <algorithm>

namespace mega {
namespace {

/// Turns the actions of one stage into events.
class StageEvents {
public:
  StageEvents(const PipelineRequest &request, int64_t stage, int64_t bytes)
      : request(request), stage(stage), bytes(bytes),
        posted(4 * request.chunks * request.microBatches, -1) {}

  ScheduleEvent event(const ScheduleAction &action, int32_t index);

private:
  ScheduleEvent transfer(const ScheduleAction &action, bool sends) const;
  /// Where the Send or the Receive of a run is.
  int32_t &postedAt(const ScheduleAction &action, bool sends) {
    const int64_t kind =
        2 * static_cast<int64_t>(action.work) + static_cast<int64_t>(sends);
    return posted[(kind * request.chunks + action.chunk) *
                      request.microBatches +
                  action.microBatch];
  }

  const PipelineRequest &request;
  const int64_t stage;
  const int64_t bytes;
  std::vector<int32_t> posted;
};

ScheduleEvent StageEvents::transfer(const ScheduleAction &action,
                                    bool sends) const {
  const int64_t own = partOf(request, stage, action.chunk);
  const int64_t along = action.work == Work::Forward ? 1 : -1;
  const int64_t other = sends ? own + along : own - along;
  const int64_t peer = stageOf(request, other);
  const int64_t source = sends ? stage : peer;
  const int64_t target = sends ? peer : stage;
  const auto communicator =
      static_cast<int32_t>(2 * (source * request.stages + target) +
                           static_cast<int64_t>(action.work));
  ScheduleEvent event{sends ? ScheduleEvent::Kind::Send
                            : ScheduleEvent::Kind::Receive,
                      action.work, static_cast<int32_t>(sends ? own : other),
                      action.microBatch};
  event.buffer = action.buffer;
  event.peer = static_cast<int32_t>(peer);
  event.communicator = communicator;
  event.queue = communicator;
  event.bytes = bytes;
  return event;
}

ScheduleEvent StageEvents::event(const ScheduleAction &action, int32_t index) {
  const bool sends =
      action.op == ScheduleOp::Send || action.op == ScheduleOp::WaitSend;
  switch (action.op) {
  case ScheduleOp::Run:
    return {ScheduleEvent::Kind::Run,
            action.work,
            static_cast<int32_t>(partOf(request, stage, action.chunk)),
            action.microBatch,
            action.slot,
            action.buffer};
  case ScheduleOp::Receive:
  case ScheduleOp::Send:
    postedAt(action, sends) = index;
    return transfer(action, sends);
  case ScheduleOp::WaitReceive:
  case ScheduleOp::WaitSend:
    break;
  }
  ScheduleEvent wait{ScheduleEvent::Kind::Wait};
  wait.event = postedAt(action, sends);
  return wait;
}

} // namespace

ScheduleGraphInput eventsOf(const PipelineRequest &request,
                            const PipelineSchedule &schedule, int64_t bytes) {
  ScheduleGraphInput input{static_cast<int32_t>(request.stages),
                           static_cast<int32_t>(partCount(request)),
                           static_cast<int32_t>(request.microBatches),
                           request.train,
                           splitsWeight(request),
                           {},
                           {}};
  for (int64_t part = 0; part < partCount(request); ++part) {
    input.stageOfPart.push_back(static_cast<int32_t>(stageOf(request, part)));
  }
  for (size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    StageEvents converter(request, static_cast<int64_t>(stage), bytes);
    std::vector<ScheduleEvent> events;
    for (const ScheduleAction &action : schedule.stages[stage]) {
      events.push_back(
          converter.event(action, static_cast<int32_t>(events.size())));
    }
    input.events.push_back(std::move(events));
  }
  return input;
}

} // namespace mega
