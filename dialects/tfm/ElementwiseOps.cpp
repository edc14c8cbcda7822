//===- ElementwiseOps.cpp - Activations, add, dropout ---------------------===//
#include "dialects/tfm/Tfm.h"

#include <cmath>

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

static_assert(static_cast<int64_t>(tfm::GeluKind::Tanh) ==
              static_cast<int64_t>(mega::GeluKind::Tanh));
static_assert(static_cast<int64_t>(tfm::GateKind::GeluErf) ==
              static_cast<int64_t>(mega::GateKind::GeluErf));

//===----------------------------------------------------------------------===//
// gelu
//===----------------------------------------------------------------------===//

OpCost GeluOp::getCost() { return streamingCost(*this); }

LogicalResult GeluOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::Gelu, {getX(), getResult()},
                 {static_cast<int64_t>(getKind())});
  return success();
}

void GeluOp::buildGradient(GradientContext &context) {
  context.addGradient(getX(),
                      GeluGradOp::create(context.builder(), getLoc(),
                                         gradientType(getX()),
                                         context.gradientOf(getResult()),
                                         context.use(getX()), getKindAttr()));
}

OpCost GeluGradOp::getCost() { return streamingCost(*this); }

LogicalResult GeluGradOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::GeluGrad, {getGrad(), getX(), getResult()},
                 {static_cast<int64_t>(getKind())});
  return success();
}

OpCost BiasGeluOp::getCost() { return streamingCost(*this); }

LogicalResult BiasGeluOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::BiasGelu, {getX(), getBias(), getSum(), getResult()},
                 {static_cast<int64_t>(getKind())});
  return success();
}

//===----------------------------------------------------------------------===//
// silu and the gated product
//===----------------------------------------------------------------------===//

OpCost SiluOp::getCost() { return streamingCost(*this); }

LogicalResult SiluOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::Silu, {getX(), getResult()});
  return success();
}

void SiluOp::buildGradient(GradientContext &context) {
  context.addGradient(
      getX(),
      SiluGradOp::create(context.builder(), getLoc(), gradientType(getX()),
                         context.gradientOf(getResult()), context.use(getX())));
}

OpCost SiluGradOp::getCost() { return streamingCost(*this); }

LogicalResult SiluGradOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::SiluGrad, {getGrad(), getX(), getResult()});
  return success();
}

OpCost GatedOp::getCost() { return streamingCost(*this); }

LogicalResult GatedOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::Gated, {getGate(), getUp(), getResult()},
                 {static_cast<int64_t>(getKind())});
  return success();
}

void GatedOp::buildGradient(GradientContext &context) {
  auto grad = GatedGradOp::create(
      context.builder(), getLoc(),
      TypeRange{gradientType(getGate()), gradientType(getUp())}, getKindAttr(),
      context.gradientOf(getResult()), context.use(getGate()),
      context.use(getUp()));
  context.addGradient(getGate(), grad.getGradGate());
  context.addGradient(getUp(), grad.getGradUp());
}

OpCost GatedGradOp::getCost() { return streamingCost(*this); }

LogicalResult GatedGradOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::GatedGrad,
                 {getGrad(), getGate(), getUp(), getGradGate(), getGradUp()},
                 {static_cast<int64_t>(getKind())});
  return success();
}

//===----------------------------------------------------------------------===//
// add
//===----------------------------------------------------------------------===//

OpCost AddOp::getCost() { return streamingCost(*this); }

LogicalResult AddOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::Add, {getLhs(), getRhs(), getResult()});
  return success();
}

ShardingRule AddOp::getShardingRule() {
  // Of any rank.
  const std::string all =
      StringRef("abcd")
          .take_front(static_cast<size_t>(getResult().getType().getRank()))
          .str();
  return ShardingRule::parse("+" + all + ", +" + all + " -> " + all);
}

void AddOp::buildGradient(GradientContext &context) {
  Value grad = context.gradientOf(getResult());
  context.addGradient(getLhs(), grad);
  context.addGradient(getRhs(), grad);
}

//===----------------------------------------------------------------------===//
// scale
//===----------------------------------------------------------------------===//

LogicalResult ScaleOp::verify() {
  const double factor = getFactorAttr().getValueAsDouble();
  if (!std::isfinite(factor) || factor == 0) {
    return emitOpError() << "the factor is " << factor
                         << ", expected a finite number other than 0";
  }
  return success();
}

OpCost ScaleOp::getCost() { return streamingCost(*this); }

LogicalResult ScaleOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::Scale, {getX(), getResult()}, {},
                 {getFactorAttr().getValueAsDouble()});
  return success();
}

void ScaleOp::buildGradient(GradientContext &context) {
  context.addGradient(getX(), ScaleOp::create(context.builder(), getLoc(),
                                              gradientType(getX()),
                                              context.gradientOf(getResult()),
                                              getFactorAttr()));
}

//===----------------------------------------------------------------------===//
// dropout
//===----------------------------------------------------------------------===//

LogicalResult DropoutOp::verify() {
  const double p = getPAttr().getValueAsDouble();
  if (!(p >= 0 && p < 1)) {
    return emitOpError() << "p is " << p << ", expected 0 <= p < 1";
  }
  if (!getPositions() != !getSegments()) {
    return emitOpError() << "has positions or segments; give both, or neither";
  }
  if (failed(verifyPlaces(*this, getX(), getPositions(), "positions"))) {
    return failure();
  }
  return verifyPlaces(*this, getX(), getSegments(), "segments");
}

mega::ShardingRule DropoutOp::getShardingRule() {
  return ShardingRule::parse(getPositions() ? "*bsh, =bs, =bs -> bsh"
                                            : "*bsh -> bsh");
}

OpCost DropoutOp::getCost() { return streamingCost(*this); }

LogicalResult DropoutOp::lowerToExec(ExecContext &context) {
  if (!getKey()) {
    return emitOpError() << "has no key; run mega-differentiate first";
  }
  if (getPositions()) {
    context.launch(
        Kernel::DropoutAt, {getX(), getPositions(), getSegments(), getResult()},
        {static_cast<int64_t>(*getKey()), pieceStart(context, getX(), 2)},
        {getPAttr().getValueAsDouble()});
    return success();
  }
  context.launch(Kernel::Dropout, {getX(), getResult()},
                 {static_cast<int64_t>(*getKey()),
                  pieceStart(context, getX(), 1),
                  pieceStart(context, getX(), 2)},
                 {getPAttr().getValueAsDouble()});
  return success();
}

void DropoutOp::buildGradient(GradientContext &context) {
  // Multiplication by a fixed mask is its own transpose.
  context.addGradient(
      getX(),
      DropoutOp::create(
          context.builder(), getLoc(), gradientType(getX()), getNameAttr(),
          context.gradientOf(getResult()), context.useAny(getPositions()),
          context.useAny(getSegments()), getPAttr(), getKeyAttr()));
}

StringAttr DropoutOp::getRandomName() { return getNameAttr(); }

void DropoutOp::assignKey(StringRef block) {
  setKeyAttr(randomKey(block, getNameAttr()));
}

void DropoutOp::makeDeterministic() {
  getResult().replaceAllUsesWith(getX());
  erase();
}
