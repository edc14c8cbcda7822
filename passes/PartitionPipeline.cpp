//===- PartitionPipeline.cpp ----------------------------------------------===//
//
// Cuts the model into parts, chunk by chunk of every stage, and leaves one
// stage of it: its parts, each between a tfm.receive and a tfm.send, and what
// belongs to the step as a whole, inputs and loss terms.
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace mega {
#define GEN_PASS_DEF_PARTITIONPIPELINE
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

SmallVector<PartitionUnit> mega::partitionUnits(ModelOp model) {
  const Applications applications(model);
  SmallVector<PartitionUnit> units;
  bool repeated = false;
  llvm::DenseMap<Operation *, double> costs;
  for (ApplicationRun run : applications.runs()) {
    const bool layer = isa<RepeatOp>(run.op);
    repeated |= layer;
    const auto [it, fresh] = costs.try_emplace(run.block, 0);
    if (fresh) {
      // Forward, and a backward that takes twice as long.
      it->second = 3 * timeOf(run.block.getBody().front());
    }
    units.append(static_cast<size_t>(run.count),
                 {it->second, layer      ? 'L'
                              : repeated ? 'H'
                                         : 'E'});
  }
  return units;
}

StatusOr<std::vector<int64_t>> mega::partitionOf(ArrayRef<PartitionUnit> units,
                                                 int64_t parts,
                                                 StringRef stages) {
  return stages.empty()
             ? balance(units, parts)
             : parseStages({stages.data(), stages.size()}, units, parts);
}

namespace {

struct PartitionPipelinePass
    : mega::impl::PartitionPipelineBase<PartitionPipelinePass> {
  using PartitionPipelineBase::PartitionPipelineBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    model = findModel(module);
    if (!model) {
      return signalPassFailure();
    }
    auto pipeline = pipelineRequest(module, pp, vpp, schedule, 1);
    if (!pipeline.isOk()) {
      model.emitError() << pipeline.status().message();
      return signalPassFailure();
    }
    auto begin =
        partitionOf(partitionUnits(model), partCount(*pipeline), stages);
    if (!begin.isOk()) {
      model.emitError() << "with --pp " << int64_t{pp} << " and --vpp "
                        << int64_t{vpp} << ": " << begin.status().message();
      return signalPassFailure();
    }
    module->setAttr(
        kStageAttrName,
        IntegerAttr::get(IntegerType::get(&getContext(), 64), int64_t{stage}));
    if (failed(markTied(module, *pipeline, *begin)) ||
        failed(cut(*pipeline, *begin))) {
      return signalPassFailure();
    }
    eraseUnused(module);
  }

private:
  /// Numbers of the applications of a call or a repeat.
  struct Unit {
    Operation *op;
    int64_t first;
    int64_t count;
  };
  SmallVector<Unit> unitsOf() {
    SmallVector<Unit> units;
    int64_t next = 0;
    for (Operation &op : model.getBody().front()) {
      if (isa<CallOp, RepeatOp>(op)) {
        auto repeat = dyn_cast<RepeatOp>(op);
        const int64_t count =
            repeat ? static_cast<int64_t>(repeat.getTimes()) : 1;
        units.push_back({&op, next, count});
        next += count;
      }
    }
    return units;
  }

  /// Shared parameters that the first and the last stage both have. Others have
  /// to be on one stage.
  LogicalResult markTied(ModuleOp module, const PipelineRequest &pipeline,
                         ArrayRef<int64_t> begin) {
    llvm::DenseMap<StringAttr, std::set<int64_t>> users;
    int64_t application = 0;
    const Applications applications(model);
    for (ApplicationRun run : applications.runs()) {
      for (int64_t i = 0; i < run.count; ++i, ++application) {
        const auto part = std::distance(begin.begin(),
                                        llvm::upper_bound(begin, application)) -
                          1;
        for (auto use : run.block.getBody().front().getOps<UseOp>()) {
          users[use.getSymbolAttr().getAttr()].insert(stageOf(pipeline, part));
        }
      }
    }
    for (auto shared : module.getOps<SharedOp>()) {
      const std::set<int64_t> &on = users[shared.getSymNameAttr()];
      if (on.size() < 2) {
        continue;
      }
      if (on != std::set<int64_t>{0, pp - 1}) {
        return shared.emitError()
               << "is used on " << on.size() << " stages, from " << *on.begin()
               << " to " << *on.rbegin()
               << "; a parameter can be shared by the first and the last of "
               << int64_t{pp} << " stages, or by the blocks of one";
      }
      shared.setTied(true);
    }
    return success();
  }

  /// The value that crosses the boundary before a unit: its one active operand.
  FailureOr<Value> activationOf(Operation *op) {
    Value active;
    for (Value operand : op->getOperands()) {
      if (!isa<FloatType>(tensor(operand).getElementType())) {
        continue;
      }
      if (active) {
        return op->emitError() << "takes two activations; a pipeline can be "
                                  "cut where there is one";
      }
      active = operand;
    }
    return active;
  }

  LogicalResult cut(const PipelineRequest &pipeline, ArrayRef<int64_t> begin) {
    Block &body = model.getBody().front();
    const SmallVector<Unit> units = unitsOf();
    OpBuilder builder(units.front().op);
    IRMapping values;
    for (int64_t chunk = 0; chunk < pipeline.chunks; ++chunk) {
      const int64_t part = partOf(pipeline, stage, chunk);
      const int64_t from = begin[static_cast<size_t>(part)];
      const int64_t to = begin[static_cast<size_t>(part + 1)];
      Value current;
      for (const Unit &unit : units) {
        const int64_t first = std::max(from, unit.first);
        const int64_t last = std::min(to, unit.first + unit.count);
        if (first >= last) {
          continue;
        }
        if (!current && first > 0) {
          // Between the applications of a repeat its own operand flows.
          auto active = activationOf(unit.op);
          if (failed(active)) {
            return failure();
          }
          current = ReceiveOp::create(builder, unit.op->getLoc(),
                                      tensor(*active), part);
        }
        current = clone(builder, unit.op, first - unit.first, last - first,
                        first, current);
      }
      if (to < units.back().first + units.back().count) {
        if (tensor(current).getRank() != 3) {
          return model.emitError()
                 << "part " << part << " ends with " << current.getType()
                 << ", which is no activation";
        }
        SendOp::create(builder, model.getLoc(), current, part);
      } else {
        values.map(units.back().op->getResult(0), current);
      }
    }
    return finish(body, builder, values, units);
  }

  /// `count` applications of a call or a repeat, from its `skip`-th on.
  Value clone(OpBuilder &builder, Operation *op, int64_t skip, int64_t count,
              int64_t application, Value current) {
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand : operands) {
      if (current && isa<FloatType>(tensor(operand).getElementType())) {
        operand = current;
      }
    }
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    if (auto call = dyn_cast<CallOp>(copy)) {
      call.setApplication(application);
    } else {
      auto repeat = cast<RepeatOp>(copy);
      repeat.setApplication(application);
      setCycle(repeat, skip, count);
    }
    return copy->getResult(0);
  }

  /// The applications from number `skip` on, as a cycle that is walked once.
  void setCycle(RepeatOp repeat, int64_t skip, int64_t count) {
    SmallVector<Attribute> blocks;
    SmallVector<int64_t> counts;
    for (int64_t i = skip; i < skip + count; ++i) {
      FlatSymbolRefAttr block = repeat.blockOf(i);
      if (blocks.empty() || blocks.back() != block) {
        blocks.push_back(block);
        counts.push_back(0);
      }
      ++counts.back();
    }
    if (blocks.size() == 1) {
      counts = {1};
    }
    repeat.setBlocksAttr(ArrayAttr::get(&getContext(), blocks));
    repeat.setCounts(counts);
    repeat.setTimes(count);
    repeat.setFrom(repeat.getFrom() + skip);
  }

  /// Loss terms read the sum, or say that it is elsewhere; the whole model's
  /// own applications go.
  LogicalResult finish(Block &body, OpBuilder &builder, const IRMapping &values,
                       ArrayRef<Unit> units) {
    for (auto term : llvm::make_early_inc_range(body.getOps<LossTermOp>())) {
      Value sum = values.lookupOrNull(term.getSum());
      if (!sum) {
        sum = ElsewhereOp::create(builder, term.getLoc(),
                                  term.getSum().getType());
      }
      term.getSumMutable().assign(sum);
    }
    SmallVector<OutputOp> outputs(body.getOps<OutputOp>());
    for (OutputOp output : outputs) {
      output.erase();
    }
    for (const Unit &unit : llvm::reverse(units)) {
      if (!unit.op->use_empty()) {
        return unit.op->emitError()
               << "a result of it flows past the next block; a pipeline passes "
                  "on one activation";
      }
      unit.op->erase();
    }
    return success();
  }

  /// Blocks, their functions and shared parameters of other stages.
  void eraseUnused(ModuleOp module) {
    llvm::DenseSet<StringAttr> used;
    for (BlockOp block : Applications(model).blocks()) {
      used.insert(block.getSymNameAttr());
      for (auto use : block.getBody().front().getOps<UseOp>()) {
        used.insert(use.getSymbolAttr().getAttr());
      }
    }
    for (Operation &op : llvm::make_early_inc_range(*module.getBody())) {
      StringAttr name;
      if (auto block = dyn_cast<BlockOp>(op)) {
        name = block.getSymNameAttr();
      } else if (auto shared = dyn_cast<SharedOp>(op)) {
        name = shared.getSymNameAttr();
      } else if (auto function = dyn_cast<FunctionOp>(op)) {
        name = function.getBlockAttr();
      }
      if (name && !used.contains(name)) {
        op.erase();
      }
    }
  }

  ModelOp model;
};

} // namespace
