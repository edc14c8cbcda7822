//===- Passes.h - The passes and phases of the compiler ---------*- C++ -*-===//
#ifndef MEGA_PASSES_PASSES_H
#define MEGA_PASSES_PASSES_H

#include "dialects/Register.h"

#include "mlir/Pass/Pass.h"

#include <string>

namespace mlir {
class ModuleOp;
class OpPassManager;
} // namespace mlir

namespace mega {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// What one compilation is asked for, after defaults are applied.
struct CompileOptions {
  int64_t sequence = 0;
  int64_t microBatch = 1;
  int64_t microBatches = 1;
  /// fp32 or bf16.
  std::string precision = "fp32";
  /// none, selective or full.
  std::string recompute = "none";
  /// Documents of one row do not see each other.
  bool packed = false;
  /// Tensor-, context- and data-parallel degrees.
  int64_t tp = 1;
  int64_t cp = 1;
  int64_t dp = 1;
  /// How attention sees the keys of other ranks of cp: ring, gather or
  /// all-to-all; empty: by what moves.
  std::string cpMethod = {};
  /// Cut the residual stream along the sequence over tp.
  bool sequenceParallel = false;
  /// Refuse to move data where the model does not ask for it.
  bool forbidImplicitReshard = false;
  /// Optimizer states: 0 whole on every replica, 1 cut over dp and cp.
  int64_t zero = 0;
  /// Stages of the pipeline, and chunks of each.
  int64_t pp = 1;
  int64_t vpp = 1;
  /// 1f1b, gpipe, interleaved or zero-bubble; empty: by `vpp`.
  std::string schedule = {};
  /// The parts, as in `E 3L | 4L H`; empty: balanced.
  std::string stages = {};
  /// Of the phases that compile one stage.
  int64_t stage = 0;

  /// Rows of one micro-batch of all replicas.
  int64_t batch() const { return microBatch * dp; }
  int64_t globalBatch() const { return batch() * microBatches; }
};

/// A named phase: a pipeline that ends in a pass stating its postcondition.
struct Phase {
  llvm::StringRef name;
  void (*build)(mlir::OpPassManager &, const CompileOptions &);
  /// Compiles CompileOptions.stage, on a module of its own.
  bool ofStage = false;
};
/// All phases, in order.
llvm::ArrayRef<Phase> phases();
/// Registers every phase as `--mega-phase-<phase>`.
void registerPhases();

} // namespace mega

#endif // MEGA_PASSES_PASSES_H
