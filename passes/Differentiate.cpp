//===- Differentiate.cpp --------------------------------------------------===//
//
// Reverse-mode differentiation, block by block. A forward function is the block
// plus what its backward asked for; the backward is built by walking the
// forward body from the end and letting every op transpose itself.
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "dialects/tfm/Tfm.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace mega {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

namespace {

bool isFloatTensor(Value value) {
  return isa<FloatType>(
      cast<RankedTensorType>(value.getType()).getElementType());
}

/// Random numbers are keyed by block and name, so that clones draw the same.
void assignKeys(BlockOp block) {
  block.walk([&](Randomized op) {
    if (op.getRandomName()) {
      op.assignKey(block.getSymName());
    }
  });
}

/// A tfm.function with the body of `block` (its yield became a return).
FunctionOp cloneBlock(OpBuilder &builder, BlockOp block, StringRef suffix,
                      IRMapping &mapping) {
  auto function = FunctionOp::create(builder, block.getLoc(),
                                     (block.getSymName() + suffix).str(),
                                     block.getFunctionType(), ArrayAttr(),
                                     ArrayAttr(), block.getSymNameAttr(), 0, 0);
  Block *body = &function.getBody().emplaceBlock();
  for (BlockArgument argument : block.getBody().getArguments()) {
    mapping.map(argument,
                body->addArgument(argument.getType(), argument.getLoc()));
  }
  OpBuilder inner = OpBuilder::atBlockEnd(body);
  for (Operation &op : block.getBody().front()) {
    if (auto yield = dyn_cast<YieldOp>(op)) {
      SmallVector<Value> values;
      for (Value value : yield.getValues()) {
        values.push_back(mapping.lookup(value));
      }
      ReturnOp::create(inner, yield.getLoc(), values);
    } else {
      inner.clone(op, mapping);
    }
  }
  return function;
}

/// Activity: a value through which a gradient flows. Integers are inactive;
/// parameters and float arguments are active, and so is what depends on them,
/// except maxima, which only shift exponents.
class Activity {
public:
  explicit Activity(Block &body) {
    for (BlockArgument argument : body.getArguments()) {
      if (isFloatTensor(argument)) {
        active.insert(argument);
      }
    }
    for (Operation &op : body) {
      if (isa<ParamOp, UseOp>(op)) {
        active.insert(op.getResult(0));
        continue;
      }
      if (llvm::none_of(op.getOperands(),
                        [&](Value value) { return isActive(value); })) {
        continue;
      }
      for (Value result : op.getResults()) {
        if (isFloatTensor(result)) {
          active.insert(result);
        }
      }
    }
  }
  bool isActive(Value value) const { return active.contains(value); }

private:
  llvm::DenseSet<Value> active;
};

/// Whether `value` follows from `kept` values, arguments and parameters, by ops
/// that `mayRepeat` allows.
bool isDerivable(Value value, const llvm::DenseSet<Value> &kept,
                 llvm::function_ref<bool(Operation *)> mayRepeat) {
  Operation *op = value.getDefiningOp();
  if (!op || isParameter(value) || kept.contains(value)) {
    return true;
  }
  return mayRepeat(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
           return isDerivable(operand, kept, mayRepeat);
         });
}

/// A conversion that makes what a rank holds larger: what it starts from is
/// kept, and it runs again.
bool isGather(Operation *op) { return isa_and_nonnull<dist::AllGatherOp>(op); }

/// The forward values to keep of those that a backward `asked` for.
llvm::DenseSet<Value> chooseKept(FunctionOp forward, Recompute recompute,
                                 ArrayRef<Value> asked) {
  llvm::DenseSet<Value> kept;
  for (Value value : asked) {
    kept.insert(isGather(value.getDefiningOp())
                    ? value.getDefiningOp()->getOperand(0)
                    : value);
  }
  const auto mayRepeat = [&](Operation *op) {
    auto cost = dyn_cast<Cost>(op);
    return isGather(op) || recompute == Recompute::Full ||
           (recompute == Recompute::Selective && cost &&
            cost.getCost().flops == 0);
  };
  // From the end: what comes last follows from what comes first.
  for (Operation &op : llvm::reverse(forward.getBody().front())) {
    SmallVector<Value> results;
    for (Value result : op.getResults()) {
      if (kept.erase(result)) {
        results.push_back(result);
      }
    }
    if (llvm::any_of(results, [&](Value result) {
          return !isDerivable(result, kept, mayRepeat);
        })) {
      kept.insert(results.begin(), results.end());
    }
  }
  return kept;
}

/// Builds the backward function of one forward function. Saves what `kept`
/// says, or without it all that is asked for.
class BlockGradient : public GradientContext {
public:
  BlockGradient(FunctionOp forward, FunctionOp backward,
                const llvm::DenseSet<Value> *kept = nullptr)
      : forward(forward), body(&backward.getBody().emplaceBlock()),
        activity(forward.getBody().front()), inner(OpBuilder::atBlockEnd(body)),
        kept(kept) {}

  LogicalResult build();

  OpBuilder &builder() override { return inner; }
  Value gradientOf(Value value) override { return gradients.lookup(value); }
  bool isActive(Value value) override { return activity.isActive(value); }
  Value use(Value value) override;
  void addGradient(Value value, Value gradient) override;

  SmallVector<Type> argumentTypes;
  SmallVector<Type> resultTypes;
  llvm::MapVector<Value, BlockArgument> saved;

private:
  void orderSaved();
  Value computeAgain(Value value);

  FunctionOp forward;
  Block *body;
  Activity activity;
  OpBuilder inner;
  const llvm::DenseSet<Value> *kept;
  llvm::DenseMap<Value, Value> repeated;
  llvm::DenseMap<Value, Value> gradients;
  llvm::DenseMap<Value, Value> inactiveArguments;
  llvm::DenseMap<Value, Value> parameters;
};

Value BlockGradient::use(Value value) {
  if (isParameter(value)) {
    Value &copy = parameters[value];
    if (!copy) {
      OpBuilder front = OpBuilder::atBlockBegin(body);
      copy = front.clone(*value.getDefiningOp())->getResult(0);
    }
    return copy;
  }
  if (Value argument = inactiveArguments.lookup(value)) {
    return argument;
  }
  // A piece of an input is cut again instead of kept.
  const bool cut =
      isa_and_nonnull<dist::SliceOp>(value.getDefiningOp()) && !isActive(value);
  if (cut || (kept && value.getDefiningOp() && !kept->contains(value))) {
    return computeAgain(value);
  }
  const auto it = saved.find(value);
  if (it != saved.end()) {
    return it->second;
  }
  // Saved values are the last arguments.
  BlockArgument argument = body->addArgument(value.getType(), value.getLoc());
  saved[value] = argument;
  return argument;
}

/// Clones the op that makes `value`, and before it those it needs, to where the
/// backward stands: the first reader is next.
Value BlockGradient::computeAgain(Value value) {
  if (Value again = repeated.lookup(value)) {
    return again;
  }
  Operation *op = value.getDefiningOp();
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    mapping.map(operand, use(operand));
  }
  Operation *clone = inner.clone(*op, mapping);
  for (auto [result, again] :
       llvm::zip(op->getResults(), clone->getResults())) {
    repeated[result] = again;
  }
  return repeated.lookup(value);
}

void BlockGradient::addGradient(Value value, Value gradient) {
  if (!isActive(value)) {
    return;
  }
  if (auto param = value.getDefiningOp<ParamOp>()) {
    AccumulateGradientOp::create(inner, param.getLoc(), gradient,
                                 param.getNameAttr());
    return;
  }
  if (auto shared = value.getDefiningOp<UseOp>()) {
    AccumulateGradientOp::create(inner, shared.getLoc(), gradient,
                                 shared.getSymbolAttr());
    return;
  }
  Value &total = gradients[value];
  total = total ? AddOp::create(inner, value.getLoc(), gradient.getType(),
                                total, gradient)
                      .getResult()
                : gradient;
}

LogicalResult BlockGradient::build() {
  auto terminator = cast<ReturnOp>(forward.getBody().front().getTerminator());
  for (Value result : terminator.getValues()) {
    if (!isActive(result)) {
      continue;
    }
    if (gradients.contains(result)) {
      return terminator.emitError() << "yields one value twice";
    }
    argumentTypes.push_back(gradientType(result));
    gradients[result] =
        body->addArgument(argumentTypes.back(), result.getLoc());
  }
  for (BlockArgument argument : forward.getBody().getArguments()) {
    if (!isActive(argument)) {
      argumentTypes.push_back(argument.getType());
      inactiveArguments[argument] =
          body->addArgument(argument.getType(), argument.getLoc());
    }
  }
  for (Operation &op : llvm::reverse(forward.getBody().front())) {
    if (isa<ReturnOp, ParamOp, UseOp>(op) ||
        llvm::none_of(op.getResults(),
                      [&](Value value) { return gradientOf(value); })) {
      continue;
    }
    auto differentiable = dyn_cast<Differentiable>(op);
    if (!differentiable) {
      return op.emitError() << "has no gradient (Differentiable)";
    }
    differentiable.buildGradient(*this);
  }
  SmallVector<Value> results;
  for (BlockArgument argument : forward.getBody().getArguments()) {
    if (!isActive(argument)) {
      continue;
    }
    Value gradient = gradientOf(argument);
    if (!gradient) {
      return forward.emitError() << "argument " << argument.getArgNumber()
                                 << " does not influence any result";
    }
    resultTypes.push_back(gradientType(argument));
    results.push_back(gradient);
  }
  ReturnOp::create(inner, terminator.getLoc(), results);
  orderSaved();
  return success();
}

/// Saved values in the order of the forward: that in which backwards ask for
/// them is an accident of how they are written.
void BlockGradient::orderSaved() {
  llvm::DenseMap<Value, int64_t> order;
  int64_t next = 0;
  for (BlockArgument argument : forward.getBody().getArguments()) {
    order[argument] = next++;
  }
  for (Operation &op : forward.getBody().front()) {
    for (Value result : op.getResults()) {
      order[result] = next++;
    }
  }
  SmallVector<std::pair<Value, BlockArgument>> entries(saved.begin(),
                                                       saved.end());
  llvm::sort(entries, [&](const auto &a, const auto &b) {
    return order.lookup(a.first) < order.lookup(b.first);
  });
  const size_t first = argumentTypes.size();
  saved.clear();
  for (auto &[value, old] : entries) {
    BlockArgument argument = body->addArgument(value.getType(), value.getLoc());
    old.replaceAllUsesWith(argument);
    saved[value] = argument;
    argumentTypes.push_back(value.getType());
  }
  body->eraseArguments(first, entries.size());
}

/// The block as it is evaluated: no dropout.
void makeEval(OpBuilder &builder, BlockOp block) {
  IRMapping mapping;
  FunctionOp function = cloneBlock(builder, block, ".eval", mapping);
  function.walk([](Randomized op) { op.makeDeterministic(); });
}

LogicalResult makeTraining(OpBuilder &builder, BlockOp block) {
  IRMapping mapping;
  FunctionOp forward = cloneBlock(builder, block, ".forward", mapping);
  SmallVector<Differentiable> ops(
      forward.getBody().front().getOps<Differentiable>());
  for (Differentiable op : ops) {
    OpBuilder at(op);
    op.expandForTraining(at);
  }

  auto backward = FunctionOp::create(
      builder, block.getLoc(), (block.getSymName() + ".backward").str(),
      FunctionType::get(block.getContext(), {}, {}), ArrayAttr(), ArrayAttr(),
      block.getSymNameAttr(), 0, 0);
  std::optional<llvm::DenseSet<Value>> kept;
  const Recompute recompute = block.getRecompute().value_or(Recompute::None);
  const bool gathers = llvm::any_of(
      forward.getBody().front(), [](Operation &op) { return isGather(&op); });
  if (recompute != Recompute::None || gathers) {
    // What a backward asks for shows when it is built.
    BlockGradient everything(forward, backward);
    if (failed(everything.build())) {
      return failure();
    }
    SmallVector<Value> asked;
    for (auto &[value, argument] : everything.saved) {
      asked.push_back(value);
    }
    kept = chooseKept(forward, recompute, asked);
    backward.getBody().front().erase();
  }
  BlockGradient gradient(forward, backward, kept ? &*kept : nullptr);
  if (failed(gradient.build())) {
    return failure();
  }
  const auto count = static_cast<int64_t>(gradient.saved.size());
  backward.setFunctionType(FunctionType::get(
      block.getContext(), gradient.argumentTypes, gradient.resultTypes));
  backward.setSavedArguments(count);

  auto terminator = cast<ReturnOp>(forward.getBody().front().getTerminator());
  SmallVector<Value> values(terminator.getValues());
  for (auto &[value, argument] : gradient.saved) {
    values.push_back(value);
  }
  terminator->setOperands(values);
  forward.setFunctionType(
      FunctionType::get(block.getContext(), block.getArgumentTypes(),
                        SmallVector<Type>(ValueRange(values).getTypes())));
  forward.setSavedResults(count);
  return success();
}

struct DifferentiatePass : mega::impl::DifferentiateBase<DifferentiatePass> {
  void runOnOperation() override {
    SmallVector<BlockOp> blocks(getOperation().getOps<BlockOp>());
    for (BlockOp block : blocks) {
      assignKeys(block);
      OpBuilder builder(block.getContext());
      builder.setInsertionPointAfter(block);
      makeEval(builder, block);
      if (failed(makeTraining(builder, block))) {
        return signalPassFailure();
      }
    }
  }
};

} // namespace
