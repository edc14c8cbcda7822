//===- ScheduleGraph.h - Proves a pipeline schedule -------------*- C++ -*-===//
//
// What the stages of a pipeline do, in issue order, whoever wrote it down, and
// the proof that it is a training step (or an evaluation) that cannot hang:
//
// 1. the k-th operations that two stages have with each other on a communicator
//    match: one sends what the other receives, as many bytes; the k-th
//    collectives of a communicator are those of all stages that have any on it;
// 2. nothing waits for itself. Every event has a start and an end. The host of
//    a stage issues events in order; it blocks in a Wait and in a Run, not in
//    transfers and collectives. A queue runs its operations in issue order,
//    a communicator too, whatever their queues, as NCCL does. An operation ends
//    only once all its sides have started: sends block;
// 3. a Wait names an earlier operation of its stage; every transfer is waited
//    for exactly once, a collective at most once;
// 4. nothing is received into, or run in, a buffer that a transfer still uses
//    or whose value is yet to be read; a run finds its operand, received and
//    waited for, in its buffer, and a Send what it says it sends; a slot is
//    written by one forward and freed by the last run that reads it;
// 5. forward, backward and weight run exactly once for every part and
//    micro-batch, in that order, on the stage of the part.
//
// Time and memory are linear in the number of events, up to one sort of them
// by queue and communicator.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_SCHEDULEGRAPH_H
#define MEGA_RUNTIME_PLAN_SCHEDULEGRAPH_H

#include "runtime/plan/PipelineSchedule.h"

namespace mega {

/// Numbers are -1 where the kind of event has none.
struct ScheduleEvent {
  enum class Kind : uint8_t { Run, Send, Receive, Wait, Collective };
  Kind kind;
  /// Run: what runs. Send and Receive: the run whose result is moved, the same
  /// on both sides; the activation of a Forward, the gradient of a Backward.
  Work work = Work::Forward;
  int32_t part = -1;
  int32_t microBatch = -1;
  /// Run: where its frame is.
  int32_t slot = -1;
  /// Boundary buffer: of a Run, that of its operand and its result.
  int32_t buffer = -1;
  /// Send and Receive: the stage at the other end.
  int32_t peer = -1;
  /// Transfers and collectives; the same number on all members.
  int32_t communicator = -1;
  /// Operations of one queue of a stage run in issue order; -1: the queue of
  /// the Runs.
  int32_t queue = -1;
  /// Send and Receive.
  int64_t bytes = 0;
  /// Wait: the index of what it waits for, in the list of its stage.
  int32_t event = -1;
};

struct ScheduleGraphInput {
  int32_t stages;
  int32_t parts;
  int32_t microBatches;
  /// false: forwards only; slots are not checked.
  bool train;
  bool splitsWeight;
  std::vector<int32_t> stageOfPart;
  /// Per stage, in issue order.
  std::vector<std::vector<ScheduleEvent>> events;
};

/// Code::BadInput with a counter-example: stage, event, what it is, what is
/// wrong; for a deadlock the events that wait for each other.
Status verifySchedule(const ScheduleGraphInput &input);

/// What a schedule of the solver does, each transfer of `bytes` on the
/// communicator of its source, destination and kind and on a queue of its own.
ScheduleGraphInput eventsOf(const PipelineRequest &request,
                            const PipelineSchedule &schedule, int64_t bytes);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_SCHEDULEGRAPH_H
