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

  int64_t globalBatch() const { return microBatch * microBatches; }
};

/// A named phase: a pipeline that ends in a pass stating its postcondition.
struct Phase {
  llvm::StringRef name;
  void (*build)(mlir::OpPassManager &, const CompileOptions &);
};
/// All phases, in order.
llvm::ArrayRef<Phase> phases();
/// Registers every phase as `--mega-phase-<phase>`.
void registerPhases();

} // namespace mega

#endif // MEGA_PASSES_PASSES_H
