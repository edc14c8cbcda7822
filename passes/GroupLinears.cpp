//===- GroupLinears.cpp ---------------------------------------------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_GROUPLINEARS
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct GroupLinearsPass : mega::impl::GroupLinearsBase<GroupLinearsPass> {
  void runOnOperation() override {
    for (auto block : getOperation().getOps<tfm::BlockOp>()) {
      group(block);
    }
  }

  void group(tfm::BlockOp block) {
    // Weights of one matrix are laid out alike.
    llvm::MapVector<std::pair<Value, Attribute>, SmallVector<tfm::LinearOp>>
        byInput;
    for (auto linear : block.getBody().front().getOps<tfm::LinearOp>()) {
      // A mark that is there already could join linears of different inputs.
      linear.removeGroupAttr();
      // A shared weight has its place elsewhere, and a weight used twice
      // cannot be the neighbour of two groups.
      if (linear.getWeight().getDefiningOp<tfm::ParamOp>() &&
          linear.getWeight().hasOneUse()) {
        byInput[{linear.getX(), tfm::tensor(linear.getWeight()).getEncoding()}]
            .push_back(linear);
      }
    }
    Builder builder(&getContext());
    int64_t next = 0;
    for (auto &[input, linears] : byInput) {
      if (linears.size() < 2) {
        continue;
      }
      for (tfm::LinearOp linear : linears) {
        linear.setGroupAttr(builder.getI64IntegerAttr(next));
      }
      ++next;
    }
  }
};

} // namespace
