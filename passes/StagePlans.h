//===- StagePlans.h - The plans of a pipeline's stages ----------*- C++ -*-===//
//
// Stages of a pipeline are much alike. Those that run the same blocks, as often
// and in the same place between first and last, are of one kind: one of them is
// compiled, and the plans of the others are its own with other numbers: which
// layers, which part, how many slots, which schedule.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_PASSES_STAGEPLANS_H
#define MEGA_PASSES_STAGEPLANS_H

#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "passes/Placement.h"
#include "runtime/plan/Plan.h"

#include <functional>
#include <map>
#include <string>

namespace mega {

class StagePlans {
public:
  /// `model` has been through the phases that concern all stages.
  static StatusOr<StagePlans> create(tfm::ModelOp model,
                                     const CompileOptions &options);

  /// The whole plan. `compileStage` compiles one stage; it is called once for
  /// each kind.
  mlir::FailureOr<plan::PlanT>
  assemble(const std::function<mlir::FailureOr<plan::PlanT>(int64_t stage)>
               &compileStage) const;
  /// Every application is on one stage, in order (Placement.h).
  Status verify(const plan::PlanT &whole) const {
    return verifyPlacement(whole, blocks);
  }

private:
  /// Equal for stages of one kind.
  std::string kindOf(int64_t stage) const;
  /// Number of the first application of a chunk.
  int64_t firstOf(int64_t stage, int64_t chunk) const;
  /// The plan of `stage`, of the same kind as `other`, which is compiled.
  plan::PlanT restage(const plan::PlanT &compiled, int64_t other,
                      int64_t stage) const;
  void setSchedule(plan::PlanT &plan, int64_t stage) const;

  PipelineRequest request;
  /// Blocks by application.
  std::vector<std::string> blocks;
  /// Applications by list and place in it.
  std::map<std::pair<std::string, int64_t>, int64_t> layers;
  std::vector<int64_t> begin;
  PipelineSchedule train;
  PipelineSchedule eval;
};

} // namespace mega

#endif // MEGA_PASSES_STAGEPLANS_H
