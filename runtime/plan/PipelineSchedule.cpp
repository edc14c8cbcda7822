//===- PipelineSchedule.cpp - Slots, buffers and transfers ----------------===//
#include "runtime/plan/PipelineSchedule.h"

#include "runtime/plan/PipelineRuns.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace mega {
namespace {

/// Hands out the lowest free number.
class NumberPool {
public:
  int32_t take() {
    if (free.empty()) {
      return count++;
    }
    const int32_t number = free.top();
    free.pop();
    return number;
  }
  void give(int32_t number) { free.push(number); }
  /// Numbers ever taken: as many as were taken at one time, at most.
  int32_t size() const { return count; }

private:
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> free;
  int32_t count = 0;
};

/// Per run of a stage: its slot.
struct SlotAssignment {
  std::vector<int32_t> slots;
  int32_t count = 0;
};

SlotAssignment assignSlots(const PipelineRequest &request,
                           const std::vector<Step> &order) {
  if (!request.train) {
    return {std::vector<int32_t>(order.size(), 0), 1};
  }
  const Work last = splitsWeight(request) ? Work::Weight : Work::Backward;
  NumberPool pool;
  std::vector<int32_t> frames(request.chunks * request.microBatches);
  SlotAssignment assignment;
  for (const Step &step : order) {
    int32_t &slot = frames[step.chunk * request.microBatches + step.microBatch];
    if (step.work == Work::Forward) {
      slot = pool.take();
    } else if (step.work == last) {
      pool.give(slot);
    }
    assignment.slots.push_back(slot);
  }
  assignment.count = pool.size();
  return assignment;
}

/// Adds the transfers of one stage to its runs.
class StageEmitter {
public:
  StageEmitter(const PipelineRuns &runs,
               const std::vector<std::vector<int32_t>> &levels,
               const std::vector<Step> &order, int32_t stage,
               const std::vector<int32_t> &slots)
      : runs(runs), levels(levels), order(order), stage(stage), slots(slots),
        buffers(order.size(), -1), waits(order.size()) {}

  void emit(std::vector<ScheduleAction> &actions);
  int32_t bufferCount() const { return pool.size(); }

private:
  void add(ScheduleOp op, size_t run);
  void receive(size_t run);
  void placeBuffer(size_t run);
  void send(size_t run);
  size_t lastBeforeWait(size_t run, const RunPlace &reader) const;

  const PipelineRuns &runs;
  const std::vector<std::vector<int32_t>> &levels;
  const std::vector<Step> &order;
  const int32_t stage;
  const std::vector<int32_t> &slots;
  NumberPool pool;
  /// By run.
  std::vector<int32_t> buffers;
  /// By run: the runs whose Send is waited for after it.
  std::vector<std::vector<size_t>> waits;
  std::vector<ScheduleAction> *actions = nullptr;
};

void StageEmitter::add(ScheduleOp op, size_t run) {
  const Step &step = order[run];
  actions->push_back({op, step.work, step.chunk, step.microBatch,
                      op == ScheduleOp::Run ? slots[run] : -1, buffers[run]});
}

void StageEmitter::receive(size_t run) {
  if (run >= order.size()) {
    return;
  }
  if (const auto source = runs.producer(stage, order[run]);
      source && source->stage != stage) {
    buffers[run] = pool.take();
    add(ScheduleOp::Receive, run);
  }
}

void StageEmitter::placeBuffer(size_t run) {
  const auto source = runs.producer(stage, order[run]);
  if (source && source->stage != stage) {
    add(ScheduleOp::WaitReceive, run);
  } else if (source) {
    buffers[run] = buffers[source->index];
  } else if (order[run].work != Work::Weight) {
    buffers[run] = pool.take();
  }
}

/// The run after which this stage may wait for the Send of `run`: the next one,
/// unless the reader would not have posted its Receive by then. It does so
/// before the run that precedes its own; waiting there is free of deadlock if
/// all that waits on the way is at lower levels.
size_t StageEmitter::lastBeforeWait(size_t run, const RunPlace &reader) const {
  const std::vector<int32_t> &own = levels[stage];
  auto next =
      own.begin() + static_cast<ptrdiff_t>(std::min(run + 2, order.size()));
  if (reader.index > 1) {
    next = std::upper_bound(next, own.end(),
                            levels[reader.stage][reader.index - 1]);
  }
  return static_cast<size_t>(next - own.begin()) - 1;
}

void StageEmitter::send(size_t run) {
  const auto reader = runs.consumer(stage, order[run]);
  if (reader && reader->stage != stage) {
    add(ScheduleOp::Send, run);
    waits[lastBeforeWait(run, *reader)].push_back(run);
  } else if (!reader && buffers[run] != -1) {
    pool.give(buffers[run]);
  }
}

void StageEmitter::emit(std::vector<ScheduleAction> &result) {
  actions = &result;
  receive(0);
  for (size_t run = 0; run < order.size(); ++run) {
    receive(run + 1);
    placeBuffer(run);
    add(ScheduleOp::Run, run);
    send(run);
    for (size_t sent : waits[run]) {
      add(ScheduleOp::WaitSend, sent);
      pool.give(buffers[sent]);
    }
  }
}

} // namespace

StatusOr<PipelineSchedule> makeSchedule(const PipelineRequest &request) {
  MEGA_ASSIGN_OR_RETURN(const auto orders, orderOf(request));
  const PipelineRuns runs(request, orders);
  const std::vector<std::vector<int32_t>> levels = runs.levels();
  PipelineSchedule schedule;
  schedule.stages.resize(orders.size());
  for (size_t stage = 0; stage < orders.size(); ++stage) {
    const SlotAssignment slots = assignSlots(request, orders[stage]);
    StageEmitter emitter(runs, levels, orders[stage],
                         static_cast<int32_t>(stage), slots.slots);
    emitter.emit(schedule.stages[stage]);
    schedule.slots.push_back(slots.count);
    schedule.buffers.push_back(emitter.bufferCount());
  }
  return schedule;
}

} // namespace mega
