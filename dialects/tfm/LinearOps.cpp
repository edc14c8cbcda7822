//===- LinearOps.cpp - linear, add_bias and their gradients ---------------===//
#include "dialects/tfm/Tfm.h"

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

/// Multiply-adds of rows(x) times the weight, plus all traffic.
static OpCost gemmCost(Operation *op, Value rows, ValueRange weights) {
  OpCost cost = streamingCost(op);
  const auto type = tensor(rows);
  if (!type.hasStaticShape()) {
    return cost;
  }
  const double tokens =
      static_cast<double>(type.getDimSize(0)) * type.getDimSize(1);
  for (Value weight : weights) {
    cost.flops += 2 * tokens * tensor(weight).getNumElements();
  }
  return cost;
}

//===----------------------------------------------------------------------===//
// linear
//===----------------------------------------------------------------------===//

static LogicalResult verifyLinear(Operation *op, Value x, Value weight,
                                  Value result) {
  const int64_t in = tensor(x).getDimSize(2);
  const auto shape = tensor(weight).getShape();
  if (in != shape[1]) {
    return op->emitOpError() << "x has " << in << " features but the weight "
                             << tensor(weight) << " takes " << shape[1];
  }
  if (tensor(result).getDimSize(2) != shape[0]) {
    return op->emitOpError()
           << "the result has " << tensor(result).getDimSize(2)
           << " features but the weight " << tensor(weight) << " makes "
           << shape[0];
  }
  if (tensor(result).getShape().take_front(2) !=
      tensor(x).getShape().take_front(2)) {
    return op->emitOpError() << "result " << tensor(result) << " and x "
                             << tensor(x) << " differ in batch or sequence";
  }
  return success();
}

LogicalResult LinearOp::verify() {
  return verifyLinear(*this, getX(), getWeight(), getResult());
}

OpCost LinearOp::getCost() { return gemmCost(*this, getX(), getWeight()); }

LogicalResult LinearOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::Gemm, {getX(), getWeight(), getResult()}, {0, 1, 0});
  return success();
}

void LinearOp::buildGradient(GradientContext &context) {
  Value grad = context.gradientOf(getResult());
  OpBuilder &builder = context.builder();
  if (context.isActive(getX())) {
    auto inputGrad = LinearInputGradOp::create(
        builder, getLoc(), gradientType(getX()), ValueRange(grad),
        ValueRange(context.use(getWeight())), Value(), getGroupAttr());
    context.addGradient(getX(), inputGrad.getGradX());
  }
  auto weightGrad = LinearWeightGradOp::create(
      builder, getLoc(), TypeRange(gradientType(getWeight())),
      context.use(getX()), ValueRange(grad), getGroupAttr());
  context.addGradient(getWeight(), weightGrad.getGradWeights().front());
}

//===----------------------------------------------------------------------===//
// grouped_linear
//===----------------------------------------------------------------------===//

LogicalResult GroupedLinearOp::verify() {
  if (getWeights().empty() || getWeights().size() != getResults().size()) {
    return emitOpError() << "has " << getWeights().size() << " weights and "
                         << getResults().size() << " results";
  }
  for (auto [weight, result] : llvm::zip(getWeights(), getResults())) {
    if (failed(verifyLinear(*this, getX(), weight, result))) {
      return failure();
    }
  }
  return success();
}

OpCost GroupedLinearOp::getCost() {
  return gemmCost(*this, getX(), getWeights());
}

LogicalResult GroupedLinearOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::Gemm,
                 {getX(), ExecOperand::rows(getWeights()),
                  ExecOperand::columns(getResults())},
                 {0, 1, 0});
  return success();
}

//===----------------------------------------------------------------------===//
// Gradients of linear
//===----------------------------------------------------------------------===//

OpCost LinearInputGradOp::getCost() {
  return gemmCost(*this, getGrads().front(), getWeights());
}

LogicalResult LinearInputGradOp::lowerToExec(ExecContext &context) {
  if (getOnto()) {
    context.onto(getGradX(), getOnto());
  }
  context.launch(Kernel::Gemm,
                 {ExecOperand::columns(getGrads()),
                  ExecOperand::rows(getWeights()), getGradX()},
                 {0, 0, getOnto() ? 1 : 0});
  return success();
}

OpCost LinearWeightGradOp::getCost() {
  return gemmCost(*this, getX(), getGradWeights());
}

LogicalResult LinearWeightGradOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::Gemm,
                 {ExecOperand::columns(getGrads()), getX(),
                  ExecOperand::rows(getGradWeights())},
                 {1, 0, 1});
  return success();
}

//===----------------------------------------------------------------------===//
// add_bias
//===----------------------------------------------------------------------===//

LogicalResult AddBiasOp::verify() {
  const int64_t features = tensor(getX()).getDimSize(2);
  if (tensor(getBias()).getDimSize(0) != features) {
    return emitOpError() << "x has " << features << " features but the bias "
                         << tensor(getBias()).getDimSize(0);
  }
  return success();
}

OpCost AddBiasOp::getCost() { return streamingCost(*this); }

LogicalResult AddBiasOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::AddBias, {getX(), getBias(), getResult()});
  return success();
}

void AddBiasOp::buildGradient(GradientContext &context) {
  Value grad = context.gradientOf(getResult());
  context.addGradient(getX(), grad);
  context.addGradient(getBias(),
                      BiasGradOp::create(context.builder(), getLoc(),
                                         gradientType(getBias()), grad));
}

OpCost BiasGradOp::getCost() { return streamingCost(*this); }

LogicalResult BiasGradOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::BiasGrad, {getGrad(), getGradBias()});
  return success();
}

//===----------------------------------------------------------------------===//
// Sharding rules of groups: members are cut alike
//===----------------------------------------------------------------------===//

/// `text` once per member of a group, with commas.
static std::string members(size_t count, StringRef text) {
  std::string list;
  for (size_t i = 0; i < count; ++i) {
    list += (i == 0 ? "" : ", ") + text.str();
  }
  return list;
}

ShardingRule GroupedLinearOp::getShardingRule() {
  const size_t count = getWeights().size();
  return ShardingRule::parse("bsi, " + members(count, "oi") + " -> " +
                             members(count, "bso"));
}

ShardingRule LinearInputGradOp::getShardingRule() {
  const size_t count = getWeights().size();
  return ShardingRule::parse(members(count, count == 1 ? "*bso" : "+bso") +
                             ", " + members(count, count == 1 ? "*oi" : "oi") +
                             (getOnto() ? ", bsi" : "") + " -> bsi");
}

ShardingRule LinearWeightGradOp::getShardingRule() {
  const size_t count = getGrads().size();
  return ShardingRule::parse("bsi, " +
                             members(count, count == 1 ? "*bso" : "+bso") +
                             " -> " + members(count, "oi"));
}
