#include "runtime/plan/PipelineRuns.h"

#include <algorithm>

namespace mega {

PipelineRuns::PipelineRuns(const PipelineRequest &request,
                           const std::vector<std::vector<Step>> &orders)
    : request(request), orders(orders),
      indices(3 * partCount(request) * request.microBatches, -1) {
  for (int64_t stage = 0; stage < request.stages; ++stage) {
    const std::vector<Step> &order = orders[stage];
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t part = partOf(request, stage, order[i].chunk);
      indices[number(order[i].work, part, order[i].microBatch)] =
          static_cast<int32_t>(i);
    }
  }
}

std::optional<RunPlace> PipelineRuns::neighbour(int64_t stage, const Step &step,
                                                int64_t forwardDistance) const {
  if (step.work == Work::Weight) {
    return std::nullopt;
  }
  const int64_t part =
      partOf(request, stage, step.chunk) +
      (step.work == Work::Forward ? forwardDistance : -forwardDistance);
  if (part < 0 || part >= partCount(request)) {
    return std::nullopt;
  }
  return RunPlace{static_cast<int32_t>(stageOf(request, part)),
                  indices[number(step.work, part, step.microBatch)]};
}

std::optional<RunPlace> PipelineRuns::producer(int64_t stage,
                                               const Step &step) const {
  return neighbour(stage, step, -1);
}

std::optional<RunPlace> PipelineRuns::consumer(int64_t stage,
                                               const Step &step) const {
  return neighbour(stage, step, 1);
}

std::vector<std::vector<int32_t>> PipelineRuns::levels() const {
  std::vector<std::vector<int32_t>> levels(orders.size());
  // Stages in turn, each as far as its producers are known.
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < orders.size(); ++stage) {
      std::vector<int32_t> &known = levels[stage];
      for (; known.size() < orders[stage].size(); moved = true) {
        int32_t level = known.empty() ? 0 : known.back() + 1;
        const auto source =
            producer(static_cast<int64_t>(stage), orders[stage][known.size()]);
        if (source) {
          const std::vector<int32_t> &from = levels[source->stage];
          if (from.size() <= static_cast<size_t>(source->index)) {
            break;
          }
          level = std::max(level, from[source->index] + 1);
        }
        known.push_back(level);
      }
    }
  }
  return levels;
}

} // namespace mega
