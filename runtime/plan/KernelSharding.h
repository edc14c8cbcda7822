//===- KernelSharding.h - Which layouts a launch may have -------*- C++ -*-===//
//
// The sharding rules (ShardingRule.h) of the kernels, and where a rank's piece
// begins for the kernels that have to know. The tfm ops state the same rules;
// here they are stated for launches, fused and accumulating ones included, so
// that a plan is proved without the IR it came from.
//
// A launch does not say whether a value that all ranks hold is invariant or
// replicated: that decides where a gradient is to be reduced, and the plan's
// gradients are compared with the derivative of its forward (V17). So both are
// one state here, `whole`.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_KERNELSHARDING_H
#define MEGA_RUNTIME_PLAN_KERNELSHARDING_H

#include "runtime/plan/Kernels.h"
#include "runtime/plan/Layout.h"
#include "runtime/plan/ShardingRule.h"

#include <span>
#include <string>
#include <vector>

namespace mega {

/// A launch with the layouts of its operands.
struct ShardedLaunch {
  Kernel kernel;
  LaunchSignature signature;
  std::span<const Layout> layouts;
};

/// `layout` with invariant axes of more than one rank made replicated.
Layout whole(Layout layout, const Mesh &mesh);

/// Of every kernel but zero and the conversions. Its operands are those that
/// the kernel reads, its results the others, accumulators among them, without
/// scratch, each in the order of the kernel.
StatusOr<ShardingRule> shardingRule(Kernel kernel,
                                    const LaunchSignature &signature);

/// Whether the layouts obey the kernel's rule. An accumulator has the layout of
/// what is added to it. Conversions are not looked at.
Status checkSharding(const ShardedLaunch &launch, const Mesh &mesh);

/// The axes over which a conversion changes the layout, the dimension that they
/// stop cutting and the one that they begin to cut (-1 for none), if it is the
/// change from x to y.
struct ConversionShape {
  std::vector<Axis> axes;
  int fromDim = -1;
  int toDim = -1;
  /// Whether they cut it in a zigzag.
  bool fromZigzag = false;
  bool toZigzag = false;

  /// The integer "dim" of all but all_to_all, which has both.
  int dim() const { return fromDim >= 0 ? fromDim : toDim; }
};
StatusOr<ConversionShape> conversionShape(const ShardedLaunch &launch,
                                          const Mesh &mesh);

/// By how much an integer grows from one rank of an axis to the next.
struct CoordinateFactor {
  Axis axis;
  int64_t coefficient;

  friend bool operator==(const CoordinateFactor &,
                         const CoordinateFactor &) = default;
};
/// What the kernel's integer number `integer` is on a rank: these terms, plus 0
/// if it says where the rank's piece begins, plus the launch's own number if it
/// says anything else. Refused if the operand is cut in a way that the kernel
/// has no integer for.
StatusOr<std::vector<CoordinateFactor>>
coordinateFactors(const ShardedLaunch &launch, size_t integer,
                  const Mesh &mesh);
/// Whether the integer says where a piece begins.
bool isPieceStart(Kernel kernel, size_t integer);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_KERNELSHARDING_H
