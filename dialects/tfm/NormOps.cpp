//===- NormOps.cpp - layer_norm, rms_norm and their gradients -------------===//
#include "dialects/tfm/Tfm.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

static LogicalResult verifyNorm(Operation *op, Value x, Value gamma,
                                double epsilon) {
  const int64_t features =
      cast<RankedTensorType>(x.getType()).getShape().back();
  const int64_t extent = cast<RankedTensorType>(gamma.getType()).getDimSize(0);
  if (features != extent) {
    return op->emitOpError()
           << "normalises " << features << " features but gamma has " << extent;
  }
  if (!(epsilon > 0)) {
    return op->emitOpError()
           << "epsilon is " << epsilon << ", expected a positive number";
  }
  return success();
}

/// One f32 per normalised row, or per row and head.
static RankedTensorType statisticsOf(Value x) {
  return cast<RankedTensorType>(x.getType()).getRank() == 4
             ? statisticsType(x, {0, 1, 2})
             : statisticsType(x, {0, 1});
}

static double value(FloatAttr attr) { return attr.getValueAsDouble(); }

//===----------------------------------------------------------------------===//
// layer_norm
//===----------------------------------------------------------------------===//

LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, getX(), getGamma(), value(getEpsilonAttr()));
}

OpCost LayerNormOp::getCost() { return streamingCost(*this); }

/// Statistics that nobody reads.
static ExecOperand droppedStatistics(Value x) {
  const RankedTensorType type = statisticsOf(x);
  const auto rows = type.getShape();
  ExecOperand statistics = ExecOperand::scratchBuffer(
      rows.size() == 3 ? BufferType(DataType::F32, {rows[0], rows[1], rows[2]})
                       : BufferType(DataType::F32, {rows[0], rows[1]}));
  statistics.layout = dist::layoutOf(type);
  return statistics;
}

LogicalResult LayerNormOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::LayerNorm,
                 {getX(), getGamma(), getBeta(), getResult(),
                  droppedStatistics(getX()), droppedStatistics(getX())},
                 {}, {value(getEpsilonAttr())});
  return success();
}

Operation *LayerNormOp::expandForTraining(OpBuilder &builder) {
  const auto statistics = statisticsOf(getX());
  auto expanded = LayerNormStatsOp::create(
      builder, getLoc(),
      TypeRange{getResult().getType(), statistics, statistics}, getX(),
      getGamma(), getBeta(), getEpsilonAttr());
  getResult().replaceAllUsesWith(expanded.getResult());
  erase();
  return expanded;
}

void LayerNormOp::buildGradient(GradientContext &) {
  llvm_unreachable("expandForTraining replaced it");
}

OpCost LayerNormStatsOp::getCost() { return streamingCost(*this); }

LogicalResult LayerNormStatsOp::lowerToExec(ExecContext &context) {
  context.launch(
      Kernel::LayerNorm,
      {getX(), getGamma(), getBeta(), getResult(), getMean(), getRstd()}, {},
      {value(getEpsilonAttr())});
  return success();
}

void LayerNormStatsOp::buildGradient(GradientContext &context) {
  auto grad = LayerNormGradOp::create(
      context.builder(), getLoc(),
      TypeRange{gradientType(getX()), gradientType(getGamma()),
                gradientType(getBeta())},
      context.gradientOf(getResult()), context.use(getX()),
      context.use(getGamma()), context.use(getMean()), context.use(getRstd()),
      Value());
  context.addGradient(getX(), grad.getGradX());
  context.addGradient(getGamma(), grad.getGradGamma());
  context.addGradient(getBeta(), grad.getGradBeta());
}

OpCost LayerNormGradOp::getCost() { return streamingCost(*this); }

LogicalResult LayerNormGradOp::lowerToExec(ExecContext &context) {
  if (getOnto()) {
    context.onto(getGradX(), getOnto());
  }
  context.launch(Kernel::LayerNormGrad,
                 {getGrad(), getX(), getGamma(), getMean(), getRstd(),
                  getGradX(), getGradGamma(), getGradBeta()},
                 {getOnto() ? 1 : 0});
  return success();
}

OpCost AddLayerNormOp::getCost() { return streamingCost(*this); }

LogicalResult AddLayerNormOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::AddLayerNorm,
                 {getLhs(), getRhs(), getGamma(), getBeta(), getSum(),
                  getResult(), getMean(), getRstd()},
                 {}, {value(getEpsilonAttr())});
  return success();
}

//===----------------------------------------------------------------------===//
// rms_norm
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::verify() {
  const int64_t rank = cast<RankedTensorType>(getX().getType()).getRank();
  if (rank != 3 && rank != 4) {
    return emitOpError() << "x has " << rank << " dimensions, expected 3 or 4";
  }
  return verifyNorm(*this, getX(), getGamma(), value(getEpsilonAttr()));
}

OpCost RmsNormOp::getCost() { return streamingCost(*this); }

LogicalResult RmsNormOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::RmsNorm,
                 {getX(), getGamma(), getResult(), droppedStatistics(getX())},
                 {}, {value(getEpsilonAttr()), value(getOffsetAttr())});
  return success();
}

Operation *RmsNormOp::expandForTraining(OpBuilder &builder) {
  auto expanded = RmsNormStatsOp::create(
      builder, getLoc(), TypeRange{getResult().getType(), statisticsOf(getX())},
      getX(), getGamma(), getEpsilonAttr(), getOffsetAttr());
  getResult().replaceAllUsesWith(expanded.getResult());
  erase();
  return expanded;
}

void RmsNormOp::buildGradient(GradientContext &) {
  llvm_unreachable("expandForTraining replaced it");
}

OpCost RmsNormStatsOp::getCost() { return streamingCost(*this); }

LogicalResult RmsNormStatsOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::RmsNorm, {getX(), getGamma(), getResult(), getRstd()},
                 {}, {value(getEpsilonAttr()), value(getOffsetAttr())});
  return success();
}

void RmsNormStatsOp::buildGradient(GradientContext &context) {
  auto grad = RmsNormGradOp::create(
      context.builder(), getLoc(),
      TypeRange{gradientType(getX()), gradientType(getGamma())},
      context.gradientOf(getResult()), context.use(getX()),
      context.use(getGamma()), context.use(getRstd()), Value(),
      getOffsetAttr());
  context.addGradient(getX(), grad.getGradX());
  context.addGradient(getGamma(), grad.getGradGamma());
}

OpCost RmsNormGradOp::getCost() { return streamingCost(*this); }

LogicalResult RmsNormGradOp::lowerToExec(ExecContext &context) {
  if (getOnto()) {
    context.onto(getGradX(), getOnto());
  }
  context.launch(
      Kernel::RmsNormGrad,
      {getGrad(), getX(), getGamma(), getRstd(), getGradX(), getGradGamma()},
      {getOnto() ? 1 : 0}, {value(getOffsetAttr())});
  return success();
}

OpCost AddRmsNormOp::getCost() { return streamingCost(*this); }

LogicalResult AddRmsNormOp::lowerToExec(ExecContext &context) {
  context.launch(
      Kernel::AddRmsNorm,
      {getLhs(), getRhs(), getGamma(), getSum(), getResult(), getRstd()}, {},
      {value(getEpsilonAttr()), value(getOffsetAttr())});
  return success();
}

//===----------------------------------------------------------------------===//
// Sharding rules that depend on the operands
//===----------------------------------------------------------------------===//

/// The letters of x: `bsF`, or `bshF` of a tensor with heads.
static std::string rowsOf(Value x) {
  return cast<RankedTensorType>(x.getType()).getRank() == 4 ? "bsh" : "bs";
}

ShardingRule RmsNormOp::getShardingRule() {
  const std::string rows = rowsOf(getX());
  return ShardingRule::parse(rows + "F, F -> " + rows + "F");
}

ShardingRule RmsNormStatsOp::getShardingRule() {
  const std::string rows = rowsOf(getX());
  return ShardingRule::parse(rows + "F, F -> " + rows + "F, " + rows);
}

ShardingRule RmsNormGradOp::getShardingRule() {
  const std::string rows = rowsOf(getX());
  return ShardingRule::parse("*" + rows + "F, " + rows + "F, F, " + rows +
                             (getOnto() ? ", " + rows + "F" : "") + " -> " +
                             rows + "F, F");
}

ShardingRule LayerNormGradOp::getShardingRule() {
  return ShardingRule::parse(getOnto()
                                 ? "*bsF, bsF, F, bs, bs, bsF -> bsF, F, F"
                                 : "*bsF, bsF, F, bs, bs -> bsF, F, F");
}
