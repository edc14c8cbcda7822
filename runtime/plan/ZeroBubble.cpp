#include "runtime/plan/ZeroBubble.h"

#include <algorithm>
#include <optional>

namespace mega {
namespace {

/// ZB-H1: 1F1B, where a W follows a B once stage r has put off r of them. It is
/// B that stages above wait for, so the last ones put off most, and as their
/// warm-up is shorter by as much, all have P frames.
std::vector<Step> oneChunkOrder(const PipelineRequest &request, int64_t stage) {
  const int64_t warmUp = request.stages - 1 - stage;
  std::vector<Step> order;
  order.reserve(3 * request.microBatches);
  int32_t forwards = 0, backwards = 0, weights = 0;
  while (backwards < request.microBatches) {
    if (forwards < request.microBatches) {
      order.push_back({Work::Forward, 0, forwards++});
    }
    if (forwards > warmUp || forwards == request.microBatches) {
      order.push_back({Work::Backward, 0, backwards++});
      if (backwards - weights > stage) {
        order.push_back({Work::Weight, 0, weights++});
      }
    }
  }
  while (weights < request.microBatches) {
    order.push_back({Work::Weight, 0, weights++});
  }
  return order;
}

/// ZB-V: lets the stages run in lock step, one run of unit length at a time.
/// Of what can run, a stage takes B before F before W: what other stages wait
/// for first. Of several B it takes the oldest micro-batch, that of chunk 0; of
/// several F that of chunk 1, after which B can begin.
class LockStep {
public:
  explicit LockStep(const PipelineRequest &request)
      : request(request), most(request.stages * request.chunks),
        done(3, std::vector<int32_t>(partCount(request), 0)),
        frames(request.stages, 0) {}

  std::vector<std::vector<Step>> run();

private:
  int32_t &count(Work work, int64_t part) {
    return done[static_cast<size_t>(work)][part];
  }
  bool isReady(int64_t stage, Work work, int64_t chunk);
  bool hasRoom(int64_t stage, int64_t chunk) const;
  std::optional<Step> choose(int64_t stage);
  void complete(int64_t stage, const Step &step);

  const PipelineRequest &request;
  /// Frames alive on a stage.
  const int64_t most;
  /// By work and part: micro-batches that are through, in ascending order.
  std::vector<std::vector<int32_t>> done;
  std::vector<int32_t> frames;
};

/// A later chunk always finds room: the last frame is kept for it.
bool LockStep::hasRoom(int64_t stage, int64_t chunk) const {
  return frames[stage] + (request.chunks - 1 - chunk) < most;
}

bool LockStep::isReady(int64_t stage, Work work, int64_t chunk) {
  const int64_t part = partOf(request, stage, chunk);
  const int32_t microBatch = count(work, part);
  if (microBatch == request.microBatches) {
    return false;
  }
  switch (work) {
  case Work::Forward:
    return (part == 0 || count(Work::Forward, part - 1) > microBatch) &&
           hasRoom(stage, chunk);
  case Work::Backward:
    return count(Work::Forward, part) > microBatch &&
           (part + 1 == partCount(request) ||
            count(Work::Backward, part + 1) > microBatch);
  case Work::Weight:
    break;
  }
  return count(Work::Backward, part) > microBatch;
}

std::optional<Step> LockStep::choose(int64_t stage) {
  constexpr std::pair<Work, int64_t> kPreferred[] = {
      {Work::Backward, 0}, {Work::Backward, 1}, {Work::Forward, 1},
      {Work::Forward, 0},  {Work::Weight, 0},   {Work::Weight, 1}};
  for (const auto &[work, chunk] : kPreferred) {
    if (isReady(stage, work, chunk)) {
      return Step{work, static_cast<int32_t>(chunk),
                  count(work, partOf(request, stage, chunk))};
    }
  }
  return std::nullopt;
}

void LockStep::complete(int64_t stage, const Step &step) {
  ++count(step.work, partOf(request, stage, step.chunk));
  if (step.work == Work::Forward) {
    ++frames[stage];
  } else if (step.work == Work::Weight) {
    --frames[stage];
  }
}

std::vector<std::vector<Step>> LockStep::run() {
  std::vector<std::vector<Step>> orders(request.stages);
  std::vector<std::optional<Step>> chosen(request.stages);
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t stage = 0; stage < request.stages; ++stage) {
      chosen[stage] = choose(stage);
    }
    for (int64_t stage = 0; stage < request.stages; ++stage) {
      if (chosen[stage]) {
        complete(stage, *chosen[stage]);
        orders[stage].push_back(*chosen[stage]);
        moved = true;
      }
    }
  }
  return orders;
}

} // namespace

std::vector<std::vector<Step>> zeroBubbleOrder(const PipelineRequest &request) {
  if (request.chunks == 2) {
    return LockStep(request).run();
  }
  std::vector<std::vector<Step>> orders(request.stages);
  for (int64_t stage = 0; stage < request.stages; ++stage) {
    orders[stage] = oneChunkOrder(request, stage);
  }
  return orders;
}

} // namespace mega
