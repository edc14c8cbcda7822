#include "runtime/plan/StepTimes.h"

#include "runtime/plan/StepExecution.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

namespace mega {
namespace {

uint64_t flopsOf(const plan::Plan &stage, const plan::Program &program) {
  uint64_t flops = 0;
  for (const plan::Call &call : elements(program.calls())) {
    flops += stage.functions()->Get(call.function())->flops() * call.count();
  }
  return flops;
}

/// What the programs of every stage take.
std::vector<std::vector<double>> costsOf(const plan::Plan &plan) {
  std::vector<std::vector<double>> costs;
  double longest = 0;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    const plan::Plan &stage = stagePlan(plan, s);
    std::vector<double> own(length(stage.programs()), 0);
    for (const plan::Action &action : trainActions(stage)) {
      const plan::Program &program = *stage.programs()->Get(action.program());
      if (isRun(program.kind())) {
        double &cost = own[action.program()];
        cost = static_cast<double>(flopsOf(stage, program));
        if (program.kind() == plan::ActionKind::Forward) {
          longest = std::max(longest, cost);
        }
      }
    }
    costs.push_back(std::move(own));
  }
  for (auto &stage : costs) {
    for (double &cost : stage) {
      cost = longest > 0 ? cost / longest : 0;
    }
  }
  return costs;
}

/// Plays the stages side by side.
class Simulation {
public:
  explicit Simulation(const plan::Plan &plan)
      : costs(costsOf(plan)), count(stageCount(plan)) {
    for (int64_t s = 0; s < count; ++s) {
      const plan::Plan &stage = stagePlan(plan, s);
      Stage &own = stages.emplace_back();
      own.actions = trainActions(stage);
      for (uint32_t p = 0; p < length(stage.programs()); ++p) {
        own.transfers.push_back(stage.programs()->Get(p)->kind() ==
                                        plan::ActionKind::Transfer
                                    ? transferOf(stage, p)
                                    : StageTransfer{});
      }
    }
  }

  StepTimes run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t s = 0; s < count; ++s) {
        while (stages[s].times.size() < stages[s].actions.size() && step(s)) {
          moved = true;
        }
      }
    }
    StepTimes result;
    for (Stage &stage : stages) {
      result.total = std::max(result.total, stage.clock);
      stage.times.resize(stage.actions.size(), {stage.clock, stage.clock});
      result.stages.push_back(std::move(stage.times));
    }
    return result;
  }

private:
  /// Transfers of one direction between two stages: when each side has started
  /// the k-th.
  struct Channel {
    std::vector<double> sent;
    std::vector<double> awaited;
  };
  struct Started {
    const Channel *channel;
    size_t number;
  };
  struct Stage {
    std::span<const plan::Action> actions;
    /// By program.
    std::vector<StageTransfer> transfers;
    std::vector<ActionTime> times;
    double clock = 0;
    /// What it has started and not awaited, by sends, group, shift and buffer.
    std::map<std::tuple<bool, int64_t, int64_t, uint32_t>, std::deque<Started>>
        started;
  };

  /// False if the next action of the stage has to wait for another stage.
  bool step(int64_t index) {
    Stage &stage = stages[index];
    const plan::Action &action = stage.actions[stage.times.size()];
    const StageTransfer &transfer = stage.transfers[action.program()];
    const double begin = stage.clock;
    const bool sends = transfer.kernel == Kernel::SendStart ||
                       transfer.kernel == Kernel::SendWait;
    switch (transfer.kernel) {
    case Kernel::SendStart:
    case Kernel::ReceiveStart: {
      Channel &channel = channelOf(index, transfer, sends);
      auto &posted = sends ? channel.sent : channel.awaited;
      stage.started[keyOf(action, transfer, sends)].push_back(
          {&channel, posted.size()});
      posted.push_back(begin);
      break;
    }
    case Kernel::SendWait:
    case Kernel::ReceiveWait: {
      auto &waiting = stage.started[keyOf(action, transfer, sends)];
      if (waiting.empty()) {
        break;
      }
      const auto [channel, number] = waiting.front();
      if (channel->sent.size() <= number || channel->awaited.size() <= number) {
        return false;
      }
      stage.clock =
          std::max({begin, channel->sent[number], channel->awaited[number]});
      waiting.pop_front();
      break;
    }
    default:
      stage.clock += costs[index][action.program()];
    }
    stage.times.push_back({begin, stage.clock});
    return true;
  }

  static std::tuple<bool, int64_t, int64_t, uint32_t>
  keyOf(const plan::Action &action, const StageTransfer &transfer, bool sends) {
    return {sends, transfer.group, transfer.shift, action.buffer()};
  }

  Channel &channelOf(int64_t stage, const StageTransfer &transfer, bool sends) {
    const int64_t other = ((stage + transfer.shift) % count + count) % count;
    return channels[{transfer.group, sends ? stage : other,
                     sends ? other : stage}];
  }

  const std::vector<std::vector<double>> costs;
  const int64_t count;
  std::vector<Stage> stages;
  /// By group, source and destination.
  std::map<std::tuple<int64_t, int64_t, int64_t>, Channel> channels;
};

} // namespace

std::span<const plan::Action> trainActions(const plan::Plan &stage) {
  return elements(stage.entry_points()->Get(0)->stages()->Get(0)->actions());
}

StepTimes plannedTimes(const plan::Plan &plan) {
  return Simulation(plan).run();
}

double busyTime(const plan::Plan &plan, const StepTimes &times, int64_t stage) {
  const plan::Plan &own = stagePlan(plan, stage);
  const auto actions = trainActions(own);
  const auto &when = times.stages[static_cast<size_t>(stage)];
  double busy = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    if (isRun(own.programs()->Get(actions[i].program())->kind())) {
      busy += when[i].end - when[i].begin;
    }
  }
  return busy;
}

double idleFraction(const plan::Plan &plan, const StepTimes &times) {
  double busy = 0;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    busy += busyTime(plan, times, s);
  }
  const double all = times.total * static_cast<double>(stageCount(plan));
  return all > 0 ? 1 - busy / all : 0;
}

} // namespace mega
