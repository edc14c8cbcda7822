//===- HeadOps.cpp - Cross entropy and the fused head ---------------------===//
#include "dialects/tfm/Tfm.h"

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

LogicalResult CrossEntropyOp::verify() {
  if (tensor(getLogits()).getShape().take_front(2) !=
      tensor(getLabels()).getShape()) {
    return emitOpError() << "logits " << tensor(getLogits()) << " and labels "
                         << tensor(getLabels())
                         << " differ in batch or sequence";
  }
  return verifySoftcap(*this, getSoftcapAttr());
}

//===----------------------------------------------------------------------===//
// head_stats
//===----------------------------------------------------------------------===//

static int64_t tokensOf(Value x) {
  return tensor(x).getDimSize(0) * tensor(x).getDimSize(1);
}

static ExecOperand f32Scratch(int64_t elements) {
  return ExecOperand::scratchBuffer(BufferType(DataType::F32, {elements}));
}

static OpCost headCost(Operation *op, Value x, Value weight, double gemms) {
  OpCost cost = streamingCost(op);
  const auto shape = tensor(x).getShape();
  cost.flops = gemms * 2 * static_cast<double>(shape[0]) * shape[1] *
               static_cast<double>(tensor(weight).getNumElements());
  return cost;
}

Value HeadStatsOp::getIndexIds() { return getLabels(); }

int64_t HeadStatsOp::getIndexLimit() {
  return tensor(getWeight()).getDimSize(0);
}

OpCost HeadStatsOp::getCost() {
  return headCost(*this, getX(), getWeight(), 1);
}

LogicalResult HeadStatsOp::lowerToExec(ExecContext &context) {
  context.launch(
      Kernel::HeadStats,
      {getX(), getWeight(), getLabels(), getMax(), getSum(), getTarget(),
       f32Scratch(
           headScratch(tokensOf(getX()), tensor(getWeight()).getDimSize(0)))},
      {static_cast<int64_t>(getIgnore()), pieceStart(context, getWeight(), 0),
       context.wholeType(getWeight()).getDimSize(0)},
      {getSoftcapAttr().getValueAsDouble()});
  return success();
}

void HeadStatsOp::buildGradient(GradientContext &context) {
  auto grad = HeadStatsGradOp::create(
      context.builder(), getLoc(),
      TypeRange{gradientType(getX()), gradientType(getWeight())},
      context.use(getX()), context.use(getWeight()), context.use(getLabels()),
      context.use(getMax()), context.gradientOf(getSum()),
      context.gradientOf(getTarget()), getIgnoreAttr(), getSoftcapAttr());
  context.addGradient(getX(), grad.getGradX());
  context.addGradient(getWeight(), grad.getGradWeight());
}

OpCost HeadStatsGradOp::getCost() {
  return headCost(*this, getX(), getWeight(), 3);
}

LogicalResult HeadStatsGradOp::lowerToExec(ExecContext &context) {
  const auto weight = tensor(getWeight()).getShape();
  const DataType type =
      tensor(getX()).getElementType().isBF16() ? DataType::BF16 : DataType::F32;
  context.launch(Kernel::HeadStatsGrad,
                 {getX(), getWeight(), getLabels(), getMax(), getGradSum(),
                  getGradTarget(), getGradX(), getGradWeight(),
                  f32Scratch(headGradScratch(tokensOf(getX()), weight[0],
                                             weight[1], type))},
                 {static_cast<int64_t>(getIgnore()),
                  pieceStart(context, getWeight(), 0),
                  context.wholeType(getWeight()).getDimSize(0)},
                 {getSoftcapAttr().getValueAsDouble()});
  return success();
}

//===----------------------------------------------------------------------===//
// head_rescale
//===----------------------------------------------------------------------===//

OpFoldResult HeadRescaleOp::fold(FoldAdaptor) {
  // exp(m - m) is 1: on one vocabulary shard there is nothing to do.
  return getMaxLocal() == getMaxGlobal() ? OpFoldResult(getSum())
                                         : OpFoldResult();
}

OpCost HeadRescaleOp::getCost() { return streamingCost(*this); }

LogicalResult HeadRescaleOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::HeadRescale,
                 {getSum(), getMaxLocal(), getMaxGlobal(), getResult()});
  return success();
}

void HeadRescaleOp::buildGradient(GradientContext &context) {
  context.addGradient(
      getSum(), HeadRescaleGradOp::create(
                    context.builder(), getLoc(), gradientType(getSum()),
                    context.gradientOf(getResult()), context.use(getMaxLocal()),
                    context.use(getMaxGlobal())));
}

OpCost HeadRescaleGradOp::getCost() { return streamingCost(*this); }

LogicalResult HeadRescaleGradOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::HeadRescaleGrad,
                 {getGrad(), getMaxLocal(), getMaxGlobal(), getResult()});
  return success();
}

//===----------------------------------------------------------------------===//
// head_loss
//===----------------------------------------------------------------------===//

OpCost HeadLossOp::getCost() { return streamingCost(*this); }

LogicalResult HeadLossOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::HeadLoss,
                 {getMax(), getSum(), getTarget(), getLabels(), getResult()},
                 {static_cast<int64_t>(getIgnore())});
  return success();
}

void HeadLossOp::buildGradient(GradientContext &context) {
  auto grad = HeadLossGradOp::create(
      context.builder(), getLoc(),
      TypeRange{gradientType(getSum()), gradientType(getTarget())},
      context.gradientOf(getResult()), context.use(getSum()),
      context.use(getLabels()), getIgnoreAttr());
  context.addGradient(getSum(), grad.getGradSum());
  context.addGradient(getTarget(), grad.getGradTarget());
}

OpCost HeadLossGradOp::getCost() { return streamingCost(*this); }

LogicalResult HeadLossGradOp::lowerToExec(ExecContext &context) {
  context.launch(
      Kernel::HeadLossGrad,
      {getSeed(), getSum(), getLabels(), getGradSum(), getGradTarget()},
      {static_cast<int64_t>(getIgnore())});
  return success();
}
