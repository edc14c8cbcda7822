//===- VerifyLayouts.cpp - The lattice, op by op --------------------------===//
#include "dialects/dist/Dist.h"
#include "dialects/tfm/Tfm.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_VERIFYLAYOUTS
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct VerifyLayoutsPass : mega::impl::VerifyLayoutsBase<VerifyLayoutsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const Mesh mesh = dist::meshOf(module);
    module.walk([&](Operation *op) {
      LogicalResult types = success();
      const auto check = [&](Type type) {
        types = failed(checkType(op, type, mesh)) ? failure() : types;
      };
      llvm::for_each(op->getResultTypes(), check);
      for (Region &region : op->getRegions()) {
        for (BlockArgument argument : region.getArguments()) {
          check(argument.getType());
        }
      }
      if (failed(types) || failed(checkRule(op, mesh))) {
        signalPassFailure();
      }
    });
  }

  LogicalResult checkType(Operation *op, Type type, const Mesh &mesh) {
    const auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) {
      return success();
    }
    const dist::LayoutAttr layout = dist::layoutOf(tensor);
    if (!layout) {
      return op->emitError() << "has a value of type " << tensor
                             << " without a layout after the shard phase";
    }
    const Status status = layout.getLayout().verify(
        mesh, {tensor.getShape().data(), tensor.getShape().size()});
    if (!status.isOk()) {
      return op->emitError()
             << "has a value of type " << tensor << ": " << status.message();
    }
    return success();
  }

  /// Nested factors: what a rank has of the outer one.
  LogicalResult checkGroups(Operation *op, const ShardingRule &rule,
                            const Mesh &mesh) {
    if (rule.outer == 0) {
      return success();
    }
    std::vector<Layout> layouts;
    std::vector<int64_t> extents;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      const RankedTensorType type = tfm::tensor(operand);
      const size_t dim = rule.operands[index].factors.find(rule.outer);
      layouts.push_back(dist::layoutIn(type));
      extents.push_back(dim == std::string::npos
                            ? 0
                            : dist::localType(type, mesh)
                                  .getDimSize(static_cast<unsigned>(dim)));
    }
    const Status status = checkNesting(rule, layouts, extents);
    return status.isOk()
               ? success()
               : LogicalResult(op->emitError()
                               << op->getName() << ": " << status.message());
  }

  LogicalResult checkRule(Operation *op, const Mesh &mesh) {
    auto sharded = dyn_cast<tfm::Sharded>(op);
    if (!sharded) {
      return success();
    }
    const auto layoutsOf = [](TypeRange types) {
      std::vector<Layout> layouts;
      for (Type type : types) {
        layouts.push_back(dist::layoutIn(type));
      }
      return layouts;
    };
    const ShardingRule rule = sharded.getShardingRule();
    const Status status = checkSharding(rule, layoutsOf(op->getOperandTypes()),
                                        layoutsOf(op->getResultTypes()));
    if (!status.isOk()) {
      return op->emitError() << op->getName() << ": " << status.message();
    }
    return checkGroups(op, rule, mesh);
  }
};

} // namespace
