//===- InsertCollectives.cpp ----------------------------------------------===//
//
// Walks every block forward and gives each value a layout: parameters start
// with what AnnotateLayouts chose, inputs are cut over dp, and an op whose
// operands do not fit its rule gets them converted. On one axis at a time there
// is little to decide:
//
//   a cut parameter maps its factor: the activations that carry it are sliced,
//   the others become replicated (entering a column-parallel linear);
//   otherwise the factor that the activations are cut along is mapped, unless
//   the op needs it whole, then they are gathered;
//   a sum that the op is not linear in is reduced, to where the residual stream
//   lives: invariant, or cut along the sequence.
//
// Over cp every value is cut along the sequence, but for the places of tokens,
// which are whole and sliced; what attention does about the keys of other ranks
// is decided before (ContextParallel.h).
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/ContextParallel.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace mega {
#define GEN_PASS_DEF_INSERTCOLLECTIVES
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

namespace {

using Role = ShardingRule::Role;

/// One block, or the model, on one mesh.
class Walk {
public:
  Walk(const Mesh &mesh, const ContextParallel &context, bool sequenceParallel,
       bool forbidImplicit)
      : mesh(mesh), context(context), sequenceParallel(sequenceParallel),
        forbidImplicit(forbidImplicit) {}

  LogicalResult block(BlockOp block);
  /// The type of an input that no block reads.
  RankedTensorType inputType(RankedTensorType type) const {
    return dist::withLayout(
        type, dist::LayoutAttr::get(type.getContext(), boundary(type, false)));
  }

private:
  LogicalResult op(Sharded op);
  LogicalResult axis(Sharded op, const ShardingRule &rule, mega::Axis axis);
  LogicalResult unmapped(Sharded op, const ShardingRule &rule, mega::Axis axis);
  std::optional<char> factorOf(Sharded op, const ShardingRule &rule,
                               mega::Axis axis);
  LogicalResult convert(Operation *op, unsigned operand, const Layout &layout);
  LogicalResult checkAsked(Operation *op, Value value, const Layout &layout);
  LogicalResult constrain(dist::ConstrainOp op);
  Layout boundary(RankedTensorType type, bool places) const;
  void cutHeads();
  LogicalResult cutSequence(AttentionOp op);
  bool isReplicated(Sharded op, mega::Axis axis);
  Layout layoutOf(Value value) {
    const dist::LayoutAttr attr = dist::layoutOf(value.getType());
    return attr ? attr.getLayout() : Layout();
  }
  Layout residual(Value value, const Layout &from, mega::Axis axis) const;

  Mesh mesh;
  ContextParallel context;
  bool sequenceParallel;
  /// Only dist.constrain may move data.
  bool forbidImplicit;
  /// What the op in hand wants its operands to be.
  SmallVector<Layout> wanted;
  /// At most one conversion of a value to a layout.
  std::map<std::pair<void *, std::string>, Value> converted;
};

/// Those of a dimension are cut in this order.
constexpr mega::Axis kAxes[] = {mega::Axis::Cp, mega::Axis::TpMajor,
                                mega::Axis::TpMinor, mega::Axis::Tp,
                                mega::Axis::Dp};

/// `layout` with `axis` in `state`; a cut of a dimension of rank `rank`.
Layout with(Layout layout, mega::Axis axis, State state, int dim = -1,
            int rank = 0, bool zigzag = false) {
  const uint8_t bit = mega::bit(axis);
  layout.replicated &= static_cast<uint8_t>(~bit);
  layout.partial &= static_cast<uint8_t>(~bit);
  if (layout.partial == 0) {
    layout.reduction = Reduction::Sum;
  }
  if (const int old = layout.shardedDim(axis); old >= 0) {
    layout.dims[static_cast<size_t>(old)].remove(axis);
    if (llvm::all_of(layout.dims, [](const auto &d) { return d.count == 0; })) {
      layout.rank = 0;
    }
  }
  switch (state) {
  case State::Invariant:
    break;
  case State::Replicated:
    layout.replicated |= bit;
    break;
  case State::Partial:
    layout.partial |= bit;
    break;
  case State::Shard:
    layout.rank = static_cast<uint8_t>(rank);
    layout.dims[static_cast<size_t>(dim)].push(axis);
    layout.dims[static_cast<size_t>(dim)].zigzag |= zigzag;
    break;
  }
  return layout;
}

/// Where a reduced value of the residual stream lives on `axis`.
Layout Walk::residual(Value value, const Layout &from, mega::Axis axis) const {
  const bool cut =
      isTp(axis) && sequenceParallel && tensor(value).getRank() == 3;
  return cut ? with(from, axis, State::Shard, 1, 3)
             : with(from, axis, State::Invariant);
}

/// With forbidImplicit: moving data takes a dist.constrain. What the joined
/// head needs inside is part of the cross entropy that the model asked for.
LogicalResult Walk::checkAsked(Operation *op, Value value,
                               const Layout &layout) {
  if (!forbidImplicit ||
      isa<dist::ConstrainOp, HeadRescaleOp, HeadLossOp>(op)) {
    return success();
  }
  const Layout from = layoutOf(value);
  const auto change = changeBetween(from, layout);
  if (change.isOk() && (change->conversion == Conversion::Replicate ||
                        change->conversion == Conversion::AssumeInvariant)) {
    return success();
  }
  // The method of context parallelism asked for what moves over cp.
  if (change.isOk() && change->axes == std::vector{mega::Axis::Cp}) {
    return success();
  }
  InFlightDiagnostic error = op->emitError();
  error << "needs <" << layout.str() << "> where the value is <" << from.str()
        << ">, which takes "
        << (change.isOk() ? mega::name(change->conversion) : "a conversion")
        << " that nobody asked for; write dist.constrain %x to <"
        << layout.str()
        << "> before it, or leave out "
           "--forbid-implicit-reshard";
  if (Operation *source = value.getDefiningOp()) {
    error.attachNote(source->getLoc()) << "the value";
  }
  return error;
}

/// Replaces the op by its operand, converted over tp.
LogicalResult Walk::constrain(dist::ConstrainOp op) {
  const Layout asked = op.getLayout().getLayout();
  const auto rank = static_cast<int>(tensor(op.getX()).getRank());
  Layout layout = layoutOf(op.getX());
  for (mega::Axis axis : kTpAxes) {
    if (mesh.size(axis) > 1) {
      layout = with(layout, axis, asked.state(mega::Axis::Tp),
                    asked.shardedDim(mega::Axis::Tp), rank);
    }
  }
  if (failed(convert(op, 0, layout))) {
    return failure();
  }
  op.getResult().replaceAllUsesWith(op.getX());
  op.erase();
  return success();
}

/// Converts an operand, or gives a parameter without uses so far its layout.
/// By one conversion where one does it, else axis by axis.
LogicalResult Walk::convert(Operation *op, unsigned operand,
                            const Layout &layout) {
  Value value = op->getOperand(operand);
  const auto attrOf = [&](const Layout &of) {
    return dist::LayoutAttr::get(op->getContext(), of);
  };
  if (layoutOf(value) == layout) {
    return success();
  }
  if (isParameter(value)) {
    if (!converted.count({value.getAsOpaquePointer(), ""})) {
      value.setType(dist::withLayout(tensor(value), attrOf(layout)));
      return success();
    }
    return op->emitError()
           << "needs its parameter as <" << layout.str() << ">, an earlier op "
           << "as <" << layoutOf(value).str()
           << ">; a parameter used in two ways is not supported yet";
  }
  Value &result = converted[{value.getAsOpaquePointer(), layout.str()}];
  if (!result) {
    if (failed(checkAsked(op, value, layout))) {
      return failure();
    }
    OpBuilder builder(op);
    const auto rank = static_cast<int>(tensor(value).getRank());
    result = value;
    if (!changeBetween(layoutOf(value), layout).isOk()) {
      const auto change = [&](mega::Axis axis) -> LogicalResult {
        Layout step = layoutOf(result);
        const int dim = layout.shardedDim(axis);
        if (step.state(axis) == layout.state(axis) &&
            step.shardedDim(axis) == dim) {
          return success();
        }
        const bool zigzag = axis == mega::Axis::Cp && dim >= 0 &&
                            layout.dims[static_cast<size_t>(dim)].zigzag;
        step = with(step, axis, layout.state(axis), dim, rank, zigzag);
        result =
            dist::createConversion(builder, op->getLoc(), result, attrOf(step));
        return success(result != nullptr);
      };
      // Minor axes leave a dimension first, major ones enter it first.
      for (mega::Axis axis : llvm::reverse(kAxes)) {
        if (layout.state(axis) != State::Shard && failed(change(axis))) {
          return failure();
        }
      }
      for (mega::Axis axis : kAxes) {
        if (failed(change(axis))) {
          return failure();
        }
      }
    }
    result =
        dist::createConversion(builder, op->getLoc(), result, attrOf(layout));
    if (!result) {
      return failure();
    }
  }
  op->setOperand(operand, result);
  return success();
}

/// Whether a parameter was annotated as replicated: every rank computes all.
bool Walk::isReplicated(Sharded op, mega::Axis axis) {
  return llvm::any_of(
      llvm::enumerate(op->getOperands()), [&](const auto &each) {
        return isParameter(each.value()) &&
               wanted[each.index()].state(axis) == State::Replicated;
      });
}

/// The factor that `axis` cuts in this op: a parameter's word first.
std::optional<char> Walk::factorOf(Sharded op, const ShardingRule &rule,
                                   mega::Axis axis) {
  std::optional<char> factor;
  if (isReplicated(op, axis)) {
    return factor;
  }
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (rule.operands[index].role == Role::Any) {
      continue;
    }
    const int dim = wanted[index].shardedDim(axis);
    if (dim < 0) {
      continue;
    }
    const char found = rule.operands[index].factors[static_cast<size_t>(dim)];
    if (ShardingRule::isWhole(found)) {
      continue;
    }
    if (isParameter(operand)) {
      return found;
    }
    factor = factor.value_or(found);
  }
  return factor;
}

LogicalResult Walk::unmapped(Sharded op, const ShardingRule &rule,
                             mega::Axis axis) {
  // Sums pass where the op is linear in them; elsewhere they are reduced.
  const auto activations = llvm::count_if(op->getOperands(), [&](Value value) {
    return isa<FloatType>(tensor(value).getElementType());
  });
  const bool allPartial = llvm::all_of(
      llvm::enumerate(op->getOperands()), [&](const auto &operand) {
        return rule.operands[operand.index()].role == Role::Additive &&
               wanted[operand.index()].state(axis) == State::Partial;
      });
  bool reduced = false;
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    const Role role = rule.operands[index].role;
    const Layout layout = wanted[index];
    const State state = layout.state(axis);
    const bool whole = state == State::Shard;
    const bool keeps =
        allPartial || role == Role::Any ||
        (role == Role::Linear && activations == 1) ||
        (role == Role::Linear && isa<HeadRescaleOp>(op.getOperation()));
    if (whole) {
      // The op needs it whole: everybody computes the same.
      wanted[index] =
          with(layout, axis,
               isReplicated(op, axis) ? State::Replicated : State::Invariant);
    } else if (state == State::Partial && !keeps) {
      const bool inactive = role == Role::Inactive;
      wanted[index] = inactive ? with(layout, axis, State::Invariant)
                               : residual(operand, layout, axis);
      reduced = true;
    }
  }
  if (reduced && factorOf(op, rule, axis)) {
    return this->axis(op, rule, axis);
  }
  const bool replicated =
      llvm::any_of(llvm::enumerate(op->getOperands()), [&](const auto &each) {
        return wanted[each.index()].state(axis) == State::Replicated;
      });
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    const Role role = rule.operands[index].role;
    const State state = wanted[index].state(axis);
    if (role == Role::Any || role == Role::Inactive ||
        state == State::Partial) {
      continue;
    }
    const State all = replicated ? State::Replicated : State::Invariant;
    if (state != all) {
      wanted[index] = with(wanted[index], axis, all);
    }
  }
  return success();
}

LogicalResult Walk::axis(Sharded op, const ShardingRule &whole,
                         mega::Axis axis) {
  const ShardingRule rule = whole.on(axis, {wanted.data(), wanted.size()}, {});
  const std::optional<char> factor = factorOf(op, rule, axis);
  if (!factor) {
    return unmapped(op, rule, axis);
  }
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    const ShardingRule::Tensor &expected = rule.operands[index];
    if (expected.role == Role::Any) {
      continue;
    }
    const Layout layout = wanted[index];
    const size_t dim = expected.factors.find(*factor);
    if (dim != std::string::npos) {
      if (layout.shardedDim(axis) == static_cast<int>(dim)) {
        continue;
      }
      // Over cp a sequence is in one order everywhere; heads have none.
      const bool zigzag =
          axis == mega::Axis::Cp && llvm::any_of(wanted, [](const Layout &l) {
            const int cut = l.shardedDim(mega::Axis::Cp);
            return cut >= 0 && l.dims[static_cast<size_t>(cut)].zigzag;
          });
      wanted[index] = with(layout, axis, State::Shard, static_cast<int>(dim),
                           static_cast<int>(expected.factors.size()), zigzag);
    } else if (expected.role == Role::Inactive &&
               layout.state(axis) == State::Invariant) {
      continue;
    } else {
      wanted[index] = with(layout, axis, State::Replicated);
    }
  }
  return success();
}

LogicalResult Walk::op(Sharded op) {
  const bool attends = isa<AttentionOp>(op.getOperation());
  if (attends && context.method == CpMethod::Ring) {
    cast<AttentionOp>(op.getOperation()).setRing(true);
  }
  const ShardingRule rule = op.getShardingRule();
  wanted.clear();
  for (Value operand : op->getOperands()) {
    wanted.push_back(layoutOf(operand));
  }
  if (attends && context.method == CpMethod::AllToAll) {
    cutHeads();
  }
  for (mega::Axis a : kAxes) {
    if (mesh.size(a) > 1 && failed(axis(op, rule, a))) {
      return failure();
    }
  }
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (failed(convert(op, i, wanted[i]))) {
      return failure();
    }
  }
  std::vector<Layout> layouts;
  for (Value operand : op->getOperands()) {
    layouts.push_back(layoutOf(operand));
    if (isParameter(operand)) {
      // From now on it is used: its layout stands.
      converted[{operand.getAsOpaquePointer(), ""}] = operand;
    }
  }
  auto results = inferSharding(rule, layouts);
  if (!results.isOk()) {
    return op->emitError() << op->getName() << ": "
                           << results.status().message();
  }
  for (auto [result, layout] : llvm::zip(op->getResults(), *results)) {
    result.setType(dist::withLayout(
        tensor(result), dist::LayoutAttr::get(op->getContext(), layout)));
  }
  return attends && context.method == CpMethod::AllToAll
             ? cutSequence(cast<AttentionOp>(op.getOperation()))
             : success();
}

/// Queries, keys and values are to be cut by heads instead of the sequence.
void Walk::cutHeads() {
  for (Layout &layout : MutableArrayRef(wanted).take_front(3)) {
    layout = with(layout, mega::Axis::Cp, State::Shard, 2, 4);
  }
}

/// What attention makes of them goes back to the sequence.
LogicalResult Walk::cutSequence(AttentionOp op) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value result = op.getResult();
  const Layout layout = with(layoutOf(result), mega::Axis::Cp, State::Shard, 1,
                             4, context.zigzag);
  Value back =
      dist::createConversion(builder, op.getLoc(), result,
                             dist::LayoutAttr::get(op->getContext(), layout));
  if (!back) {
    return failure();
  }
  result.replaceAllUsesExcept(back, back.getDefiningOp());
  return success();
}

/// What enters and leaves blocks; `places` of tokens are whole over cp.
Layout Walk::boundary(RankedTensorType type, bool places) const {
  Layout layout;
  const auto rank = static_cast<int>(type.getRank());
  if (mesh.size(mega::Axis::Dp) > 1 && rank > 0) {
    layout = with(layout, mega::Axis::Dp, State::Shard, 0, rank);
  }
  if (mesh.size(mega::Axis::Cp) > 1 && rank > 1 && !places) {
    layout =
        with(layout, mega::Axis::Cp, State::Shard, 1, rank, context.zigzag);
  }
  for (mega::Axis axis : kTpAxes) {
    if (mesh.size(axis) > 1 && sequenceParallel && rank == 3) {
      layout = with(layout, axis, State::Shard, 1, 3);
    }
  }
  return layout;
}

LogicalResult Walk::block(BlockOp block) {
  MLIRContext *context = block.getContext();
  SmallVector<Type> arguments;
  for (BlockArgument argument : block.getBody().getArguments()) {
    const bool places =
        !argument.use_empty() && llvm::all_of(argument.getUses(), isPlaces);
    argument.setType(dist::withLayout(
        tensor(argument),
        dist::LayoutAttr::get(context, boundary(tensor(argument), places))));
    arguments.push_back(argument.getType());
  }
  SmallVector<Operation *> ops;
  for (Operation &op : block.getBody().front()) {
    ops.push_back(&op);
  }
  SmallVector<Type> results;
  for (Operation *op : ops) {
    if (isa<ParamOp, UseOp>(op)) {
      continue;
    }
    if (auto sharded = dyn_cast<Sharded>(op)) {
      if (failed(this->op(sharded))) {
        return failure();
      }
      continue;
    }
    if (auto asked = dyn_cast<dist::ConstrainOp>(op)) {
      if (failed(constrain(asked))) {
        return failure();
      }
      continue;
    }
    auto yield = dyn_cast<YieldOp>(op);
    if (!yield) {
      return op->emitError() << "has no sharding rule (Sharded)";
    }
    for (auto [index, value] : llvm::enumerate(yield.getValues())) {
      // What leaves a block is cut or invariant; a loss stays a sum over the
      // replicas, which is reduced once per step.
      Layout wanted = boundary(tensor(value), false);
      if (tensor(value).getRank() == 0) {
        wanted = layoutOf(value);
        for (mega::Axis axis : kTpAxes) {
          wanted = with(wanted, axis, State::Invariant);
        }
      }
      if (failed(convert(yield, static_cast<unsigned>(index), wanted))) {
        return failure();
      }
      results.push_back(
          yield.getOperand(static_cast<unsigned>(index)).getType());
    }
  }
  block.setFunctionType(FunctionType::get(context, arguments, results));
  return success();
}

struct InsertCollectivesPass
    : mega::impl::InsertCollectivesBase<InsertCollectivesPass> {
  using InsertCollectivesBase::InsertCollectivesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Mesh mesh = dist::meshOf(module);
    FailureOr<ContextParallel> context =
        chooseContextParallel(module, mesh, sequenceParallel, cpMethod);
    if (failed(context) || failed(checkSequences(module, mesh))) {
      return signalPassFailure();
    }
    Walk walk(mesh, *context, sequenceParallel, forbidImplicit);
    for (auto block : module.getOps<BlockOp>()) {
      if (failed(walk.block(block))) {
        return signalPassFailure();
      }
    }
    for (auto model : module.getOps<ModelOp>()) {
      if (failed(types(model, walk, mesh))) {
        return signalPassFailure();
      }
    }
  }

  /// Sequences are never padded.
  LogicalResult checkSequences(ModuleOp module, const Mesh &mesh) {
    const int64_t tp = mesh.tp();
    // With cp there is a check of both.
    if (!sequenceParallel || tp == 1 || mesh.size(mega::Axis::Cp) > 1) {
      return success();
    }
    for (auto block : module.getOps<BlockOp>()) {
      for (BlockArgument argument : block.getBody().getArguments()) {
        const RankedTensorType type = tensor(argument);
        if (type.getRank() != 3 || type.getDimSize(1) % tp == 0) {
          continue;
        }
        const int64_t length = type.getDimSize(1);
        const int64_t below = length / tp * tp;
        InFlightDiagnostic error = emitError(argument.getLoc());
        error << "--sp cuts sequences of " << length << " over --tp " << tp
              << ", which does not divide them (nearest: ";
        if (below > 0) {
          error << below << ", ";
        }
        return error << below + tp << ")";
      }
    }
    return success();
  }

  /// Values of the model have the layouts of the blocks they pass.
  LogicalResult types(ModelOp model, const Walk &walk, const Mesh &mesh) {
    auto module = model->getParentOfType<ModuleOp>();
    const auto blockOf = [&](Operation &op) {
      StringRef name;
      if (auto call = dyn_cast<CallOp>(op)) {
        name = call.getCallee();
      } else {
        name = cast<RepeatOp>(op).blockOf(0).getValue();
      }
      return module.lookupSymbol<BlockOp>(name);
    };
    for (Operation &op : model.getBody().front()) {
      if (auto input = dyn_cast<InputOp>(op)) {
        Value value = input.getResult();
        value.setType(walk.inputType(tensor(value)));
        for (OpOperand &use : value.getUses()) {
          if (isa<CallOp, RepeatOp>(use.getOwner())) {
            value.setType(blockOf(*use.getOwner())
                              .getBody()
                              .getArgument(use.getOperandNumber())
                              .getType());
          }
        }
      } else if (auto count = dyn_cast<CountValidOp>(op)) {
        Layout layout;
        for (mega::Axis axis : {mega::Axis::Cp, mega::Axis::Dp}) {
          if (mesh.size(axis) > 1) {
            layout = with(layout, axis, State::Partial);
          }
        }
        count.getResult().setType(
            dist::withLayout(tensor(count.getResult()),
                             dist::LayoutAttr::get(&getContext(), layout)));
      } else if (isa<CallOp, RepeatOp>(op)) {
        for (auto [result, type] :
             llvm::zip(op.getResults(), blockOf(op).getResultTypes())) {
          result.setType(cast<RankedTensorType>(type));
        }
      }
    }
    return success();
  }
};

} // namespace
