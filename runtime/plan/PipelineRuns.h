//===- PipelineRuns.h - How the runs of a pipeline depend -------*- C++ -*-===//
//
// Where every run of an order is, and where its operand comes from and its
// result goes to. Flat arrays: a run is found by work, part and micro-batch.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_PIPELINERUNS_H
#define MEGA_RUNTIME_PLAN_PIPELINERUNS_H

#include "runtime/plan/PipelineSchedule.h"

#include <optional>

namespace mega {

/// The run at `index` of the order of `stage`.
struct RunPlace {
  int32_t stage;
  int32_t index;
};

class PipelineRuns {
public:
  /// Both are kept by reference. `orders` has every run once (orderOf).
  PipelineRuns(const PipelineRequest &request,
               const std::vector<std::vector<Step>> &orders);

  /// The run whose result `step` reads, and the one that reads its result; none
  /// at the ends of the model and for Weight, which only uses what its stage
  /// saved.
  std::optional<RunPlace> producer(int64_t stage, const Step &step) const;
  std::optional<RunPlace> consumer(int64_t stage, const Step &step) const;

  /// Per stage and run: the number of runs on the longest chain that must end
  /// before it, along orders and from producers to consumers.
  std::vector<std::vector<int32_t>> levels() const;

private:
  int64_t number(Work work, int64_t part, int64_t microBatch) const {
    return (static_cast<int64_t>(work) * partCount(request) + part) *
               request.microBatches +
           microBatch;
  }
  std::optional<RunPlace> neighbour(int64_t stage, const Step &step,
                                    int64_t forwardDistance) const;

  const PipelineRequest &request;
  const std::vector<std::vector<Step>> &orders;
  /// By number: the index of the run in the order of its stage.
  std::vector<int32_t> indices;
};

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_PIPELINERUNS_H
