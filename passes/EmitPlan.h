//===- EmitPlan.h - exec and pipe IR to a plan file -------------*- C++ -*-===//
#ifndef MEGA_PASSES_EMITPLAN_H
#define MEGA_PASSES_EMITPLAN_H

#include "passes/Passes.h"
#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mega {

/// The plan of `module`, which has been through all phases: one to one, nothing
/// is decided here. `flags` is the configuration as the user would write it,
/// `source` the text of the model. Reports errors at the op they concern.
mlir::FailureOr<plan::PlanT> emitPlan(mlir::ModuleOp module,
                                      const CompileOptions &options,
                                      llvm::StringRef flags,
                                      llvm::StringRef source);

} // namespace mega

#endif // MEGA_PASSES_EMITPLAN_H
