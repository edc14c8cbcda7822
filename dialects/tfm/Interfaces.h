//===- Interfaces.h - What ops and passes say to each other -----*- C++ -*-===//
//
// The three op interfaces and the contexts they are called with. The passes
// implement the contexts (passes/Differentiate.cpp, passes/LowerToExec.cpp); an
// op only ever sees these.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_DIALECTS_TFM_INTERFACES_H
#define MEGA_DIALECTS_TFM_INTERFACES_H

#include "dialects/dist/Dist.h"
#include "runtime/plan/Kernels.h"
#include "runtime/plan/ShardingRule.h"
#include "runtime/plan/StageGroup.h"

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

namespace mega::tfm {

struct OpCost {
  /// Floating-point operations of matrix products, a multiply-add being two:
  /// the field's convention, which leaves element-wise work out.
  double flops = 0;
  /// Bytes read and written.
  double bytes = 0;

  OpCost &operator+=(const OpCost &other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// Bytes of all operands and results: the cost of a memory-bound op.
OpCost streamingCost(mlir::Operation *op);

/// The type of a value; every value of this dialect is a ranked tensor.
mlir::RankedTensorType tensor(mlir::Value value);

/// Module attribute: the documents of a row are kept apart (PlaceTokens).
inline constexpr llvm::StringLiteral kPackedAttrName = "tfm.packed";

/// Whether the operand says where tokens are: positions or segments.
bool isPlaces(mlir::OpOperand &operand);

/// Whether a value is read from a parameter: by tfm.param or tfm.use.
bool isParameter(mlir::Value value);

/// The type of the gradient of a forward value: the dual of its layout. That of
/// a parameter is f32 whatever is computed in, because it is a sum over
/// micro-batches.
mlir::RankedTensorType gradientType(mlir::Value forward);

/// f32 statistics of `x`: its dimensions `dims`, cut as they are.
mlir::RankedTensorType statisticsType(mlir::Value x, llvm::ArrayRef<int> dims);

/// `positions` or segments, if not null, are [batch, sequence] of `x`.
llvm::LogicalResult verifyPlaces(mlir::Operation *op, mlir::Value x,
                                 mlir::Value places, llvm::StringRef what);

/// A soft cap is positive, or 0: none.
llvm::LogicalResult verifySoftcap(mlir::Operation *op, mlir::FloatAttr cap);

/// Gives the conversions of the dist dialect the interfaces of layers.
void attachConversionInterfaces(mlir::MLIRContext *context);

/// The key attribute of a Randomized op: a hash of block and name.
mlir::IntegerAttr randomKey(llvm::StringRef block, mlir::StringAttr name);

/// Reverse-mode differentiation of one block.
class GradientContext {
public:
  virtual ~GradientContext() = default;

  /// Builder at the current end of the backward function.
  virtual mlir::OpBuilder &builder() = 0;
  /// The gradient of a forward value, or null if nothing depends on it.
  virtual mlir::Value gradientOf(mlir::Value forward) = 0;
  /// A forward value for use in the backward: parameters and inactive inputs
  /// are named again, anything else is saved.
  virtual mlir::Value use(mlir::Value forward) = 0;
  /// The same of an optional operand; null if there is none.
  mlir::Value useAny(mlir::Value forward) {
    return forward ? use(forward) : mlir::Value();
  }
  /// Whether anyone wants the gradient of `forward`.
  virtual bool isActive(mlir::Value forward) = 0;
  /// Adds `gradient` to what flows to `forward`. For a parameter it becomes a
  /// tfm.accumulate_gradient.
  virtual void addGradient(mlir::Value forward, mlir::Value gradient) = 0;
};

/// One operand of a launch before buffers exist: a tensor value, several as
/// neighbours, or scratch of the launch itself.
struct ExecOperand {
  enum class Kind {
    /// The buffer of values[0].
    Value,
    /// values as column slices, side by side in the rows of one buffer.
    Columns,
    /// Parameters or gradients stacked: their rows follow each other.
    Rows,
    /// Contiguous memory that dies with the launch.
    Scratch,
    /// Part of a state region ("parameters", "gradients", ...).
    State,
    /// A named scalar that lives through a step (tfm.record).
    Counter
  };
  Kind kind = Kind::Value;
  llvm::SmallVector<mlir::Value, 3> values;
  /// Of Scratch, State and Counter.
  BufferType type;
  /// Region or counter.
  llvm::StringRef name;
  /// Elements from the start of the region.
  int64_t offset = 0;
  /// Of State: null, or how it is laid out; and the axes, major to minor, whose
  /// ranks hold pieces of it that follow each other.
  dist::LayoutAttr layout;
  llvm::SmallVector<Axis, 2> cutOver;

  ExecOperand(mlir::Value value) : values({value}) {}
  static ExecOperand columns(mlir::ValueRange values);
  static ExecOperand rows(mlir::ValueRange values);
  static ExecOperand scratchBuffer(BufferType type);
  static ExecOperand state(llvm::StringRef region, int64_t offset,
                           BufferType type);
  static ExecOperand counter(llvm::StringRef name, BufferType type);

private:
  ExecOperand() = default;
};

/// An integer of a launch: `value`, plus for every term its factor times the
/// rank's coordinate on its axis.
struct ExecInteger {
  struct Term {
    Axis axis;
    int64_t factor;
  };
  int64_t value;
  llvm::SmallVector<Term, 2> terms;

  ExecInteger(int64_t value) : value(value) {}
};

/// Collects the launches of one function. The types of its values are what one
/// rank holds.
class ExecContext {
public:
  virtual ~ExecContext() = default;

  /// Runs `kernel`; operands in the order of its spec.
  virtual void launch(Kernel kernel, llvm::ArrayRef<ExecOperand> operands,
                      llvm::ArrayRef<ExecInteger> integers = {},
                      llvm::ArrayRef<double> floats = {}) = 0;
  /// `result` is `operand` with another shape: no data moves.
  virtual void alias(mlir::Value result, mlir::Value operand) = 0;
  /// `result` accumulates onto `operand` and takes over its memory.
  virtual void onto(mlir::Value result, mlir::Value operand) = 0;
  /// `gradient` is added to the gradient of `target` (a parameter name or the
  /// symbol of a shared one), in place if its kernel accumulates.
  virtual void accumulateInto(mlir::Value gradient, mlir::Attribute target) = 0;
  /// `value` is wanted in the counter `name`.
  virtual void record(mlir::Value value, llvm::StringRef name) = 0;

  virtual const Mesh &mesh() = 0;
  /// The type of the whole tensor.
  virtual mlir::RankedTensorType wholeType(mlir::Value value) = 0;
  /// Number of the group of ranks that differ on `axes` only, major to minor.
  virtual int64_t groupOf(llvm::ArrayRef<Axis> axes) = 0;
};

class BucketOp;
/// The bucket whose gradient `gradient` is, through conversions; null if it is
/// something else.
BucketOp bucketOfGradient(mlir::Value gradient);
/// The memory of a value with the bucket's gradient: where it accumulates, or
/// the rank's piece of it.
ExecOperand bucketGradient(BucketOp bucket, mlir::Value gradient);

/// Where the rank's piece of dimension `dim` of `value` begins in the whole.
ExecInteger pieceStart(ExecContext &context, mlir::Value value, int dim);

} // namespace mega::tfm

#include "dialects/tfm/TfmInterfaces.h.inc"

#endif // MEGA_DIALECTS_TFM_INTERFACES_H
