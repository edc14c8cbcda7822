//===- StepOps.cpp - Counts, seeds, optimizer -----------------------------===//
#include "dialects/tfm/Tfm.h"

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

static const BufferType kScalarF64(DataType::F64, {});

static FailureOr<BucketOp> findBucket(Operation *op, FlatSymbolRefAttr name) {
  auto bucket = SymbolTable::lookupNearestSymbolFrom<BucketOp>(op, name);
  if (!bucket) {
    return op->emitOpError() << "no tfm.bucket named " << name;
  }
  return bucket;
}

/// The axes over which `layout` cuts a bucket into pieces of the optimizer
/// state: those of its vector that no parameter is cut over.
static SmallVector<mega::Axis, 2> pieceAxes(const Layout &layout) {
  SmallVector<mega::Axis, 2> axes;
  for (mega::Axis axis : layout.dims[0].list()) {
    if (axis == mega::Axis::Dp || axis == mega::Axis::Cp) {
      axes.push_back(axis);
    }
  }
  return axes;
}

/// A bucket's run of a state region as `type`, f32 or bf16, laid out as
/// `layout`: the rank's piece of it if that cuts it over dp and cp.
static ExecOperand bucketState(BucketOp bucket, StringRef region, DataType type,
                               dist::LayoutAttr layout) {
  auto offset = static_cast<int64_t>(bucket.getOffset());
  auto elements = static_cast<int64_t>(bucket.getElements());
  const auto pieces = static_cast<int64_t>(bucket.getPieces());
  SmallVector<mega::Axis, 2> over;
  if (layout) {
    over = pieceAxes(layout.getLayout());
  }
  const bool cut = !over.empty();
  const bool owned = region == "moments" || region == "variances";
  if (region == "weights") {
    offset = static_cast<int64_t>(*bucket.getComputeOffset());
  }
  if (owned) {
    offset /= pieces;
  }
  if (owned || cut) {
    elements /= pieces;
  }
  ExecOperand operand =
      ExecOperand::state(region, offset, BufferType(type, {elements}));
  operand.layout = layout;
  if (cut && !owned) {
    operand.cutOver = over;
  }
  return operand;
}

LogicalResult BucketGradientOp::lowerToExec(ExecContext &) {
  // Its uses name the memory.
  return success();
}

LogicalResult StoreGradientOp::lowerToExec(ExecContext &) {
  // It is there already.
  BucketOp bucket = bucketOfGradient(getGradient());
  if (!bucket || bucket.getSymName() != getBucket()) {
    return emitOpError() << "stores what is not made of the gradient of "
                         << getBucketAttr();
  }
  return success();
}

BucketOp mega::tfm::bucketOfGradient(Value gradient) {
  while (Operation *op = gradient.getDefiningOp()) {
    if (auto source = dyn_cast<BucketGradientOp>(op)) {
      return SymbolTable::lookupNearestSymbolFrom<BucketOp>(
          source, source.getBucketAttr());
    }
    if (!isa<dist::DistDialect>(op->getDialect()) && !isa<SumStagesOp>(op)) {
      break;
    }
    gradient = op->getOperand(0);
  }
  return {};
}

ExecOperand mega::tfm::bucketGradient(BucketOp bucket, Value gradient) {
  return bucketState(bucket, "gradients", DataType::F32,
                     dist::layoutOf(gradient.getType()));
}

LogicalResult ZeroGradientOp::lowerToExec(ExecContext &context) {
  auto bucket = findBucket(*this, getBucketAttr());
  if (failed(bucket)) {
    return failure();
  }
  context.launch(Kernel::Zero,
                 {bucketState(*bucket, "gradients", DataType::F32, {})});
  return success();
}

LogicalResult AdamWOp::lowerToExec(ExecContext &context) {
  auto bucket = findBucket(*this, getBucketAttr());
  if (failed(bucket)) {
    return failure();
  }
  SmallVector<ExecOperand> operands;
  for (StringRef region : {"parameters", "gradients", "moments", "variances"}) {
    operands.push_back(bucketState(*bucket, region, DataType::F32,
                                   dist::layoutOf(getGradient().getType())));
  }
  operands.emplace_back(getScale());
  context.launch(Kernel::AdamW, operands, {bucket->getDecay() ? 1 : 0});
  return success();
}

LogicalResult RoundWeightsOp::lowerToExec(ExecContext &context) {
  auto bucket = findBucket(*this, getBucketAttr());
  if (failed(bucket)) {
    return failure();
  }
  if (!bucket->getCompute()) {
    return emitOpError() << getBucketAttr() << " has no compute type";
  }
  const dist::LayoutAttr layout = getLayoutAttr();
  context.launch(Kernel::Cast,
                 {bucketState(*bucket, "parameters", DataType::F32, layout),
                  bucketState(*bucket, "weights", DataType::BF16, layout)});
  return success();
}

LogicalResult GatherWeightsOp::lowerToExec(ExecContext &context) {
  auto bucket = findBucket(*this, getBucketAttr());
  if (failed(bucket)) {
    return failure();
  }
  const bool copied = bucket->getCompute().has_value();
  const StringRef region = copied ? "weights" : "parameters";
  const DataType type = copied ? DataType::BF16 : DataType::F32;
  Layout whole = getLayoutAttr().getLayout();
  const SmallVector<mega::Axis, 2> over = pieceAxes(whole);
  for (mega::Axis axis : over) {
    whole.dims[0].remove(axis);
  }
  whole.rank = whole.dims[0].count == 0 ? 0 : 1;
  context.launch(Kernel::AllGather,
                 {bucketState(*bucket, region, type, getLayoutAttr()),
                  bucketState(*bucket, region, type,
                              dist::LayoutAttr::get(getContext(), whole)),
                  ExecOperand::scratchBuffer(BufferType(type, {1}))},
                 {context.groupOf(over), 0, 0});
  return success();
}

LogicalResult ReadCounterOp::lowerToExec(ExecContext &) {
  // LowerToExec knows where counters are.
  return success();
}

LogicalResult AccumulateGradientOp::lowerToExec(ExecContext &context) {
  context.accumulateInto(getGradient(), getTarget());
  return success();
}

LogicalResult RecordOp::lowerToExec(ExecContext &context) {
  if (getAdd()) {
    ExecOperand counter = ExecOperand::counter(getCounter(), kScalarF64);
    counter.layout = dist::layoutOf(getValue().getType());
    context.launch(Kernel::Accumulate, {getValue(), counter});
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

LogicalResult SumSquaresOp::verify() {
  const auto cutsOrSums = [](Type type, bool sums) {
    const dist::LayoutAttr attr = dist::layoutOf(type);
    unsigned axes = 0;
    for (int i = 0; attr && i < kAxisCount; ++i) {
      const auto axis = static_cast<mega::Axis>(i);
      const State state = attr.getLayout().state(axis);
      axes |= (state == (sums ? State::Partial : State::Shard) ? 1u : 0u) << i;
    }
    return axes;
  };
  const unsigned sums = cutsOrSums(getResult().getType(), true);
  for (auto [index, gradient] : llvm::enumerate(getGradients())) {
    const dist::LayoutAttr attr = dist::layoutOf(gradient.getType());
    const bool whole = !attr || (attr.getLayout().partial == 0 &&
                                 attr.getLayout().replicated == 0);
    if (!whole || cutsOrSums(gradient.getType(), false) != sums) {
      return emitOpError() << "gradient " << index << " is "
                           << gradient.getType() << " for a sum "
                           << getResult().getType()
                           << "; it must be cut where the sum is partial, and "
                              "invariant elsewhere";
    }
  }
  if (getOnto() && getOnto().getType() != getResult().getType()) {
    return emitOpError() << "adds " << getResult().getType() << " to "
                         << getOnto().getType();
  }
  return success();
}

LogicalResult SumSquaresOp::lowerToExec(ExecContext &context) {
  if (getOnto()) {
    context.onto(getResult(), getOnto());
  }
  for (auto [index, gradient] : llvm::enumerate(getGradients())) {
    BucketOp bucket = bucketOfGradient(gradient);
    if (!bucket) {
      return emitOpError() << "operand " << index
                           << " is no gradient of a bucket";
    }
    context.launch(Kernel::SumSquares,
                   {bucketGradient(bucket, gradient), getResult()},
                   {index == 0 && !getOnto() ? 0 : 1});
  }
  return success();
}

LogicalResult ClipScaleOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::ClipScale, {getSquareSum(), getResult()});
  return success();
}
