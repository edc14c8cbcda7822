//===- EmitSchedule.cpp ---------------------------------------------------===//
//
// tfm.model -> programs of one stage, their schedule, the step's prologue and
// its end.
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "dialects/exec/Exec.h"
#include "dialects/pipe/Pipe.h"
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"

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
                 pipe::ActionKind kind, IntegerAttr part = {})
      : program(pipe::ProgramOp::create(
            builder, loc, builder.getStringAttr(name),
            pipe::ActionKindAttr::get(builder.getContext(), kind), part)),
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

  Value boundary(Type type) {
    if (!buffer) {
      buffer = pipe::BoundaryOp::create(inner, loc, type);
    }
    return buffer;
  }

  pipe::CallOp call(StringRef function, ValueRange arguments,
                    TypeRange results) {
    return pipe::CallOp::create(inner, loc, results, function, arguments, 0, 0,
                                1, false, DenseI64ArrayAttr(), IntegerAttr());
  }
  pipe::CallOp call(StringRef function, ValueRange arguments, TypeRange results,
                    const ApplicationRun &run, bool reverse) {
    return pipe::CallOp::create(
        inner, loc, results, function, arguments, run.application, run.instance,
        run.count, reverse, DenseI64ArrayAttr(),
        run.frame == run.instance ? IntegerAttr()
                                  : inner.getI64IntegerAttr(run.frame));
  }

  pipe::ProgramOp program;
  Location loc;
  OpBuilder inner;

private:
  llvm::DenseMap<Operation *, Value> inputs;
  Value buffer;
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
    auto pipeline = pipelineRequest(module, pp, vpp, schedule, microBatches);
    if (!pipeline.isOk()) {
      model.emitError() << pipeline.status().message();
      return signalPassFailure();
    }
    request = *pipeline;
    stage = stageOf(module);
    for (auto term : terms()) {
      if (!isElsewhere(term)) {
        makeLossFunction(builder, term);
      }
    }
    for (bool train : {true, false}) {
      makePrologue(builder, module, train);
      for (int64_t chunk = 0; chunk < request.chunks; ++chunk) {
        makeForward(builder, applications, chunk, train);
      }
    }
    for (int64_t chunk = 0; chunk < request.chunks; ++chunk) {
      if (failed(makeBackward(builder, applications, chunk))) {
        return signalPassFailure();
      }
      if (splitsWeight(request)) {
        makeWeight(builder, applications, chunk);
      }
    }
    for (bool train : {true, false}) {
      makeFinish(builder, train);
      if (failed(makeSchedule(builder, train))) {
        return signalPassFailure();
      }
    }
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

  static bool isElsewhere(tfm::LossTermOp term) {
    return term.getSum().getDefiningOp<tfm::ElsewhereOp>() != nullptr;
  }

  /// Adds up the loss sums of all replicas, for the report, on the stage that
  /// has them; false if one rank has them all.
  bool makeLossReduction(OpBuilder &builder) {
    if (getOperation().lookupSymbol("losses")) {
      return true;
    }
    SmallVector<tfm::LossTermOp> partial;
    for (auto term : terms()) {
      if (!isElsewhere(term) &&
          reduced(term.getSum().getType()) != term.getSum().getType()) {
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

  /// Adds up, over the stages, what each of them counted for the report, and
  /// the squares of its gradients.
  void makeStageSums(OpBuilder &builder, bool train) {
    auto function = makeFunction(builder, train ? "sum" : "sum.eval", {});
    OpBuilder inner = OpBuilder::atBlockEnd(&function.getBody().front());
    const auto sum = [&](const std::string &name, RankedTensorType type) {
      Value own = tfm::ReadCounterOp::create(inner, model.getLoc(), type, name);
      Value all = tfm::SumStagesOp::create(inner, model.getLoc(), type, own,
                                           /*tie=*/false);
      tfm::RecordOp::create(inner, model.getLoc(), name, all, false);
    };
    const Type f64 = builder.getF64Type();
    for (auto term : terms()) {
      sum(counter(term, "sum"),
          cast<RankedTensorType>(reduced(term.getSum().getType()).clone(f64)));
    }
    if (train) {
      sum("gradient_square_sum",
          RankedTensorType::get(
              {}, f64, dist::LayoutAttr::get(&getContext(), Layout())));
    }
    tfm::ReturnOp::create(inner, model.getLoc(), ValueRange());
  }

  /// The programs that end a step, in order.
  void makeFinish(OpBuilder &builder, bool train) {
    const bool reduces = makeLossReduction(builder);
    SmallVector<std::pair<StringRef, SmallVector<StringRef, 2>>> programs;
    const auto exists = [&](StringRef function) {
      return getOperation().lookupSymbol(function) != nullptr;
    };
    if (request.stages > 1) {
      makeStageSums(builder, train);
      programs = {{"reduce", {"reduce"}},
                  {"tie", {"tie"}},
                  {"norm", {"losses", "norm"}},
                  {"sum", {"sum"}},
                  {"finish", {"finish"}}};
      if (!train) {
        programs = {{"norm.eval", {"losses"}}, {"sum.eval", {"sum.eval"}}};
      }
    } else if (train) {
      programs = {{"reduce", {"reduce"}}, {"finish", {"losses", "finish"}}};
    } else if (reduces) {
      programs = {{"finish.eval", {"losses"}}};
    }
    ending.clear();
    for (const auto &[name, functions] : programs) {
      SmallVector<StringRef> calls(llvm::make_filter_range(functions, exists));
      if (calls.empty()) {
        continue;
      }
      ending.push_back(("step." + name).str());
      ProgramBuilder program(builder, model.getLoc(), ending.back(),
                             pipe::ActionKind::Finish);
      for (StringRef function : calls) {
        program.call(function, {}, {});
      }
    }
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
      if (train && !isElsewhere(term)) {
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

  /// The name of what an action of the schedule runs.
  std::string nameOf(ScheduleOp op, Work work, int64_t chunk, bool train) {
    PipelineRequest own = request;
    own.train = train;
    return programName(own, {op, work, static_cast<int32_t>(chunk), 0, 0, 0});
  }
  IntegerAttr partAttr(Builder &builder, int64_t part) {
    return request.stages > 1 ? builder.getI64IntegerAttr(part) : IntegerAttr();
  }

  /// The applications of one chunk.
  static SmallVector<ApplicationRun> runsOf(const Applications &applications,
                                            int64_t chunk) {
    SmallVector<ApplicationRun> runs;
    for (const ApplicationRun &run : applications.runs()) {
      if (run.chunk == chunk) {
        runs.push_back(run);
      }
    }
    return runs;
  }

  /// What leaves a chunk for the next part.
  tfm::SendOp sendOf(ArrayRef<ApplicationRun> runs) {
    for (Operation *user : runs.back().op->getUsers()) {
      if (auto send = dyn_cast<tfm::SendOp>(user)) {
        return send;
      }
    }
    return {};
  }

  void makeForward(OpBuilder &builder, const Applications &applications,
                   int64_t chunk, bool train) {
    const SmallVector<ApplicationRun> runs = runsOf(applications, chunk);
    ProgramBuilder program(builder, model.getLoc(),
                           nameOf(ScheduleOp::Run, Work::Forward, chunk, train),
                           pipe::ActionKind::Forward,
                           partAttr(builder, partOf(request, stage, chunk)));
    llvm::DenseMap<Value, Value> values;
    const auto lookup = [&](Value value) -> Value {
      if (auto input = value.getDefiningOp<tfm::InputOp>()) {
        return program.input(input);
      }
      return value.getDefiningOp<tfm::ReceiveOp>()
                 ? program.boundary(value.getType())
                 : values.lookup(value);
    };
    for (ApplicationRun run : runs) {
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
          arguments, run.op->getResultTypes(), run, /*reverse=*/false);
      for (auto [result, value] :
           llvm::zip(run.op->getResults(), call.getResults())) {
        values[result] = value;
      }
    }
    for (auto term : terms()) {
      if (Value sum = values.lookup(term.getSum())) {
        program.call(("loss." + term.getName()).str(), sum, {});
      }
    }
    if (tfm::SendOp send = sendOf(runs)) {
      pipe::LeaveOp::create(program.inner, send.getLoc(),
                            values.lookup(send.getValue()));
    }
  }

  LogicalResult makeBackward(OpBuilder &builder,
                             const Applications &applications, int64_t chunk) {
    const SmallVector<ApplicationRun> runs = runsOf(applications, chunk);
    ProgramBuilder program(builder, model.getLoc(),
                           nameOf(ScheduleOp::Run, Work::Backward, chunk, true),
                           pipe::ActionKind::Backward,
                           partAttr(builder, partOf(request, stage, chunk)));
    llvm::DenseMap<Value, Value> gradients;
    for (auto term : terms()) {
      if (!isElsewhere(term) &&
          llvm::any_of(runs, [&](const ApplicationRun &run) {
            return run.op == term.getSum().getDefiningOp();
          })) {
        gradients[term.getSum()] = pipe::CounterOp::create(
            program.inner, term.getLoc(), tfm::gradientType(term.getSum()),
            counter(term, "seed"));
      }
    }
    if (tfm::SendOp send = sendOf(runs)) {
      gradients[send.getValue()] =
          program.boundary(tfm::gradientType(send.getValue()));
    }
    for (size_t next = runs.size(); next-- > 0;) {
      ApplicationRun run = runs[next];
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
                       run, /*reverse=*/true);
      for (auto [index, operand] : llvm::enumerate(active)) {
        // Earlier runs of the same repeat come next.
        const bool first = next == 0 || runs[next - 1].op != run.op;
        Value target = first ? operand : run.op->getResult(index);
        gradients[target] = call.getResult(index);
      }
    }
    for (const auto &[value, gradient] : gradients) {
      if (value.getDefiningOp<tfm::ReceiveOp>()) {
        pipe::LeaveOp::create(program.inner, value.getLoc(), gradient);
      }
    }
    return success();
  }

  /// What the backward of a chunk leaves to be done, in its order.
  void makeWeight(OpBuilder &builder, const Applications &applications,
                  int64_t chunk) {
    ProgramBuilder program(builder, model.getLoc(),
                           nameOf(ScheduleOp::Run, Work::Weight, chunk, true),
                           pipe::ActionKind::Weight,
                           partAttr(builder, partOf(request, stage, chunk)));
    const SmallVector<ApplicationRun> runs = runsOf(applications, chunk);
    for (ApplicationRun run : llvm::reverse(runs)) {
      const std::string name = (run.block.getSymName() + ".weight").str();
      if (!getOperation().lookupSymbol(name)) {
        continue;
      }
      SmallVector<Value> arguments;
      for (Value operand : run.op->getOperands()) {
        if (auto input = operand.getDefiningOp<tfm::InputOp>();
            input && !isActiveType(operand.getType())) {
          arguments.push_back(program.input(input));
        }
      }
      program.call(name, arguments, {}, run, /*reverse=*/true);
    }
  }

  /// The program that starts, or ends, a transfer.
  LogicalResult makeTransfer(OpBuilder &builder, const ScheduleAction &action,
                             StringRef name) {
    const bool forward = action.work == Work::Forward;
    const bool sends =
        action.op == ScheduleOp::Send || action.op == ScheduleOp::WaitSend;
    const int64_t part = partOf(request, stage, action.chunk);
    // Activations go up, gradients down.
    const int64_t other = forward == sends ? part + 1 : part - 1;
    const int64_t shift =
        (stageOf(request, other) - stage + request.stages) % request.stages;
    auto type = boundaryType(forward);
    if (failed(type)) {
      return failure();
    }
    const char *const kernel = action.op == ScheduleOp::Send ? "send_start"
                               : action.op == ScheduleOp::WaitSend ? "send_wait"
                               : action.op == ScheduleOp::Receive
                                   ? "receive_start"
                                   : "receive_wait";
    const std::string function = name.str() + ".launch";
    auto body = exec::FunctionOp::create(builder, model.getLoc(), function,
                                         StringAttr(), IntegerAttr(),
                                         IntegerAttr(), IntegerAttr());
    OpBuilder inner = OpBuilder::atBlockEnd(&body.getBody().emplaceBlock());
    Value buffer =
        exec::ArgumentOp::create(inner, model.getLoc(),
                                 exec::BufferType::get(dist::localType(
                                     *type, dist::meshOf(getOperation()))),
                                 0);
    exec::LaunchOp::create(
        inner, model.getLoc(), kernel, buffer,
        inner.getDenseI64ArrayAttr(
            {static_cast<int64_t>(forward ? StageGroup::Activations
                                          : StageGroup::Gradients),
             shift}),
        DenseF64ArrayAttr(), DenseI64ArrayAttr());
    ProgramBuilder program(builder, model.getLoc(), name,
                           pipe::ActionKind::Transfer,
                           partAttr(builder, sends ? part : other));
    program.call(function, program.boundary(*type), {});
    return success();
  }

  /// The type of what goes between stages: one for all parts.
  FailureOr<RankedTensorType> boundaryType(bool forward) {
    RankedTensorType common;
    for (Operation &op : model.getBody().front()) {
      Value value;
      if (auto send = dyn_cast<tfm::SendOp>(op)) {
        value = send.getValue();
      } else if (auto receive = dyn_cast<tfm::ReceiveOp>(op)) {
        value = receive.getResult();
      } else {
        continue;
      }
      const RankedTensorType type =
          forward ? tfm::tensor(value) : tfm::gradientType(value);
      if (dist::layoutIn(type).partial != 0) {
        return op.emitError() << "is a sum, " << type
                              << "; reduce it before it goes to another stage";
      }
      if (common && common != type) {
        return op.emitError() << "is " << type << ", at another boundary "
                              << common << "; all have to be of one type";
      }
      common = type;
    }
    return common;
  }

  LogicalResult makeSchedule(OpBuilder &builder, bool train) {
    SmallVector<Attribute> programs;
    llvm::StringMap<int32_t> numbers;
    const auto number = [&](StringRef name) {
      const auto [it, fresh] =
          numbers.try_emplace(name, static_cast<int32_t>(programs.size()));
      if (fresh) {
        programs.push_back(FlatSymbolRefAttr::get(&getContext(), name));
      }
      return it->second;
    };
    SmallVector<int32_t> actions = {
        number(train ? "step.prologue" : "step.prologue.eval"), 0, 0, 0};
    PipelineRequest own = request;
    own.train = train;
    auto solved = mega::makeSchedule(own);
    if (!solved.isOk()) {
      return model.emitError() << solved.status().message();
    }
    for (const ScheduleAction &action :
         solved->stages[static_cast<size_t>(stage)]) {
      const std::string name = programName(own, action);
      if (action.op != ScheduleOp::Run && !getOperation().lookupSymbol(name) &&
          failed(makeTransfer(builder, action, name))) {
        return failure();
      }
      actions.append({number(name), action.microBatch, std::max(action.slot, 0),
                      std::max(action.buffer, 0)});
    }
    for (const std::string &name : ending) {
      actions.append({number(name), 0, 0, 0});
    }
    pipe::ScheduleOp::create(builder, model.getLoc(), train ? "train" : "eval",
                             stage, microBatches,
                             builder.getArrayAttr(programs), actions);
    return success();
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
      if (isa<dist::DistDialect>(user->getDialect())) {
        // A piece of the ids.
        limit = std::min(limit, tableRows(user->getResult(0)));
      }
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
  PipelineRequest request{};
  int64_t stage = 0;
  /// Programs at the end of the step in hand.
  std::vector<std::string> ending;
};

} // namespace
