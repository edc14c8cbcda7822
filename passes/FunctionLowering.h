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
  /// The axes, major to minor, whose ranks hold pieces that follow each other.
  llvm::SmallVector<Axis, 2> cutOver;
};

/// The buffer of `type` at an address.
mlir::Value stateBuffer(mlir::OpBuilder &builder, mlir::Location loc,
                        exec::BufferType type, const StateAddress &address);

/// A saved value: bytes from the start of the block's frame, its type, and the
/// buffer that it lies in, maybe with others side by side: its number among
/// those of the frame, its offset and its size.
struct FrameSlot {
  int64_t offset;
  exec::BufferType type;
  size_t buffer;
  int64_t bufferOffset;
  int64_t bufferBytes;
};

/// What functions share: parameters, counters, constants, frames.
class ModuleState {
public:
  explicit ModuleState(mlir::ModuleOp module);

  /// Address of a parameter of `block` (empty for a tfm.shared) as functions
  /// read it: in the region `weights` if its bucket has a compute type, else in
  /// `parameters`.
  mlir::FailureOr<StateAddress> weight(mlir::Operation *user,
                                       llvm::StringRef block,
                                       llvm::StringRef name) const;
  /// Address of its gradient.
  mlir::FailureOr<StateAddress> gradient(mlir::Operation *user,
                                         llvm::StringRef block,
                                         llvm::StringRef name) const;
  /// Address of a counter, which exists from the first time it is named.
  StateAddress counter(llvm::StringRef name, exec::BufferType type);
  /// Address of a rotation table; equal ones are one constant.
  StateAddress ropeTable(tfm::RopeTableOp table);

  const Mesh &mesh() const { return mesh_; }
  /// Number of the group over these axes, major to minor; it exists from the
  /// first time it is asked for.
  int64_t groupOf(llvm::ArrayRef<Axis> axes);

  /// Frames of blocks, written by the forward, read by the backward, which may
  /// save more for the weight.
  std::map<std::string, std::vector<FrameSlot>> frames;

  /// A function and a program that fill the constants and make the copies of
  /// parameters to compute with, if there are any.
  void emitSetup(mlir::OpBuilder &builder);
  void emitCounters(mlir::OpBuilder &builder);
  void emitGroups(mlir::OpBuilder &builder);

private:
  struct Counter {
    int64_t offset;
    exec::BufferType type;
  };
  struct Constant {
    int64_t integer;
    llvm::SmallVector<double> floats;
    exec::BufferType type;
    int64_t offset;
  };
  struct Member {
    StateAddress weight;
    StateAddress gradient;
  };
  mlir::FailureOr<Member> find(mlir::Operation *user, llvm::StringRef block,
                               llvm::StringRef name) const;

  mlir::ModuleOp module;
  Mesh mesh_;
  std::vector<llvm::SmallVector<Axis>> groups;
  std::map<std::pair<std::string, std::string>, Member> members;
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
