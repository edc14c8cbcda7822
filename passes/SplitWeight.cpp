//===- SplitWeight.cpp ----------------------------------------------------===//
//
// A backward of two halves: what the block before waits for, and the gradients
// of weights, which can wait (Qi et al., "Zero Bubble Pipeline Parallelism",
// ICLR 2024).
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"

#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

#include <array>
#include <cmath>

namespace mega {
#define GEN_PASS_DEF_SPLITWEIGHT
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

namespace {

class WeightSplit {
public:
  explicit WeightSplit(FunctionOp backward)
      : backward(backward), body(backward.getBody().front()),
        saved(static_cast<int64_t>(backward.getSavedArguments())) {}

  void run();

private:
  void findKept();
  void findGradients();
  FunctionOp createWeight();
  Value use(Value value);
  Value keep(Value value);
  void clone(Operation *op);
  bool isSaved(BlockArgument argument) const {
    return argument.getArgNumber() >= body.getNumArguments() - saved;
  }

  FunctionOp backward;
  Block &body;
  const int64_t saved;
  /// Ops of the first half.
  llvm::DenseSet<Operation *> kept;
  /// Values that depend on gradients of results.
  llvm::DenseSet<Value> gradients;
  /// What the second half reads of the first.
  llvm::MapVector<Value, Value> crossing;
  IRMapping mapping;
  OpBuilder inner{backward.getContext()};
  Block *weightBody = nullptr;
};

/// The slice of the results. The gradient of a weight that one of its ops makes
/// on the way is added there, too.
void WeightSplit::findKept() {
  SmallVector<Operation *> next = {body.getTerminator()};
  while (!next.empty()) {
    Operation *op = next.pop_back_val();
    if (!kept.insert(op).second) {
      continue;
    }
    for (Value operand : op->getOperands()) {
      if (Operation *source = operand.getDefiningOp()) {
        next.push_back(source);
      }
    }
  }
  for (auto accumulate : body.getOps<AccumulateGradientOp>()) {
    Operation *source = accumulate.getGradient().getDefiningOp();
    if (!source || kept.contains(source)) {
      kept.insert(accumulate);
    }
  }
}

/// Of the arguments, gradients of results are active and not saved.
void WeightSplit::findGradients() {
  for (BlockArgument argument : body.getArguments()) {
    if (!isSaved(argument) &&
        isa<FloatType>(tensor(argument).getElementType())) {
      gradients.insert(argument);
    }
  }
  for (Operation &op : body) {
    if (llvm::any_of(op.getOperands(), [&](Value operand) {
          return gradients.contains(operand);
        })) {
      gradients.insert(op.result_begin(), op.result_end());
    }
  }
}

void WeightSplit::clone(Operation *op) {
  for (Value operand : op->getOperands()) {
    if (!mapping.contains(operand)) {
      mapping.map(operand, use(operand));
    }
  }
  inner.clone(*op, mapping);
}

/// `value` in the second half. What follows from saved values alone is computed
/// again, and so is what a rank gathers; other gradients are saved.
Value WeightSplit::use(Value value) {
  if (Value known = mapping.lookupOrNull(value)) {
    return known;
  }
  Operation *op = value.getDefiningOp();
  const bool again =
      op && (!gradients.contains(value) || isa<dist::AllGatherOp>(op));
  if (!again) {
    return keep(value);
  }
  clone(op);
  return mapping.lookup(value);
}

Value WeightSplit::keep(Value value) {
  Value argument = weightBody->addArgument(value.getType(), value.getLoc());
  crossing[value] = argument;
  mapping.map(value, argument);
  return argument;
}

FunctionOp WeightSplit::createWeight() {
  StringRef block = *backward.getBlock();
  OpBuilder after(backward.getContext());
  after.setInsertionPointAfter(backward);
  auto weight = FunctionOp::create(
      after, backward.getLoc(), (block + ".weight").str(),
      FunctionType::get(backward.getContext(), {}, {}), ArrayAttr(),
      ArrayAttr(), backward.getBlockAttr(), 0, 0);
  weightBody = &weight.getBody().emplaceBlock();
  // Inactive arguments, then what the forward saved.
  for (BlockArgument argument : body.getArguments()) {
    if (!gradients.contains(argument)) {
      mapping.map(argument, weightBody->addArgument(argument.getType(),
                                                    argument.getLoc()));
    }
  }
  inner.setInsertionPointToEnd(weightBody);
  return weight;
}

void WeightSplit::run() {
  findKept();
  SmallVector<Operation *> moved;
  for (Operation &op : body) {
    if (!kept.contains(&op)) {
      moved.push_back(&op);
    }
  }
  if (llvm::none_of(moved, llvm::IsaPred<AccumulateGradientOp>)) {
    return;
  }
  findGradients();
  FunctionOp weight = createWeight();
  for (Operation *op : moved) {
    clone(op);
  }
  ReturnOp::create(inner, backward.getLoc(), ValueRange());
  for (Operation *op : llvm::reverse(moved)) {
    op->erase();
  }

  const auto count = static_cast<int64_t>(crossing.size());
  weight.setFunctionType(
      FunctionType::get(backward.getContext(),
                        SmallVector<Type>(weightBody->getArgumentTypes()), {}));
  weight.setSavedArguments(saved + count);
  auto terminator = cast<ReturnOp>(body.getTerminator());
  SmallVector<Value> results(terminator.getValues());
  for (auto &[value, argument] : crossing) {
    results.push_back(value);
  }
  terminator->setOperands(results);
  backward.setFunctionType(
      FunctionType::get(backward.getContext(), backward.getArgumentTypes(),
                        SmallVector<Type>(ValueRange(results).getTypes())));
  backward.setSavedResults(count);
}

/// What forward, backward and weight of all applications take, in thousandths
/// of the forward, for the order of their runs.
DenseI64ArrayAttr costsOf(ModuleOp module, ModelOp model) {
  std::array<double, 3> times{};
  const Applications applications(model);
  for (ApplicationRun run : applications.runs()) {
    constexpr const char *kSuffixes[] = {".forward", ".backward", ".weight"};
    for (auto [time, suffix] : llvm::zip(times, kSuffixes)) {
      if (auto function = module.lookupSymbol<FunctionOp>(
              (run.block.getSymName() + suffix).str())) {
        time +=
            static_cast<double>(run.count) * timeOf(function.getBody().front());
      }
    }
  }
  SmallVector<int64_t> costs;
  for (const double time : times) {
    costs.push_back(std::max<int64_t>(
        std::llround(time / std::max(times[0], 1.0) * 1000), 1));
  }
  return DenseI64ArrayAttr::get(module.getContext(), costs);
}

struct SplitWeightPass : mega::impl::SplitWeightBase<SplitWeightPass> {
  void runOnOperation() override {
    SmallVector<FunctionOp> functions(getOperation().getOps<FunctionOp>());
    for (FunctionOp function : functions) {
      if (function.getBlock() && function.getSymName().ends_with(".backward")) {
        WeightSplit(function).run();
      }
    }
    SmallVector<ModelOp> models(getOperation().getOps<ModelOp>());
    if (models.size() == 1) {
      getOperation()->setAttr(kCostsAttrName,
                              costsOf(getOperation(), models.front()));
    }
  }
};

} // namespace
