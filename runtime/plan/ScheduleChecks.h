//===- ScheduleChecks.h - The proofs of ScheduleGraph.h ---------*- C++ -*-===//
#ifndef MEGA_RUNTIME_PLAN_SCHEDULECHECKS_H
#define MEGA_RUNTIME_PLAN_SCHEDULECHECKS_H

#include "runtime/plan/ScheduleGraph.h"

#include <span>
#include <string>

namespace mega::schedule {

struct EventPlace {
  int32_t stage;
  int32_t index;
};

inline const ScheduleEvent &at(const ScheduleGraphInput &input,
                               const EventPlace &place) {
  return input.events[place.stage][place.index];
}
inline bool isTransfer(const ScheduleEvent &event) {
  return event.kind == ScheduleEvent::Kind::Send ||
         event.kind == ScheduleEvent::Kind::Receive;
}
/// Whether it goes on after it was issued, on a communicator.
inline bool isOperation(const ScheduleEvent &event) {
  return isTransfer(event) || event.kind == ScheduleEvent::Kind::Collective;
}

/// "backward of part 3, micro-batch 2".
std::string runName(Work work, int32_t part, int32_t microBatch);
/// "activation of part 0, micro-batch 2", the result of a run.
std::string valueName(Work work, int32_t part, int32_t microBatch);
/// "stage 1, event 4: receive of activation of part 0, micro-batch 2".
std::string eventName(const ScheduleGraphInput &input, const EventPlace &place);

/// All numbers are in range: whatever follows may use them as indices.
Status checkFields(const ScheduleGraphInput &input);
/// Proof 5.
Status checkRuns(const ScheduleGraphInput &input);
/// Proof 3.
Status checkWaits(const ScheduleGraphInput &input);
/// Proof 4.
Status checkBuffers(const ScheduleGraphInput &input);
Status checkSlots(const ScheduleGraphInput &input);

/// Operations of several stages that start together: group g is
/// members[ends[g - 1]] up to members[ends[g]].
struct Rendezvous {
  std::vector<EventPlace> members;
  std::vector<size_t> ends;
};
/// Proof 1.
StatusOr<Rendezvous> matchOperations(const ScheduleGraphInput &input);
/// Proof 2.
Status checkDeadlock(const ScheduleGraphInput &input,
                     const Rendezvous &rendezvous);

} // namespace mega::schedule

#endif // MEGA_RUNTIME_PLAN_SCHEDULECHECKS_H
