//===- EmbeddingOps.cpp - embedding, add_positions and gradients ----------===//
#include "dialects/tfm/Tfm.h"

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

LogicalResult EmbeddingOp::verify() {
  const int64_t expected[] = {tensor(getIds()).getDimSize(0),
                              tensor(getIds()).getDimSize(1),
                              tensor(getTable()).getDimSize(1)};
  if (tensor(getResult()).getShape() != ArrayRef<int64_t>(expected)) {
    return emitOpError() << "looks up " << tensor(getIds()) << " in "
                         << tensor(getTable()) << " but the result is "
                         << tensor(getResult());
  }
  return success();
}

Value EmbeddingOp::getIndexIds() { return getIds(); }

int64_t EmbeddingOp::getIndexLimit() {
  return tensor(getTable()).getDimSize(0);
}

OpCost EmbeddingOp::getCost() {
  // Reads only the rows it needs.
  OpCost cost = streamingCost(*this);
  cost.bytes -= static_cast<double>(tensor(getTable()).getNumElements()) *
                tensor(getTable()).getElementTypeBitWidth() / 8;
  return cost;
}

LogicalResult EmbeddingOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::Embedding, {getIds(), getTable(), getResult()},
                 {pieceStart(context, getTable(), 0),
                  context.wholeType(getTable()).getDimSize(0)});
  return success();
}

void EmbeddingOp::buildGradient(GradientContext &context) {
  context.addGradient(
      getTable(), EmbeddingGradOp::create(
                      context.builder(), getLoc(), gradientType(getTable()),
                      context.use(getIds()), context.gradientOf(getResult())));
}

OpCost EmbeddingGradOp::getCost() { return streamingCost(*this); }

LogicalResult EmbeddingGradOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::EmbeddingGrad, {getIds(), getGrad(), getGradTable()},
                 {pieceStart(context, getGradTable(), 0),
                  context.wholeType(getGradTable()).getDimSize(0)});
  return success();
}

LogicalResult AddPositionsOp::verify() {
  const int64_t sequence = tensor(getX()).getDimSize(1);
  const auto table = tensor(getTable());
  if (getResult().getType() != getX().getType()) {
    return emitOpError() << "x is " << tensor(getX()) << " but the result "
                         << tensor(getResult());
  }
  if (table.getDimSize(1) != tensor(getX()).getDimSize(2)) {
    return emitOpError() << "x is " << tensor(getX()) << " but the table "
                         << table;
  }
  if (!ShapedType::isDynamic(sequence) && table.getDimSize(0) < sequence) {
    return emitOpError() << "a sequence of " << sequence
                         << " is longer than the position table of "
                         << table.getDimSize(0);
  }
  return verifyPlaces(*this, getX(), getPositions(), "positions");
}

mega::ShardingRule AddPositionsOp::getShardingRule() {
  return ShardingRule::parse(getPositions() ? "+bsh, +Ph, =bs -> bsh"
                                            : "+bsh, +Ph -> bsh");
}

Value AddPositionsOp::getIndexIds() { return getPositions(); }

int64_t AddPositionsOp::getIndexLimit() {
  return tensor(getTable()).getDimSize(0);
}

OpCost AddPositionsOp::getCost() { return streamingCost(*this); }

LogicalResult AddPositionsOp::lowerToExec(ExecContext &context) {
  if (getPositions()) {
    context.launch(Kernel::AddPositionsAt,
                   {getX(), getTable(), getPositions(), getResult()});
    return success();
  }
  context.launch(Kernel::AddPositions, {getX(), getTable(), getResult()},
                 {pieceStart(context, getX(), 1)});
  return success();
}

void AddPositionsOp::buildGradient(GradientContext &context) {
  Value grad = context.gradientOf(getResult());
  context.addGradient(getX(), grad);
  context.addGradient(getTable(),
                      PositionsGradOp::create(context.builder(), getLoc(),
                                              gradientType(getTable()), grad,
                                              context.useAny(getPositions())));
}

mega::ShardingRule PositionsGradOp::getShardingRule() {
  return ShardingRule::parse(getPositions() ? "*bsh, =bs -> Ph" : "*bsh -> Ph");
}

OpCost PositionsGradOp::getCost() { return streamingCost(*this); }

LogicalResult PositionsGradOp::lowerToExec(ExecContext &context) {
  if (getPositions()) {
    context.launch(Kernel::PositionsGradAt,
                   {getPositions(), getGrad(), getGradTable()});
    return success();
  }
  context.launch(Kernel::PositionsGrad, {getGrad(), getGradTable()},
                 {pieceStart(context, getGrad(), 1)});
  return success();
}
