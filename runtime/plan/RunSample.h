//===- RunSample.h - Which runs stand for the others ------------*- C++ -*-===//
//
// A call runs its function once for every layer of a stack, at addresses that
// move by one stride from run to run. Where a plan does the same with all
// layers of a stack, the first and the last of them stand for those between:
// what is proved for a stack without the middle holds for the whole stack, by
// induction over its runs. The cost of the proof does not grow with depth,
// then.
//
// Runs are left out of a stage only if
//
// - every forward, backward, weight and evaluation that runs one of its
//   applications runs the same range of them, in one call;
// - in every region, what these calls move from run to run moves by one stride
//   and stays, in each run, inside a cell of that size; no cell is touched by
//   anything else that a micro-batch runs, and slots move all cells of a region
//   past each other;
// - what prologue, finish and setup touch, and what entries of the parameter
//   table cover, is whole cells, but for a boundary: then the cells around it
//   are among those that stand for the others.
//
// Then what a run of the middle touches, and what else touches that, lies to
// its cell as it does for a run that is executed. Names, of which each
// parameter has its own, are compared for all of them.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_RUNSAMPLE_H
#define MEGA_RUNTIME_PLAN_RUNSAMPLE_H

#include "runtime/plan/Plan.h"

#include <map>
#include <vector>

namespace mega {

class RunSample {
public:
  /// All runs.
  RunSample() = default;
  /// Of a checked plan of one stage.
  explicit RunSample(const plan::Plan &plan);

  /// The runs of `call`, in a program of `kind`, that are executed, in order.
  std::vector<uint32_t> runsOf(const plan::Call &call,
                               plan::ActionKind kind) const;
  /// Whether a byte of a region is that of a run that is left out.
  bool isLeftOut(uint32_t region, int64_t byte) const;

private:
  friend class SampleBuilder;

  /// Cells of one stride in a region, one for each run.
  struct Cells {
    uint32_t region;
    int64_t begin;
    int64_t stride;
    uint32_t count;
    /// Of what is touched in the first cell.
    int64_t end;

    int64_t last() const { return end + stride * (int64_t{count} - 1); }
  };

  /// By number of runs, which of them are executed; others execute all.
  std::map<uint32_t, std::vector<uint32_t>> executed;
  std::vector<Cells> cells;
};

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_RUNSAMPLE_H
