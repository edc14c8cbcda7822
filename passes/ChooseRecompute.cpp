//===- ChooseRecompute.cpp ------------------------------------------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_CHOOSERECOMPUTE
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct ChooseRecomputePass
    : mega::impl::ChooseRecomputeBase<ChooseRecomputePass> {
  using ChooseRecomputeBase::ChooseRecomputeBase;

  void runOnOperation() override {
    const auto chosen = tfm::symbolizeRecompute(recompute);
    if (!chosen) {
      getOperation().emitError() << "--recompute " << recompute
                                 << " is not one of none, selective, full";
      return signalPassFailure();
    }
    tfm::ModelOp model = findModel(getOperation());
    if (!model) {
      return signalPassFailure();
    }
    const Applications applications(model);
    for (const ApplicationRun &run : applications.runs()) {
      tfm::BlockOp block = run.block;
      if (!block.getRecompute()) {
        block.setRecompute(isa<tfm::RepeatOp>(run.op) ? *chosen
                                                      : tfm::Recompute::None);
      }
    }
  }
};

} // namespace
