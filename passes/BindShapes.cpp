//===- BindShapes.cpp -----------------------------------------------------===//
//
// Rewrites tensor types: dimension 0 becomes the batch, dimension 1 the
// sequence, wherever they are open. Types are the only thing that changes.
//
//===----------------------------------------------------------------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_BINDSHAPES
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

/// A tensor of the model's inputs and activations has an open batch and an
/// open sequence, in this order, and nothing else open.
LogicalResult checkOpenDims(Operation *op, Type type) {
  const auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.hasStaticShape()) {
    return success();
  }
  for (auto [index, extent] : llvm::enumerate(tensor.getShape())) {
    if (ShapedType::isDynamic(extent) != (index < 2)) {
      return op->emitError()
             << tensor
             << ": only batch and sequence, the first two "
                "dimensions, are open, and they are open together";
    }
  }
  return success();
}

struct BindShapesPass : mega::impl::BindShapesBase<BindShapesPass> {
  using BindShapesBase::BindShapesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto models = module.getOps<tfm::ModelOp>();
    if (models.empty()) {
      module.emitError() << "has no tfm.model";
      return signalPassFailure();
    }
    tfm::ModelOp model = *models.begin();
    const int64_t limit = static_cast<int64_t>(model.getMaxSequence());
    const int64_t length = sequence == 0 ? limit : int64_t{sequence};
    if (length < 1 || length > limit) {
      model.emitError() << "--seq-length " << length
                        << " is not between 1 and max_sequence = " << limit;
      return signalPassFailure();
    }
    if (batch < 1) {
      model.emitError() << "--micro-batch-size " << int64_t{batch}
                        << " is not positive";
      return signalPassFailure();
    }
    if (failed(checkAll(module)) || failed(checkInputs(model, length)) ||
        failed(bind(module, length))) {
      signalPassFailure();
    }
  }

  LogicalResult checkAll(ModuleOp module) {
    LogicalResult result = success();
    module.walk([&](Operation *op) {
      for (Type type : op->getResultTypes()) {
        result = failed(checkOpenDims(op, type)) ? failure() : result;
      }
      for (Region &region : op->getRegions()) {
        for (BlockArgument argument : region.getArguments()) {
          result = failed(checkOpenDims(op, argument.getType())) ? failure()
                                                                 : result;
        }
      }
    });
    return result;
  }

  /// An input that states its own sizes must not contradict the flags.
  LogicalResult checkInputs(tfm::ModelOp model, int64_t length) {
    LogicalResult result = success();
    for (auto input : model.getBody().front().getOps<tfm::InputOp>()) {
      const auto type = cast<RankedTensorType>(input.getResult().getType());
      if (type.hasStaticShape() &&
          (type.getDimSize(0) != batch || type.getDimSize(1) != length)) {
        input.emitError() << "is " << type << ", but the flags ask for "
                          << int64_t{batch} << " rows of " << length
                          << " tokens; leave both open: tensor<?x?xi32>";
        result = failure();
      }
    }
    return result;
  }

  LogicalResult bind(ModuleOp module, int64_t length) {
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](RankedTensorType type) -> Type {
      if (type.hasStaticShape()) {
        return type;
      }
      SmallVector<int64_t> shape(type.getShape());
      shape[0] = batch;
      shape[1] = length;
      return type.clone(shape);
    });
    replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    // Position tables and the like are checked against the bound length by
    // the ops' own verifiers, which run after this pass.
    return success();
  }
};

} // namespace
