//===- VerifyModel.cpp - Postcondition of the model phase -----------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
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
    tfm::ModelOp model = findModel(module);
    if (!model) {
      return signalPassFailure();
    }
    if (model.getBody().front().getOps<tfm::LossTermOp>().empty()) {
      fail(model) << "has no tfm.loss_term, so there is nothing to train";
    }
    for (auto input : model.getBody().front().getOps<tfm::InputOp>()) {
      if (input.getName() != "tokens" && input.getName() != "labels") {
        fail(input) << "the data loader has no input \"" << input.getName()
                    << "\" (it has tokens, labels)";
      }
    }
    checkUse(module, model);
    checkTypes(module);
  }

  InFlightDiagnostic fail(Operation *op) {
    signalPassFailure();
    return op->emitError();
  }

  /// Nothing that the user wrote is dropped silently.
  void checkUse(ModuleOp module, tfm::ModelOp model) {
    const SmallVector<tfm::BlockOp> applied = Applications(model).blocks();
    for (auto block : module.getOps<tfm::BlockOp>()) {
      if (!llvm::is_contained(applied, block)) {
        fail(block) << "@" << block.getSymName()
                    << " is never applied by the model; remove it or call it";
      }
      for (auto param : block.getBody().front().getOps<tfm::ParamOp>()) {
        if (param.getResult().use_empty()) {
          fail(param) << "parameter \"" << param.getName()
                      << "\" is never used";
        }
      }
    }
    for (auto shared : module.getOps<tfm::SharedOp>()) {
      if (SymbolTable::symbolKnownUseEmpty(shared, module)) {
        fail(shared) << "@" << shared.getSymName() << " is never used";
      }
    }
  }

  void checkTypes(ModuleOp module) {
    module.walk([&](Operation *op) {
      for (Type type : op->getResultTypes()) {
        const auto tensor = dyn_cast<RankedTensorType>(type);
        if (tensor && !tensor.hasStaticShape()) {
          fail(op) << "has a result of type " << tensor
                   << " after the model phase";
        }
      }
      if (isa<tfm::CrossEntropyOp>(op)) {
        fail(op) << "was not joined with its head";
      }
    });
  }
};

} // namespace
