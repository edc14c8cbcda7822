//===- CallEffects.h - What one call does to memory -------------*- C++ -*-===//
//
// The lowest level of the verifier: the launches of a function, at the
// addresses of one call, executed over abstract memory. Done once for a call,
// however often it repeats its function: run i only moves a buffer by
// i * perRun bytes.
//
// Proved here:
// - (V1) a launch reads nothing from scratch that no launch of this run wrote;
// - (V2) written operands of a launch do not overlap each other, nor an operand
//   that is read, but for the kernel's in-place pairs at one address, in every
//   run;
// - (V3) what is read is one value: no part of it was overwritten by a later
//   result, it has the element type it was written with, and no result is
//   overwritten before anything read it, or at all where a forward saved it.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_CALLEFFECTS_H
#define MEGA_RUNTIME_PLAN_CALLEFFECTS_H

#include "runtime/plan/ByteSet.h"
#include "runtime/plan/Kernels.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/Status.h"

#include <algorithm>
#include <array>
#include <compare>
#include <string>
#include <vector>

namespace mega {

/// Memory that slots and micro-batches address alike: offsets in it move by the
/// same amount.
struct MemorySpace {
  uint32_t region = 0;
  int64_t perSlot = 0;
  int64_t perMicroBatch = 0;

  friend auto operator<=>(const MemorySpace &, const MemorySpace &) = default;
};

/// One operand of one launch.
struct Site {
  uint32_t program = 0;
  uint32_t call = 0;
  uint32_t launch = 0;
  uint32_t operand = 0;
};
/// `program f: call 1 of layer.forward: launch 3, gemm: operand c (loc)`.
std::string describe(const plan::Plan &plan, const Site &site);
/// The same without the operand: `... launch 3, all_reduce (loc)`.
std::string describeLaunch(const plan::Plan &plan, const Site &site);

/// An operand's bytes in run 0 of its call, slot 0, micro-batch 0.
struct Touch {
  MemorySpace space;
  int64_t perRun = 0;
  Box box;
  BufferType type;
  Access access = Access::Read;
  /// Operands of the launch that it may replace in place; -1: none.
  std::array<int, 2> replaces = {-1, -1};
  /// Written in place of one of them.
  bool inPlace = false;
  Kernel kernel = Kernel::Zero;
  Site site;

  bool isRead() const {
    return access == Access::Read || access == Access::ReadWrite;
  }
  bool isWritten() const { return access != Access::Read; }
  bool mayReplace(int operand) const {
    return std::find(replaces.begin(), replaces.end(), operand) !=
           replaces.end();
  }
};

/// The operands of launch `launch` of the function that call `call` of program
/// `program` of a checked plan runs, in the order of its kernel.
std::vector<Touch> touchesOf(const plan::Plan &plan, uint32_t program,
                             uint32_t call, uint32_t launch);

struct CallEffects {
  /// Bytes outside of scratch that the call needs from before.
  std::vector<Touch> reads;
  /// Bytes outside of scratch that it leaves behind.
  std::vector<Touch> writes;
};

/// Memory whose contents end with the function.
inline bool isScratch(plan::Part part) {
  return part == plan::Part::Scratch || part == plan::Part::Workspace;
}
inline plan::Part partOf(const plan::Plan &plan, uint32_t region) {
  return plan.regions()->Get(region)->part();
}

/// Effects of call `call` of program `program` of a checked plan;
/// Code::BadInput names the launch that violates V1 to V3.
StatusOr<CallEffects> analyseCall(const plan::Plan &plan, uint32_t program,
                                  uint32_t call);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_CALLEFFECTS_H
