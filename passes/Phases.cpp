//===- Phases.cpp - The phases of the compiler ----------------------------===//
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mega;

static void buildModel(OpPassManager &pm, const CompileOptions &options) {
  pm.addPass(createPlaceTokens({options.packed, options.cp}));
  pm.addPass(createBindShapes({options.batch(), options.sequence}));
  pm.addPass(createAssignPrecision({options.precision}));
  pm.addPass(createFuseSemantics());
  pm.addPass(createVerifyModel());
}

static void buildShard(OpPassManager &pm, const CompileOptions &options) {
  pm.addPass(
      createAnnotateLayouts({options.tp, options.cp, options.dp, options.pp}));
  pm.addPass(
      createInsertCollectives({options.sequenceParallel, options.cpMethod,
                               options.forbidImplicitReshard}));
  pm.addPass(createGroupLinears());
  pm.addPass(createVerifyLayouts());
}

static void buildDifferentiate(OpPassManager &pm,
                               const CompileOptions &options) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createChooseRecompute({options.recompute}));
  pm.addPass(createDifferentiate());
  pm.addPass(createCanonicalizerPass());
  if (options.schedule == "zero-bubble") {
    pm.addPass(createSplitWeight());
  }
  pm.addPass(createVerifyLayouts());
}

static void buildPartition(OpPassManager &pm, const CompileOptions &options) {
  if (options.pp > 1) {
    pm.addPass(createPartitionPipeline({options.pp, options.vpp, options.stage,
                                        options.schedule, options.stages}));
  }
}

static void buildState(OpPassManager &pm, const CompileOptions &options) {
  pm.addPass(createShardState({options.zero}));
  pm.addPass(createVerifyState());
}

static void buildSchedule(OpPassManager &pm, const CompileOptions &options) {
  pm.addPass(createEmitSchedule(
      {options.microBatches, options.pp, options.vpp, options.schedule}));
}

static void buildLower(OpPassManager &pm, const CompileOptions &) {
  pm.addPass(createFuseKernels());
  pm.addPass(createLowerToExec());
  pm.addPass(createPlanMemory());
}

ArrayRef<Phase> mega::phases() {
  static const Phase list[] = {
      {"model", buildModel},
      {"shard", buildShard},
      {"differentiate", buildDifferentiate},
      {"partition", buildPartition, true},
      {"state", buildState, true},
      {"schedule", buildSchedule, true},
      {"lower", buildLower, true},
  };
  return list;
}

namespace {
struct PhaseOptions : PassPipelineOptions<PhaseOptions> {
  Option<int64_t> sequence{*this, "sequence", llvm::cl::desc("sequence length"),
                           llvm::cl::init(0)};
  Option<int64_t> batch{*this, "batch",
                        llvm::cl::desc("rows of one micro-batch"),
                        llvm::cl::init(1)};
  Option<int64_t> microBatches{*this, "micro-batches",
                               llvm::cl::desc("micro-batches of one step"),
                               llvm::cl::init(1)};
  Option<std::string> precision{*this, "precision",
                                llvm::cl::desc("fp32 or bf16"),
                                llvm::cl::init("fp32")};
  Option<std::string> recompute{*this, "recompute",
                                llvm::cl::desc("none, selective or full"),
                                llvm::cl::init("none")};
  Option<bool> packed{*this, "packed",
                      llvm::cl::desc("documents do not see each other"),
                      llvm::cl::init(false)};
  Option<int64_t> tp{*this, "tp", llvm::cl::desc("tensor-parallel degree"),
                     llvm::cl::init(1)};
  Option<int64_t> cp{*this, "cp", llvm::cl::desc("context-parallel degree"),
                     llvm::cl::init(1)};
  Option<std::string> cpMethod{*this, "cp-method",
                               llvm::cl::desc("ring, gather or all-to-all")};
  Option<int64_t> dp{*this, "dp", llvm::cl::desc("data-parallel degree"),
                     llvm::cl::init(1)};
  Option<bool> sequenceParallel{*this, "sp",
                                llvm::cl::desc("sequence parallelism"),
                                llvm::cl::init(false)};
  Option<bool> forbid{*this, "forbid-implicit-reshard",
                      llvm::cl::desc("only dist.constrain moves data"),
                      llvm::cl::init(false)};
  Option<int64_t> zero{*this, "zero", llvm::cl::desc("0 or 1"),
                       llvm::cl::init(0)};
  Option<int64_t> pp{*this, "pp", llvm::cl::desc("stages of the pipeline"),
                     llvm::cl::init(1)};
  Option<int64_t> vpp{*this, "vpp", llvm::cl::desc("chunks of a stage"),
                      llvm::cl::init(1)};
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("1f1b, gpipe, interleaved or zero-bubble")};
  Option<std::string> stages{*this, "stages",
                             llvm::cl::desc("the parts, as in E 3L | 4L H")};
  Option<int64_t> stage{*this, "stage", llvm::cl::desc("the stage to compile"),
                        llvm::cl::init(0)};
};
} // namespace

void mega::registerPhases() {
  for (const Phase &phase : phases()) {
    PassPipelineRegistration<PhaseOptions>(
        ("mega-phase-" + phase.name).str(),
        ("the " + phase.name + " phase").str(),
        [build = phase.build](OpPassManager &pm, const PhaseOptions &options) {
          build(pm, {options.sequence, options.batch, options.microBatches,
                     options.precision, options.recompute, options.packed,
                     options.tp, options.cp, options.dp, options.cpMethod,
                     options.sequenceParallel, options.forbid, options.zero,
                     options.pp, options.vpp, options.schedule, options.stages,
                     options.stage});
        });
  }
}
