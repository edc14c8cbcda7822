//===- VerifyModel.cpp - Postcondition of the model phase -----------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/Passes.h"
#include "runtime/plan/DataInputs.h"
#include "runtime/plan/PlanCheck.h"

#include "llvm/ADT/TypeSwitch.h"
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
      const StringRef name = input.getName();
      if (!isDataInput({name.data(), name.size()})) {
        fail(input) << "the data loader has no input \"" << name
                    << "\" (it has tokens, labels, positions, segment_ids)";
      }
    }
    checkNames(module);
    for (auto term : model.getBody().front().getOps<tfm::LossTermOp>()) {
      checkLoss(module, term);
    }
    checkUse(module, model);
    checkTypes(module);
  }

  /// Names end up in plans and weight files: printable, without spaces. Half
  /// of what a plan takes, because a plan joins them.
  void checkName(Operation *op, StringRef what, StringRef name) {
    const Status status = mega::checkName(what.str(), name.str());
    if (!status.isOk()) {
      fail(op) << status.message();
    } else if (name.size() > 240) {
      fail(op) << what << " has " << name.size()
               << " characters, expected at most 240";
    }
  }

  void checkNames(ModuleOp module) {
    module.walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case([&](tfm::ParamOp param) {
            checkName(op, "the parameter's name", param.getName());
          })
          .Case([&](tfm::RepeatOp repeat) {
            checkName(op, "the prefix", repeat.getPrefix());
          })
          .Case([&](tfm::LossTermOp term) {
            checkName(op, "the loss term's name", term.getName());
          })
          .Case([&](tfm::SharedOp shared) {
            checkName(op, "the parameter's name", shared.getName());
          })
          .Case<tfm::BlockOp, tfm::ModelOp>([&](auto symbol) {
            checkName(op, "the name", symbol.getSymName());
          });
    });
  }

  InFlightDiagnostic fail(Operation *op) {
    signalPassFailure();
    return op->emitError();
  }

  /// The sum is one cross entropy, and the count is of its labels: the seed of
  /// the backward is their quotient.
  void checkLoss(ModuleOp module, tfm::LossTermOp term) {
    auto call = term.getSum().getDefiningOp<tfm::CallOp>();
    auto block = call ? module.lookupSymbol<tfm::BlockOp>(call.getCallee())
                      : tfm::BlockOp();
    tfm::HeadLossOp loss;
    if (block) {
      const auto result = cast<OpResult>(term.getSum()).getResultNumber();
      loss = block.getBody()
                 .front()
                 .getTerminator()
                 ->getOperand(result)
                 .getDefiningOp<tfm::HeadLossOp>();
    }
    auto count = term.getCount().getDefiningOp<tfm::CountValidOp>();
    if (!loss || !count) {
      fail(term)
          << "has a sum that is not the cross_entropy of a called block, "
             "or a count that is not a tfm.count_valid";
      return;
    }
    const auto ignoredBySum = static_cast<int64_t>(loss.getIgnore());
    const auto ignored = static_cast<int64_t>(count.getIgnore());
    if (ignored != ignoredBySum) {
      fail(count) << "ignores label " << ignored << ", the sum of loss term \""
                  << term.getName() << "\" " << ignoredBySum;
    }
    const auto argument = dyn_cast<BlockArgument>(loss.getLabels());
    if (!argument ||
        call->getOperand(argument.getArgNumber()) != count.getLabels()) {
      fail(count) << "counts other labels than the sum of loss term \""
                  << term.getName() << "\" is of";
    }
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
