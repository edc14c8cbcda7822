//===- FunctionLowering.h - One function to exec ----------------*- C++ -*-===//
#ifndef MEGA_PASSES_FUNCTIONLOWERING_H
#define MEGA_PASSES_FUNCTIONLOWERING_H

#include "dialects/exec/Exec.h"
#include "dialects/tfm/Tfm.h"

#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <string>
#include <vector>

namespace mega {

/// Where a piece of state lies: bytes from the start of its region.
struct StateAddress {
  std::string region;
  int64_t offset = 0;
  int64_t perInstance = 0;
};

/// A saved value: bytes from the start of the block's frame, and its type.
struct FrameSlot {
  int64_t offset;
  exec::BufferType type;
};

/// What functions share: parameters, counters, constants, frames.
class ModuleState {
public:
  explicit ModuleState(mlir::ModuleOp module);

  /// Address of a parameter of `block` (empty for a tfm.shared) in `region`.
  mlir::FailureOr<StateAddress> parameter(mlir::Operation *user,
                                          llvm::StringRef block,
                                          llvm::StringRef name,
                                          llvm::StringRef region) const;
  /// Address of a counter, which exists from the first time it is named.
  StateAddress counter(llvm::StringRef name, exec::BufferType type);
  /// Address of the rotation table of `base` and `type`.
  StateAddress ropeTable(double base, exec::BufferType type);

  /// Frames of blocks, written by the forward, read by the backward.
  std::map<std::string, std::vector<FrameSlot>> frames;

  /// A function and a program that fill the constants, if there are any.
  void emitSetup(mlir::OpBuilder &builder);
  void emitCounters(mlir::OpBuilder &builder);

private:
  struct Counter {
    int64_t offset;
    exec::BufferType type;
  };
  struct Constant {
    double base;
    exec::BufferType type;
    int64_t offset;
  };
  mlir::Location loc;
  std::map<std::pair<std::string, std::string>, StateAddress> parameters;
  llvm::MapVector<std::string, Counter, std::map<std::string, unsigned>>
      counters;
  std::vector<Constant> constants;
  int64_t constantBytes = 0;
};

/// Lowers `function`; the exec.function has its name.
mlir::LogicalResult lowerFunction(mlir::OpBuilder &builder,
                                  tfm::FunctionOp function, ModuleState &state);

/// Frames, scratch buffers and regions start at multiples of this (bytes).
inline constexpr int64_t kBufferAlignment = 256;

} // namespace mega

#endif // MEGA_PASSES_FUNCTIONLOWERING_H
