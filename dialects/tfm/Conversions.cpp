//===- Conversions.cpp - Layout conversions as layers ---------------------===//
//
// What the conversions of the dist dialect are to the passes over tfm ops: the
// identity on the global value, whose transpose the types derive.
//
//===----------------------------------------------------------------------===//
#include "dialects/tfm/Tfm.h"

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

namespace {

/// The memory of a converted value: its own, or that of a bucket's gradient.
ExecOperand operandOf(Value value) {
  BucketOp bucket = bucketOfGradient(value);
  return bucket ? bucketGradient(bucket, value) : ExecOperand(value);
}

/// Where pieces of `whole` along `dim` are packed.
ExecOperand packing(Value whole, int dim, bool zigzag) {
  const BufferType type = dist::bufferType(tensor(whole));
  return ExecOperand::scratchBuffer(
      BufferType(type.type, {collectiveScratch(type, dim, zigzag)}));
}

/// One launch, but for the conversions that are free. The ops' verifiers have
/// checked that the layouts differ by the conversion.
LogicalResult lowerConversion(Operation *op, ExecContext &context) {
  Value x = op->getOperand(0);
  Value y = op->getResult(0);
  const Layout from = dist::layoutOf(x.getType()).getLayout();
  auto change = changeBetween(from, dist::layoutOf(y.getType()).getLayout());
  if (!change.isOk()) {
    return op->emitOpError() << change.status().message();
  }
  // The axes of a set are in mesh order, the minor one first.
  if (change->fromDim < 0 && change->toDim < 0) {
    std::reverse(change->axes.begin(), change->axes.end());
  }
  const auto group = [&] { return context.groupOf(change->axes); };
  switch (change->conversion) {
  case Conversion::None:
  case Conversion::Replicate:
  case Conversion::AssumeInvariant:
    context.alias(y, x);
    return success();
  case Conversion::AllReduce:
    context.launch(Kernel::AllReduce, {operandOf(x), operandOf(y)},
                   {group(), static_cast<int64_t>(from.reduction)});
    return success();
  case Conversion::AllGather:
    context.launch(Kernel::AllGather,
                   {operandOf(x), operandOf(y),
                    packing(y, change->fromDim, change->fromZigzag)},
                   {group(), change->fromDim, change->fromZigzag});
    return success();
  case Conversion::ReduceScatter:
    context.launch(Kernel::ReduceScatter,
                   {operandOf(x), operandOf(y),
                    packing(x, change->toDim, change->toZigzag)},
                   {group(), change->toDim, change->toZigzag});
    return success();
  case Conversion::Slice:
    context.launch(Kernel::Slice, {operandOf(x), operandOf(y)},
                   {group(), change->toDim, change->toZigzag});
    return success();
  case Conversion::ToPartial:
    context.launch(Kernel::ToPartial, {operandOf(x), operandOf(y)},
                   {group(), change->fromDim, change->fromZigzag});
    return success();
  case Conversion::AllToAll: {
    const BufferType type = dist::bufferType(tensor(x));
    const int64_t scratch =
        allToAllScratch(type, dist::bufferType(tensor(y)), change->fromDim,
                        change->toDim, change->fromZigzag, change->toZigzag);
    context.launch(
        Kernel::AllToAll,
        {operandOf(x), operandOf(y),
         ExecOperand::scratchBuffer(BufferType(type.type, {scratch}))},
        {group(), change->fromDim, change->toDim, change->fromZigzag,
         change->toZigzag});
    return success();
  }
  }
  llvm_unreachable("every conversion is lowered");
}

template <typename ConversionOp>
struct DifferentiableConversion
    : Differentiable::ExternalModel<DifferentiableConversion<ConversionOp>,
                                    ConversionOp> {
  Operation *expandForTraining(Operation *op, OpBuilder &) const { return op; }

  void buildGradient(Operation *op, GradientContext &context) const {
    Value x = op->getOperand(0);
    Value grad = dist::createTranspose(context.builder(), op->getLoc(),
                                       context.gradientOf(op->getResult(0)),
                                       cast<RankedTensorType>(x.getType()));
    if (grad) {
      context.addGradient(x, grad);
    }
  }
};

template <typename ConversionOp>
struct ConversionCost
    : Cost::ExternalModel<ConversionCost<ConversionOp>, ConversionOp> {
  OpCost getCost(Operation *op) const {
    const Conversion conversion = ConversionOp::getConversion();
    const bool free = conversion == Conversion::Replicate ||
                      conversion == Conversion::AssumeInvariant;
    return free ? OpCost() : streamingCost(op);
  }
};

template <typename ConversionOp>
struct LoweredConversion
    : LowerToExec::ExternalModel<LoweredConversion<ConversionOp>,
                                 ConversionOp> {
  LogicalResult lowerToExec(Operation *op, ExecContext &context) const {
    return lowerConversion(op, context);
  }
};

template <typename... ConversionOps> void attach(MLIRContext *context) {
  (ConversionOps::template attachInterface<
       DifferentiableConversion<ConversionOps>, ConversionCost<ConversionOps>,
       LoweredConversion<ConversionOps>>(*context),
   ...);
}

} // namespace

LogicalResult SumStagesOp::lowerToExec(ExecContext &context) {
  context.launch(
      Kernel::SumStages, {operandOf(getValue()), operandOf(getResult())},
      {static_cast<int64_t>(getTie() ? StageGroup::Tie : StageGroup::Sums)});
  return success();
}

void mega::tfm::attachConversionInterfaces(MLIRContext *context) {
  attach<dist::ReplicateOp, dist::AssumeInvariantOp, dist::SliceOp,
         dist::ToPartialOp, dist::AllGatherOp, dist::AllToAllOp,
         dist::AllReduceOp, dist::ReduceScatterOp>(context);
}
