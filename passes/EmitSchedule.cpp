//===- EmitSchedule.cpp ---------------------------------------------------===//
//
// tfm.model -> programs of one stage, their schedule, and the step's prologue.
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "dialects/exec/Exec.h"
#include "dialects/pipe/Pipe.h"
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <limits>

namespace mega {
#define GEN_PASS_DEF_EMITSCHEDULE
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

bool isActiveType(Type type) {
  return isa<FloatType>(cast<RankedTensorType>(type).getElementType());
}

/// Builds one pipe.program; inputs and counters are named on first use.
class ProgramBuilder {
public:
  ProgramBuilder(OpBuilder &builder, Location loc, StringRef name,
                 pipe::ActionKind kind)
      : program(pipe::ProgramOp::create(
            builder, loc, builder.getStringAttr(name),
            pipe::ActionKindAttr::get(builder.getContext(), kind))),
        loc(loc),
        inner(OpBuilder::atBlockEnd(&program.getBody().emplaceBlock())) {}

  Value input(tfm::InputOp op) {
    Value &value = inputs[op];
    if (!value) {
      value = pipe::InputOp::create(
          inner, op.getLoc(), op.getResult().getType(), op.getName(), false);
    }
    return value;
  }

  pipe::CallOp call(StringRef function, ValueRange arguments, TypeRange results,
                    int64_t application = 0, int64_t instance = 0,
                    int64_t count = 1, bool reverse = false) {
    return pipe::CallOp::create(inner, loc, results, function, arguments,
                                application, instance, count, reverse,
                                DenseI64ArrayAttr());
  }

  pipe::ProgramOp program;
  Location loc;
  OpBuilder inner;

private:
  llvm::DenseMap<Operation *, Value> inputs;
};

struct EmitSchedulePass : mega::impl::EmitScheduleBase<EmitSchedulePass> {
  using EmitScheduleBase::EmitScheduleBase;

  auto terms() { return model.getBody().front().getOps<tfm::LossTermOp>(); }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    model = findModel(module);
    if (!model) {
      return signalPassFailure();
    }
    const Applications applications(model);
    OpBuilder builder(model);
    if (failed(checkUses())) {
      return signalPassFailure();
    }
    for (auto term : terms()) {
      makeLossFunction(builder, term);
    }
    for (bool train : {true, false}) {
      makePrologue(builder, module, train);
      makeForward(builder, applications, train);
    }
    if (failed(makeBackward(builder, applications))) {
      return signalPassFailure();
    }
    const bool reduces = makeLossReduction(builder);
    if (module.lookupSymbol("reduce")) {
      ProgramBuilder reduce(builder, model.getLoc(), "step.reduce",
                            pipe::ActionKind::Finish);
      reduce.call("reduce", {}, {});
    }
    for (bool train : {true, false}) {
      if (!train && !reduces) {
        continue;
      }
      ProgramBuilder finish(builder, model.getLoc(),
                            train ? "step.finish" : "step.finish.eval",
                            pipe::ActionKind::Finish);
      if (reduces) {
        finish.call("losses", {}, {});
      }
      if (train) {
        finish.call("finish", {}, {});
      }
    }
    makeSchedules(builder);
    describe(builder);
    model.erase();
    SmallVector<tfm::BlockOp> blocks(module.getOps<tfm::BlockOp>());
    for (tfm::BlockOp block : blocks) {
      block.erase();
    }
  }

  /// An activation flows into one block only: its memory is taken over.
  LogicalResult checkUses() {
    for (Operation &op : model.getBody().front()) {
      if (auto repeat = dyn_cast<tfm::RepeatOp>(op)) {
        for (Value invariant : repeat.getInvariants()) {
          if (isActiveType(invariant.getType())) {
            return op.emitError()
                   << "operands after `with` are integers (positions, segment "
                      "ids), not "
                   << invariant.getType()
                   << ": the gradient of a float one is not summed over "
                      "applications yet";
          }
        }
      }
      for (Value result : op.getResults()) {
        if (isa<tfm::InputOp, tfm::CountValidOp>(op) ||
            !isActiveType(result.getType())) {
          continue;
        }
        SmallVector<Operation *> users;
        for (Operation *user : result.getUsers()) {
          if (!isa<tfm::OutputOp>(user)) {
            users.push_back(user);
          }
        }
        if (users.size() > 1) {
          InFlightDiagnostic error =
              op.emitError() << "a result flows into " << users.size()
                             << " places; let one block take it and pass it on";
          for (Operation *user : users) {
            error.attachNote(user->getLoc()) << "used here";
          }
          return error;
        }
        if (users.empty()) {
          return op.emitError() << "a result is never used";
        }
      }
    }
    return success();
  }

  std::string counter(tfm::LossTermOp term, StringRef what) {
    return (term.getName() + "." + what).str();
  }

  tfm::FunctionOp makeFunction(OpBuilder &builder, StringRef name,
                               TypeRange arguments) {
    auto function = tfm::FunctionOp::create(
        builder, model.getLoc(), name, builder.getFunctionType(arguments, {}),
        ArrayAttr(), ArrayAttr(), StringAttr(), 0, 0);
    Block &body = function.getBody().emplaceBlock();
    for (Type type : arguments) {
      body.addArgument(type, model.getLoc());
    }
    return function;
  }

  void makeLossFunction(OpBuilder &builder, tfm::LossTermOp term) {
    auto function = makeFunction(builder, ("loss." + term.getName()).str(),
                                 term.getSum().getType());
    Block &body = function.getBody().front();
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    tfm::RecordOp::create(inner, term.getLoc(), counter(term, "sum"),
                          body.getArgument(0), true);
    tfm::ReturnOp::create(inner, term.getLoc(), ValueRange());
  }

  /// Adds up the loss sums of all replicas, for the report; false if one rank
  /// has them all.
  bool makeLossReduction(OpBuilder &builder) {
    SmallVector<tfm::LossTermOp> partial;
    for (auto term : terms()) {
      if (reduced(term.getSum().getType()) != term.getSum().getType()) {
        partial.push_back(term);
      }
    }
    if (partial.empty()) {
      return false;
    }
    auto function = makeFunction(builder, "losses", {});
    OpBuilder inner = OpBuilder::atBlockEnd(&function.getBody().front());
    for (tfm::LossTermOp term : partial) {
      const auto type = cast<RankedTensorType>(term.getSum().getType())
                            .clone(builder.getF64Type());
      Value sum = tfm::ReadCounterOp::create(inner, term.getLoc(), type,
                                             counter(term, "sum"));
      tfm::RecordOp::create(inner, term.getLoc(), counter(term, "sum"),
                            reduce(inner, term.getLoc(), sum), false);
    }
    tfm::ReturnOp::create(inner, model.getLoc(), ValueRange());
    return true;
  }

  /// The type of a sum once it is reduced over all axes.
  static RankedTensorType reduced(Type type) {
    const auto tensor = cast<RankedTensorType>(type);
    Layout layout = dist::layoutIn(tensor);
    if (layout.partial == 0) {
      return tensor;
    }
    layout.partial = 0;
    return dist::withLayout(tensor,
                            dist::LayoutAttr::get(type.getContext(), layout));
  }

  /// A sum, reduced over all axes.
  static Value reduce(OpBuilder &builder, Location loc, Value sum) {
    const RankedTensorType type = reduced(sum.getType());
    return type == sum.getType() ? sum
                                 : dist::createConversion(builder, loc, sum,
                                                          dist::layoutOf(type));
  }

  /// Zeroes what accumulates, counts the labels of the whole step and derives
  /// the seed of the backward.
  void makePrologue(OpBuilder &builder, ModuleOp module, bool train) {
    const StringRef name = train ? "prologue" : "prologue.eval";
    llvm::SetVector<Operation *> labels;
    for (auto term : terms()) {
      labels.insert(term.getCount()
                        .getDefiningOp<tfm::CountValidOp>()
                        .getLabels()
                        .getDefiningOp());
    }
    SmallVector<Type> types;
    for (Operation *input : labels) {
      const auto type = cast<RankedTensorType>(input->getResult(0).getType());
      types.push_back(
          type.clone({type.getDimSize(0) * microBatches, type.getDimSize(1)}));
    }
    auto function = makeFunction(builder, name, types);
    Block &body = function.getBody().front();
    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    if (train) {
      for (auto bucket : module.getOps<tfm::BucketOp>()) {
        tfm::ZeroGradientOp::create(
            inner, model.getLoc(),
            FlatSymbolRefAttr::get(bucket.getSymNameAttr()));
      }
    }
    for (auto term : terms()) {
      auto count = term.getCount().getDefiningOp<tfm::CountValidOp>();
      const auto position =
          std::distance(labels.begin(),
                        llvm::find(labels, count.getLabels().getDefiningOp()));
      tfm::ZeroCounterOp::create(inner, term.getLoc(), counter(term, "sum"));
      Value total = tfm::CountValidOp::create(
          inner, count.getLoc(), count.getResult().getType(),
          body.getArgument(position), count.getIgnoreAttr());
      total = reduce(inner, count.getLoc(), total);
      tfm::RecordOp::create(inner, term.getLoc(), counter(term, "count"), total,
                            false);
      if (train) {
        Value seed = tfm::LossSeedOp::create(inner, term.getLoc(),
                                             reduced(term.getSum().getType()),
                                             total, term.getWeightAttr());
        tfm::RecordOp::create(inner, term.getLoc(), counter(term, "seed"), seed,
                              false);
      }
    }
    tfm::ReturnOp::create(inner, model.getLoc(), ValueRange());

    ProgramBuilder program(builder, model.getLoc(), ("step." + name).str(),
                           pipe::ActionKind::Prologue);
    SmallVector<Value> inputs;
    for (auto [input, type] : llvm::zip(labels, types)) {
      inputs.push_back(
          pipe::InputOp::create(program.inner, input->getLoc(), type,
                                cast<tfm::InputOp>(input).getName(), true));
    }
    program.call(name, inputs, {});
  }

  void makeForward(OpBuilder &builder, const Applications &applications,
                   bool train) {
    ProgramBuilder program(builder, model.getLoc(),
                           train ? "step.forward" : "step.forward.eval",
                           pipe::ActionKind::Forward);
    llvm::DenseMap<Value, Value> values;
    const auto lookup = [&](Value value) {
      auto input = value.getDefiningOp<tfm::InputOp>();
      return input ? program.input(input) : values.lookup(value);
    };
    for (ApplicationRun run : applications.runs()) {
      // Later runs of one repeat continue with the results so far.
      SmallVector<Value> arguments;
      for (auto [index, operand] : llvm::enumerate(run.op->getOperands())) {
        Value carried = index < run.op->getNumResults()
                            ? values.lookup(run.op->getResult(index))
                            : Value();
        arguments.push_back(carried ? carried : lookup(operand));
      }
      pipe::CallOp call = program.call(
          (run.block.getSymName() + (train ? ".forward" : ".eval")).str(),
          arguments, run.op->getResultTypes(), run.application, run.instance,
          run.count);
      for (auto [result, value] :
           llvm::zip(run.op->getResults(), call.getResults())) {
        values[result] = value;
      }
    }
    for (auto term : terms()) {
      program.call(("loss." + term.getName()).str(), lookup(term.getSum()), {});
    }
  }

  LogicalResult makeBackward(OpBuilder &builder,
                             const Applications &applications) {
    ProgramBuilder program(builder, model.getLoc(), "step.backward",
                           pipe::ActionKind::Backward);
    llvm::DenseMap<Value, Value> gradients;
    for (auto term : terms()) {
      gradients[term.getSum()] = pipe::CounterOp::create(
          program.inner, term.getLoc(), tfm::gradientType(term.getSum()),
          counter(term, "seed"));
    }
    for (size_t next = applications.runs().size(); next-- > 0;) {
      ApplicationRun run = applications.runs()[next];
      SmallVector<Value> arguments;
      for (Value result : run.op->getResults()) {
        if (!isActiveType(result.getType())) {
          continue;
        }
        Value gradient = gradients.lookup(result);
        if (!gradient) {
          return run.op->emitError()
                 << "a result does not influence the loss; remove it or add a "
                    "loss term";
        }
        arguments.push_back(gradient);
      }
      SmallVector<Value> active;
      for (Value operand : run.op->getOperands()) {
        if (isActiveType(operand.getType())) {
          active.push_back(operand);
          continue;
        }
        auto input = operand.getDefiningOp<tfm::InputOp>();
        if (!input) {
          return run.op->emitError() << "an integer operand must be an input "
                                        "of the model";
        }
        arguments.push_back(program.input(input));
      }
      pipe::CallOp call =
          program.call((run.block.getSymName() + ".backward").str(), arguments,
                       llvm::map_to_vector(active,
                                           [](Value value) -> Type {
                                             return tfm::gradientType(value);
                                           }),
                       run.application, run.instance, run.count,
                       /*reverse=*/true);
      for (auto [index, operand] : llvm::enumerate(active)) {
        // Earlier runs of the same repeat come next.
        const bool first =
            next == 0 || applications.runs()[next - 1].op != run.op;
        Value target = first ? operand : run.op->getResult(index);
        gradients[target] = call.getResult(index);
      }
    }
    return success();
  }

  void makeSchedules(OpBuilder &builder) {
    for (bool train : {true, false}) {
      SmallVector<Attribute> programs;
      const auto program = [&](StringRef name) {
        programs.push_back(
            FlatSymbolRefAttr::get(&getContext(), ("step." + name).str()));
        return static_cast<int32_t>(programs.size() - 1);
      };
      const int32_t prologue = program(train ? "prologue" : "prologue.eval");
      const int32_t forward = program(train ? "forward" : "forward.eval");
      SmallVector<int32_t> actions = {prologue, 0, 0};
      const int32_t backward = train ? program("backward") : 0;
      for (int32_t m = 0; m < microBatches; ++m) {
        actions.append({forward, m, 0});
        if (train) {
          actions.append({backward, m, 0});
        }
      }
      const SmallVector<StringRef, 2> last =
          train ? SmallVector<StringRef, 2>{"reduce", "finish"}
                : SmallVector<StringRef, 2>{"finish.eval"};
      for (StringRef name : last) {
        if (getOperation().lookupSymbol(("step." + name).str())) {
          actions.append({program(name), 0, 0});
        }
      }
      pipe::ScheduleOp::create(builder, model.getLoc(),
                               train ? "train" : "eval", 0, microBatches,
                               builder.getArrayAttr(programs), actions);
    }
  }

  /// The smallest table the ids of `input` index, in any block of a cycle.
  int64_t limitOf(tfm::InputOp input) {
    int64_t limit = std::numeric_limits<int32_t>::max();
    for (OpOperand &use : input.getResult().getUses()) {
      Operation *op = use.getOwner();
      SmallVector<Attribute> callees;
      if (auto call = dyn_cast<tfm::CallOp>(op)) {
        callees.push_back(call.getCalleeAttr());
      } else if (auto repeat = dyn_cast<tfm::RepeatOp>(op)) {
        llvm::append_range(callees, repeat.getBlocks());
      }
      for (Attribute callee : callees) {
        auto block = SymbolTable::lookupNearestSymbolFrom<tfm::BlockOp>(
            op, cast<FlatSymbolRefAttr>(callee));
        limit = std::min(limit, tableRows(block.getBody().getArgument(
                                    use.getOperandNumber())));
      }
    }
    return limit;
  }

  /// The smallest table the ids of a block argument index.
  int64_t tableRows(Value argument) {
    int64_t limit = std::numeric_limits<int32_t>::max();
    for (Operation *user : argument.getUsers()) {
      auto indexing = dyn_cast<tfm::IndexesByIds>(user);
      if (indexing && indexing.getIndexIds() == argument) {
        limit = std::min(limit, indexing.getIndexLimit());
      }
    }
    return limit;
  }

  /// What the plan says besides programs: inputs, loss terms, its name.
  void describe(OpBuilder &builder) {
    for (auto input : model.getBody().front().getOps<tfm::InputOp>()) {
      exec::InputOp::create(
          builder, input.getLoc(), input.getNameAttr(),
          builder.getI64IntegerAttr(limitOf(input)), IntegerAttr(),
          TypeAttr::get(exec::BufferType::get(dist::localType(
              cast<RankedTensorType>(input.getResult().getType()),
              dist::meshOf(getOperation())))));
    }
    for (auto term : terms()) {
      exec::LossTermOp::create(
          builder, term.getLoc(), term.getNameAttr(), term.getWeightAttr(),
          term.getCount().getDefiningOp<tfm::CountValidOp>().getIgnoreAttr());
    }
    getOperation().setSymNameAttr(model.getSymNameAttr());
  }

  tfm::ModelOp model;
};

} // namespace
