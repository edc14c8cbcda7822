//===- FuseSemantics.cpp --------------------------------------------------===//
//
// linear + cross_entropy -> head_stats, head_rescale, head_loss.
//
//===----------------------------------------------------------------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_FUSESEMANTICS
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct FuseSemanticsPass : mega::impl::FuseSemanticsBase<FuseSemanticsPass> {
  void runOnOperation() override {
    SmallVector<tfm::CrossEntropyOp> losses;
    getOperation().walk([&](tfm::CrossEntropyOp op) { losses.push_back(op); });
    for (tfm::CrossEntropyOp loss : losses) {
      if (failed(fuse(loss))) {
        signalPassFailure();
      }
    }
  }

  LogicalResult fuse(tfm::CrossEntropyOp loss) {
    auto head = loss.getLogits().getDefiningOp<tfm::LinearOp>();
    if (!head) {
      return loss.emitError()
             << "the logits must come from a tfm.linear, so that they never "
                "exist as a whole";
    }
    if (!loss.getLogits().hasOneUse()) {
      InFlightDiagnostic error =
          loss.emitError() << "the logits have another use, so they would have "
                              "to exist as a whole";
      for (Operation *user : loss.getLogits().getUsers()) {
        if (user != loss) {
          error.attachNote(user->getLoc()) << "other use";
        }
      }
      return error;
    }
    OpBuilder builder(loss);
    const auto statistics = RankedTensorType::get(
        cast<RankedTensorType>(loss.getLabels().getType()).getShape(),
        builder.getF32Type());
    auto stats = tfm::HeadStatsOp::create(
        builder, head.getLoc(), TypeRange{statistics, statistics, statistics},
        head.getX(), head.getWeight(), loss.getLabels(), loss.getIgnoreAttr(),
        loss.getSoftcapAttr());
    // The shard phase puts all_reduce<max> between the two maxima.
    auto rescaled = tfm::HeadRescaleOp::create(builder, loss.getLoc(),
                                               statistics, stats.getSum(),
                                               stats.getMax(), stats.getMax());
    auto total = tfm::HeadLossOp::create(
        builder, loss.getLoc(), loss.getResult().getType(), stats.getMax(),
        rescaled.getResult(), stats.getTarget(), loss.getLabels(),
        loss.getIgnoreAttr());
    loss.replaceAllUsesWith(total.getResult());
    loss.erase();
    head.erase();
    return success();
  }
};

} // namespace
