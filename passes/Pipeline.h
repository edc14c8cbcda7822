//===- Pipeline.h - What passes share about pipelines -----------*- C++ -*-===//
#ifndef MEGA_PASSES_PIPELINE_H
#define MEGA_PASSES_PIPELINE_H

#include "dialects/tfm/Tfm.h"
#include "passes/Partition.h"
#include "runtime/plan/PipelineSchedule.h"

#include <string>

namespace mega {

/// Module attribute: the stage that is left of the model (PartitionPipeline).
inline constexpr llvm::StringLiteral kStageAttrName = "pipe.stage";
/// That stage; 0 where the model was not cut.
int64_t stageOf(mlir::ModuleOp module);

/// Module attribute: what forward, backward and weight of all applications
/// take, in thousandths of the forward (SplitWeight).
inline constexpr llvm::StringLiteral kCostsAttrName = "pipe.costs";

/// The pipeline of `--pp`, `--vpp` and `--schedule` (`1f1b`, `gpipe`,
/// `interleaved`, `zero-bubble`; empty: 1f1b, or interleaved for several
/// chunks). Code::Failed if they do not fit each other.
StatusOr<PipelineRequest> pipelineRequest(mlir::ModuleOp module, int64_t pp,
                                          int64_t vpp, llvm::StringRef schedule,
                                          int64_t microBatches);

/// Time of the ops of a block or function: matrix products, or moving memory
/// where that takes longer. A processor makes about 64 operations while it
/// moves a byte.
double timeOf(mlir::Block &body);

/// The units of a model and their costs.
llvm::SmallVector<PartitionUnit> partitionUnits(tfm::ModelOp model);
/// Where the parts begin: `stages` as in `E 3L | 4L H`, or balanced if that is
/// empty.
StatusOr<std::vector<int64_t>> partitionOf(llvm::ArrayRef<PartitionUnit> units,
                                           int64_t parts,
                                           llvm::StringRef stages);

/// The program that an action of a schedule runs: `step.forward`,
/// `step.backward.1` of the second chunk, `activation.send`, ...
std::string programName(const PipelineRequest &pipeline,
                        const ScheduleAction &action);

} // namespace mega

#endif // MEGA_PASSES_PIPELINE_H
