//===- VerifyLayouts.cpp - Postcondition of the shard phase ---------------===//
#include "dialects/dist/Dist.h"
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
    getOperation().walk([&](Operation *op) {
      const auto check = [&](Type type) {
        if (isa<RankedTensorType>(type) && !dist::layoutOf(type)) {
          op->emitError() << "has a value of type " << type
                          << " without a layout after the shard phase";
          signalPassFailure();
        }
      };
      llvm::for_each(op->getResultTypes(), check);
      for (Region &region : op->getRegions()) {
        for (BlockArgument argument : region.getArguments()) {
          check(argument.getType());
        }
      }
    });
  }
};

} // namespace
