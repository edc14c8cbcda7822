#include "runtime/plan/ZeroBubble.h"

#include <algorithm>
#include <limits>
#include <utility>

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

/// ZB-V: plays the stages side by side. Whenever one is free, it takes, of what
/// can run, B before F before W: what other stages wait for first. Of several B
/// it takes the oldest micro-batch, that of chunk 0; of several F that of chunk
/// 1, after which B can begin.
class ListSchedule {
public:
  explicit ListSchedule(const PipelineRequest &request)
      : request(request), most(request.stages * request.chunks),
        ends(3, std::vector<std::vector<int64_t>>(partCount(request))),
        frames(request.stages, 0), free(request.stages, 0) {}

  std::vector<std::vector<Step>> run();

private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  struct Choice {
    Step step{};
    int64_t begin = kNever;
  };

  /// By micro-batch: when the runs of a part that were chosen end.
  std::vector<int64_t> &endsOf(Work work, int64_t part) {
    return ends[static_cast<size_t>(work)][part];
  }
  int64_t readyAt(int64_t stage, Work work, int64_t chunk);
  bool hasRoom(int64_t stage, int64_t chunk) const;
  Choice choose(int64_t stage);
  void complete(int64_t stage, const Choice &choice);

  const PipelineRequest &request;
  /// Frames alive on a stage.
  const int64_t most;
  std::vector<std::vector<std::vector<int64_t>>> ends;
  std::vector<int32_t> frames;
  /// When each stage has done what it has chosen.
  std::vector<int64_t> free;
};

/// A later chunk always finds room: the last frame is kept for it.
bool ListSchedule::hasRoom(int64_t stage, int64_t chunk) const {
  return frames[stage] + (request.chunks - 1 - chunk) < most;
}

/// When what the next run of a chunk needs is there.
int64_t ListSchedule::readyAt(int64_t stage, Work work, int64_t chunk) {
  const int64_t part = partOf(request, stage, chunk);
  const size_t m = endsOf(work, part).size();
  const auto endOf = [&](Work before, int64_t of) {
    const std::vector<int64_t> &known = endsOf(before, of);
    return m < known.size() ? known[m] : kNever;
  };
  if (m == static_cast<size_t>(request.microBatches)) {
    return kNever;
  }
  switch (work) {
  case Work::Forward:
    return !hasRoom(stage, chunk) ? kNever
           : part == 0            ? 0
                                  : endOf(Work::Forward, part - 1);
  case Work::Backward:
    return std::max(
        endOf(Work::Forward, part),
        part + 1 == partCount(request) ? 0 : endOf(Work::Backward, part + 1));
  case Work::Weight:
    break;
  }
  return endOf(Work::Backward, part);
}

ListSchedule::Choice ListSchedule::choose(int64_t stage) {
  constexpr std::pair<Work, int32_t> kPreferred[] = {
      {Work::Backward, 0}, {Work::Backward, 1}, {Work::Forward, 1},
      {Work::Forward, 0},  {Work::Weight, 0},   {Work::Weight, 1}};
  Choice best;
  for (const auto &[work, chunk] : kPreferred) {
    const int64_t ready = readyAt(stage, work, chunk);
    const int64_t begin =
        ready == kNever ? kNever : std::max(ready, free[stage]);
    if (begin < best.begin) {
      best = {{work, chunk,
               static_cast<int32_t>(
                   endsOf(work, partOf(request, stage, chunk)).size())},
              begin};
    }
  }
  return best;
}

void ListSchedule::complete(int64_t stage, const Choice &choice) {
  const Work work = choice.step.work;
  free[stage] = choice.begin + costOf(request, work);
  endsOf(work, partOf(request, stage, choice.step.chunk))
      .push_back(free[stage]);
  if (work == Work::Forward) {
    ++frames[stage];
  } else if (work == Work::Weight) {
    --frames[stage];
  }
}

std::vector<std::vector<Step>> ListSchedule::run() {
  std::vector<std::vector<Step>> orders(request.stages);
  std::vector<Choice> next(request.stages);
  for (int64_t stage = 0; stage < request.stages; ++stage) {
    next[stage] = choose(stage);
  }
  while (true) {
    const auto first = std::min_element(
        next.begin(), next.end(),
        [](const Choice &a, const Choice &b) { return a.begin < b.begin; });
    if (first->begin == kNever) {
      return orders;
    }
    const int64_t stage = first - next.begin();
    complete(stage, *first);
    orders[stage].push_back(first->step);
    // Parts next to each other are on the same stage or on neighbours.
    for (int64_t s = std::max<int64_t>(stage - 1, 0);
         s <= std::min(stage + 1, request.stages - 1); ++s) {
      next[s] = choose(s);
    }
  }
}

} // namespace

std::vector<std::vector<Step>> zeroBubbleOrder(const PipelineRequest &request) {
  if (request.chunks == 2) {
    return ListSchedule(request).run();
  }
  std::vector<std::vector<Step>> orders(request.stages);
  for (int64_t stage = 0; stage < request.stages; ++stage) {
    orders[stage] = oneChunkOrder(request, stage);
  }
  return orders;
}

} // namespace mega
