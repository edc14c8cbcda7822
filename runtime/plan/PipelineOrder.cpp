//===- PipelineOrder.cpp - Which run follows which, per stage -------------===//
#include "runtime/plan/PipelineSchedule.h"
#include "runtime/plan/ZeroBubble.h"

#include <algorithm>

namespace mega {
namespace {

using Order = std::vector<Step>;

/// Runs of one pipeline, at most: numbers of runs fit 32 bits with room.
constexpr int64_t kMostForwards = int64_t{1} << 26;

int64_t groupSizeOf(const PipelineRequest &request) {
  return request.groupSize == 0 ? request.stages : request.groupSize;
}

bool isLegalGroup(int64_t size, int64_t stages, int64_t microBatches) {
  const int64_t rest = microBatches % size;
  return stages <= size && size <= microBatches &&
         (rest == 0 || rest >= stages);
}

std::string legalGroups(const PipelineRequest &request) {
  constexpr int kShown = 16;
  std::string list;
  int found = 0;
  for (int64_t n = request.stages; n <= request.microBatches; ++n) {
    if (!isLegalGroup(n, request.stages, request.microBatches)) {
      continue;
    }
    if (++found > kShown) {
      return list + ", ...";
    }
    list += fmt::format("{}{}", list.empty() ? "" : ", ", n);
  }
  return list;
}

Status checkGroups(const PipelineRequest &request) {
  const int64_t size = groupSizeOf(request);
  if (request.microBatches < request.stages) {
    return usageError("an interleaved schedule of {} stages cannot take {} "
                      "micro-batches (legal: {} or more)",
                      request.stages, request.microBatches, request.stages);
  }
  if (!isLegalGroup(size, request.stages, request.microBatches)) {
    return usageError("{} micro-batches cannot go through {} stages in groups "
                      "of {}{} (legal: {})",
                      request.microBatches, request.stages, size,
                      request.groupSize == 0 ? ", the number of stages" : "",
                      legalGroups(request));
  }
  return Status::ok();
}

Status checkChunks(const PipelineRequest &request) {
  switch (request.kind) {
  case ScheduleKind::GPipe:
  case ScheduleKind::OneForwardOneBackward:
    if (request.chunks != 1) {
      return usageError("a {} schedule cannot have {} chunks per stage (legal: "
                        "1)",
                        request.kind == ScheduleKind::GPipe ? "GPipe" : "1F1B",
                        request.chunks);
    }
    return Status::ok();
  case ScheduleKind::Interleaved:
    if (request.chunks == 1) {
      return usageError("an interleaved schedule cannot have 1 chunk per stage "
                        "(legal: 2 or more)");
    }
    return Status::ok();
  case ScheduleKind::ZeroBubble:
    if (request.chunks > 2) {
      return usageError("a zero-bubble schedule cannot have {} chunks per "
                        "stage (legal: 1, 2)",
                        request.chunks);
    }
    return Status::ok();
  }
  return usageError("schedule kind {} is unknown",
                    static_cast<int>(request.kind));
}

/// Chunk and micro-batch of every forward: a group goes through one chunk
/// after the other. Backwards follow the same table with the chunks reversed.
std::vector<Step> forwardTable(const PipelineRequest &request) {
  const int64_t size = groupSizeOf(request);
  std::vector<Step> table;
  table.reserve(request.microBatches * request.chunks);
  for (int64_t first = 0; first < request.microBatches; first += size) {
    const int64_t end = std::min(first + size, request.microBatches);
    for (int32_t chunk = 0; chunk < request.chunks; ++chunk) {
      for (int64_t m = first; m < end; ++m) {
        table.push_back({Work::Forward, chunk, static_cast<int32_t>(m)});
      }
    }
  }
  return table;
}

/// Forwards that a stage runs before its first backward, at most.
int64_t warmUpOf(const PipelineRequest &request, int64_t stage) {
  const int64_t below = request.stages - 1 - stage;
  switch (request.kind) {
  case ScheduleKind::OneForwardOneBackward:
    return below;
  case ScheduleKind::Interleaved:
    return 2 * below + (request.chunks - 1) * groupSizeOf(request);
  case ScheduleKind::GPipe:
  case ScheduleKind::ZeroBubble:
    break;
  }
  return request.microBatches;
}

/// Warm-up forwards, then a forward and a backward in turn, then backwards.
Order interleave(const std::vector<Step> &table, int64_t chunks,
                 int64_t warmUp) {
  const auto backward = [&](size_t k) {
    return Step{Work::Backward,
                static_cast<int32_t>(chunks - 1 - table[k].chunk),
                table[k].microBatch};
  };
  const size_t lead = std::min(table.size(), static_cast<size_t>(warmUp));
  Order order(table.begin(), table.begin() + static_cast<ptrdiff_t>(lead));
  order.reserve(2 * table.size());
  for (size_t k = lead; k < table.size(); ++k) {
    order.push_back(table[k]);
    order.push_back(backward(k - lead));
  }
  for (size_t k = table.size() - lead; k < table.size(); ++k) {
    order.push_back(backward(k));
  }
  return order;
}

} // namespace

int64_t partOf(const PipelineRequest &request, int64_t stage, int64_t chunk) {
  const bool turned =
      request.kind == ScheduleKind::ZeroBubble && chunk % 2 == 1;
  return turned ? (chunk + 1) * request.stages - 1 - stage
                : chunk * request.stages + stage;
}

int64_t stageOf(const PipelineRequest &request, int64_t part) {
  const int64_t along = part % request.stages;
  const bool turned = request.kind == ScheduleKind::ZeroBubble &&
                      chunkOf(request, part) % 2 == 1;
  return turned ? request.stages - 1 - along : along;
}

int64_t chunkOf(const PipelineRequest &request, int64_t part) {
  return part / request.stages;
}

Status checkRequest(const PipelineRequest &request) {
  const std::pair<const char *, int64_t> counts[] = {
      {"stages", request.stages},
      {"chunks per stage", request.chunks},
      {"micro-batches", request.microBatches}};
  int64_t most = kMostForwards;
  for (const auto &[name, count] : counts) {
    if (count < 1) {
      return usageError("a pipeline cannot have {} {} (legal: 1 or more)",
                        count, name);
    }
    if (count > most) {
      return usageError("a pipeline of {} stages, {} chunks and {} "
                        "micro-batches has more than {} forwards",
                        request.stages, request.chunks, request.microBatches,
                        kMostForwards);
    }
    most /= count;
  }
  if (request.groupSize < 0 ||
      (request.groupSize > 0 && request.kind != ScheduleKind::Interleaved)) {
    return usageError("{} micro-batches per group: {}", request.groupSize,
                      request.groupSize < 0
                          ? "a group cannot be less than empty"
                          : "only an interleaved schedule has groups");
  }
  MEGA_RETURN_IF_ERROR(checkChunks(request));
  // Forwards alone may go through in groups of any size.
  if (request.kind == ScheduleKind::Interleaved && request.train) {
    return checkGroups(request);
  }
  return Status::ok();
}

StatusOr<std::vector<Order>> orderOf(const PipelineRequest &request) {
  MEGA_RETURN_IF_ERROR(checkRequest(request));
  if (splitsWeight(request)) {
    return zeroBubbleOrder(request);
  }
  const std::vector<Step> table = forwardTable(request);
  if (!request.train) {
    return std::vector<Order>(request.stages, table);
  }
  std::vector<Order> orders(request.stages);
  for (int64_t stage = 0; stage < request.stages; ++stage) {
    orders[stage] = interleave(table, request.chunks, warmUpOf(request, stage));
  }
  return orders;
}

} // namespace mega
