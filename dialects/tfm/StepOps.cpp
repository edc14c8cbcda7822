//===- StepOps.cpp - Counts, seeds, optimizer -----------------------------===//
#include "dialects/tfm/Tfm.h"

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

static const BufferType kScalarF64(DataType::F64, {});

/// A bucket's run of a state region.
static FailureOr<ExecOperand> bucketState(Operation *op, FlatSymbolRefAttr name,
                                          StringRef region) {
  auto bucket = SymbolTable::lookupNearestSymbolFrom<BucketOp>(op, name);
  if (!bucket) {
    return op->emitOpError() << "no tfm.bucket named " << name;
  }
  return ExecOperand::state(
      region, static_cast<int64_t>(bucket.getOffset()),
      BufferType(DataType::F32, {static_cast<int64_t>(bucket.getElements())}));
}

LogicalResult BucketGradientOp::lowerToExec(ExecContext &) {
  // Its uses name the memory.
  return success();
}

LogicalResult ZeroGradientOp::lowerToExec(ExecContext &context) {
  auto gradient = bucketState(*this, getBucketAttr(), "gradients");
  if (failed(gradient)) {
    return failure();
  }
  context.launch(Kernel::Zero, {*gradient});
  return success();
}

LogicalResult AdamWOp::lowerToExec(ExecContext &context) {
  SmallVector<ExecOperand> operands;
  for (StringRef region : {"parameters", "gradients", "moments", "variances"}) {
    auto state = bucketState(*this, getBucketAttr(), region);
    if (failed(state)) {
      return failure();
    }
    operands.push_back(*state);
  }
  operands.emplace_back(getScale());
  auto bucket =
      SymbolTable::lookupNearestSymbolFrom<BucketOp>(*this, getBucketAttr());
  context.launch(Kernel::AdamW, operands, {bucket.getDecay() ? 1 : 0});
  return success();
}

LogicalResult RoundWeightsOp::lowerToExec(ExecContext &context) {
  auto parameters = bucketState(*this, getBucketAttr(), "parameters");
  if (failed(parameters)) {
    return failure();
  }
  auto bucket =
      SymbolTable::lookupNearestSymbolFrom<BucketOp>(*this, getBucketAttr());
  if (!bucket.getCompute()) {
    return emitOpError() << getBucketAttr() << " has no compute type";
  }
  context.launch(
      Kernel::Cast,
      {*parameters,
       ExecOperand::state(
           "weights", static_cast<int64_t>(*bucket.getComputeOffset()),
           BufferType(DataType::BF16,
                      {static_cast<int64_t>(bucket.getElements())}))});
  return success();
}

LogicalResult AccumulateGradientOp::lowerToExec(ExecContext &context) {
  context.accumulateInto(getGradient(), getTarget());
  return success();
}

LogicalResult RecordOp::lowerToExec(ExecContext &context) {
  if (getAdd()) {
    context.launch(
        Kernel::Accumulate,
        {getValue(), ExecOperand::counter(getCounter(), kScalarF64)});
  } else {
    context.record(getValue(), getCounter());
  }
  return success();
}

LogicalResult ZeroCounterOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::Zero,
                 {ExecOperand::counter(getCounter(), kScalarF64)});
  return success();
}

LogicalResult CountValidOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::CountValid, {getLabels(), getResult()},
                 {static_cast<int64_t>(getIgnore()), 0});
  return success();
}

LogicalResult LossSeedOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::LossSeed, {getCount(), getResult()}, {},
                 {getWeightAttr().getValueAsDouble()});
  return success();
}

LogicalResult SumSquaresOp::lowerToExec(ExecContext &context) {
  for (auto [index, gradient] : llvm::enumerate(getGradients())) {
    auto source = gradient.getDefiningOp<BucketGradientOp>();
    if (!source) {
      return emitOpError() << "operand " << index
                           << " is no tfm.bucket_gradient";
    }
    auto state = bucketState(*this, source.getBucketAttr(), "gradients");
    if (failed(state)) {
      return failure();
    }
    context.launch(Kernel::SumSquares, {*state, getResult()},
                   {index == 0 ? 0 : 1});
  }
  return success();
}

LogicalResult ClipScaleOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::ClipScale, {getSquareSum(), getResult()});
  return success();
}
