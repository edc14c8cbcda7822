//===- VerifyModel.cpp - Postcondition of the model phase -----------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_VERIFYMODEL
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct VerifyModelPass : mega::impl::VerifyModelBase<VerifyModelPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<tfm::ModelOp> models(module.getOps<tfm::ModelOp>());
    if (models.size() != 1) {
      module.emitError() << "has " << models.size()
                         << " tfm.model ops, expected one";
      return signalPassFailure();
    }
    if (models[0].getBody().front().getOps<tfm::LossTermOp>().empty()) {
      models[0].emitError() << "has no tfm.loss_term, so there is nothing to "
                               "train";
      signalPassFailure();
    }
    for (auto input : models[0].getBody().front().getOps<tfm::InputOp>()) {
      if (input.getName() != "tokens" && input.getName() != "labels") {
        input.emitError() << "the data loader has no input \""
                          << input.getName() << "\" (it has tokens, labels)";
        signalPassFailure();
      }
    }
    module.walk([&](Operation *op) {
      for (Type type : op->getResultTypes()) {
        const auto tensor = dyn_cast<RankedTensorType>(type);
        if (tensor && !tensor.hasStaticShape()) {
          op->emitError() << "has a result of type " << tensor
                          << " after the model phase";
          signalPassFailure();
        }
      }
      if (isa<tfm::CrossEntropyOp>(op)) {
        op->emitError() << "was not joined with its head";
        signalPassFailure();
      }
    });
  }
};

} // namespace
