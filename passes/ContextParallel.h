//===- ContextParallel.h - Sequences over ranks -----------------*- C++ -*-===//
//
// What --cp makes of a model: in which order a sequence is cut over the ranks
// of cp, and how attention sees the keys of the others. Three ways:
//
//   gather       every rank gathers all keys and values
//   all-to-all   ranks trade: all of the sequence for some of the heads, and
//                back (Jacobs et al., 2023); needs heads that cp divides
//   ring         keys and values come by in turn, while those that have come
//                are computed with (Liu, Zaharia, Abbeel, 2023)
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_PASSES_CONTEXTPARALLEL_H
#define MEGA_PASSES_CONTEXTPARALLEL_H

#include "runtime/plan/Layout.h"

#include "mlir/IR/BuiltinOps.h"

namespace mega {

enum class CpMethod { None, Ring, Gather, AllToAll };

struct ContextParallel {
  CpMethod method = CpMethod::None;
  /// Whether a sequence is zigzag over cp: if all attention is causal, and the
  /// data loader does not balance packed rows itself.
  bool zigzag = false;
};

/// For the module's mesh. `method` is `ring`, `gather`, `all-to-all` or empty:
/// the one that keeps ranks waiting least. An error, with the legal values, for
/// sequences that do not divide and heads that cannot be traded.
mlir::FailureOr<ContextParallel> chooseContextParallel(mlir::ModuleOp module,
                                                       const Mesh &mesh,
                                                       bool sequenceParallel,
                                                       llvm::StringRef method);

} // namespace mega

#endif // MEGA_PASSES_CONTEXTPARALLEL_H
