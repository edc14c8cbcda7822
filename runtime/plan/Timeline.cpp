#include "runtime/plan/Timeline.h"

#include <algorithm>

namespace mega {
namespace {

double costOf(const PartCost &cost, Work work) {
  return work == Work::Forward    ? cost.forward
         : work == Work::Backward ? cost.backward
                                  : cost.weight;
}

class Simulation {
public:
  Simulation(const PipelineRequest &request, const PipelineSchedule &schedule,
             std::span<const PartCost> perPart, double transferSeconds)
      : request(request), schedule(schedule), perPart(perPart),
        transferSeconds(transferSeconds), positions(request.stages, 0),
        clocks(request.stages, 0),
        transfers(2 * partCount(request) * request.microBatches),
        channels(2 * request.stages * request.stages, 0) {
    timeline.stages.resize(request.stages);
  }

  Timeline run();

private:
  static constexpr double kUnknown = -1;
  /// Of one value, from the stage that made it to the one that reads it.
  struct Transfer {
    double sent = kUnknown;
    double awaited = kUnknown;
    double end = kUnknown;
  };

  bool step(int64_t stage);
  void play(int64_t stage, const ScheduleAction &action);
  void post(int64_t stage, const ScheduleAction &action);
  int64_t partRead(int64_t stage, const ScheduleAction &action) const;
  Transfer &transferOf(int64_t stage, const ScheduleAction &action);
  double &channelOf(Work work, int64_t from);

  const PipelineRequest &request;
  const PipelineSchedule &schedule;
  const std::span<const PartCost> perPart;
  const double transferSeconds;
  /// Per stage: its next action, and the time.
  std::vector<size_t> positions;
  std::vector<double> clocks;
  std::vector<Transfer> transfers;
  /// Per communicator: when it is free.
  std::vector<double> channels;
  Timeline timeline;
};

/// The part whose result the transfer moves.
int64_t Simulation::partRead(int64_t stage,
                             const ScheduleAction &action) const {
  const int64_t own = partOf(request, stage, action.chunk);
  const bool sends =
      action.op == ScheduleOp::Send || action.op == ScheduleOp::WaitSend;
  return sends ? own : action.work == Work::Forward ? own - 1 : own + 1;
}

Simulation::Transfer &Simulation::transferOf(int64_t stage,
                                             const ScheduleAction &action) {
  const int64_t value = static_cast<int64_t>(action.work) * partCount(request) +
                        partRead(stage, action);
  return transfers[value * request.microBatches + action.microBatch];
}

double &Simulation::channelOf(Work work, int64_t from) {
  const int64_t to = work == Work::Forward ? from + 1 : from - 1;
  const int64_t pair =
      stageOf(request, from) * request.stages + stageOf(request, to);
  return channels[2 * pair + static_cast<int64_t>(work)];
}

void Simulation::post(int64_t stage, const ScheduleAction &action) {
  Transfer &transfer = transferOf(stage, action);
  (action.op == ScheduleOp::Send ? transfer.sent : transfer.awaited) =
      clocks[stage];
  if (transfer.sent != kUnknown && transfer.awaited != kUnknown) {
    double &channel = channelOf(action.work, partRead(stage, action));
    transfer.end =
        std::max({transfer.sent, transfer.awaited, channel}) + transferSeconds;
    channel = transfer.end;
  }
}

void Simulation::play(int64_t stage, const ScheduleAction &action) {
  const int64_t part = partOf(request, stage, action.chunk);
  const double begin = clocks[stage];
  clocks[stage] += costOf(perPart[part], action.work);
  timeline.stages[stage].push_back({action.work, static_cast<int32_t>(part),
                                    action.chunk, action.microBatch, begin,
                                    clocks[stage]});
}

/// False if the next action of the stage has to wait for another stage.
bool Simulation::step(int64_t stage) {
  const ScheduleAction &action = schedule.stages[stage][positions[stage]];
  switch (action.op) {
  case ScheduleOp::Run:
    play(stage, action);
    break;
  case ScheduleOp::Receive:
  case ScheduleOp::Send:
    post(stage, action);
    break;
  case ScheduleOp::WaitReceive:
  case ScheduleOp::WaitSend:
    const double end = transferOf(stage, action).end;
    if (end == kUnknown) {
      return false;
    }
    clocks[stage] = std::max(clocks[stage], end);
    break;
  }
  ++positions[stage];
  return true;
}

Timeline Simulation::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t stage = 0; stage < request.stages; ++stage) {
      while (positions[stage] < schedule.stages[stage].size() && step(stage)) {
        moved = true;
      }
    }
  }
  timeline.total = *std::max_element(clocks.begin(), clocks.end());
  return std::move(timeline);
}

} // namespace

double Timeline::busy(size_t stage) const {
  double sum = 0;
  for (const TimelineRun &run : stages[stage]) {
    sum += run.end - run.begin;
  }
  return sum;
}

double Timeline::bubbleFraction() const {
  double sum = 0;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    sum += busy(stage);
  }
  return (total * static_cast<double>(stages.size()) - sum) / sum;
}

Timeline simulate(const PipelineRequest &request,
                  const PipelineSchedule &schedule,
                  std::span<const PartCost> perPart, double transferSeconds) {
  return Simulation(request, schedule, perPart, transferSeconds).run();
}

} // namespace mega
