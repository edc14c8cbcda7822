//===- FuseKernels.cpp ----------------------------------------------------===//
//
// Peephole patterns over tfm.functions.
//
//===----------------------------------------------------------------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mega {
#define GEN_PASS_DEF_FUSEKERNELS
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

namespace {

/// add_bias + gelu -> bias_gelu, where the sum is kept for the backward.
struct FuseBiasGelu : OpRewritePattern<GeluOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GeluOp gelu,
                                PatternRewriter &rewriter) const override {
    auto bias = gelu.getX().getDefiningOp<AddBiasOp>();
    if (!bias) {
      return rewriter.notifyMatchFailure(gelu, "input is no add_bias");
    }
    if (bias.getResult().hasOneUse()) {
      // In eval nobody keeps the sum: two kernels in place need one buffer.
      return rewriter.notifyMatchFailure(gelu, "the sum has no other reader");
    }
    rewriter.setInsertionPoint(bias);
    auto fused = BiasGeluOp::create(
        rewriter, gelu.getLoc(),
        TypeRange{bias.getResult().getType(), gelu.getResult().getType()},
        bias.getX(), bias.getBias(), gelu.getKindAttr());
    rewriter.replaceOp(gelu, fused.getResult());
    rewriter.replaceOp(bias, fused.getSum());
    return success();
  }
};

/// The residual sum that `norm` reads as `x`, if nobody reads it before: the
/// fused op stands at the norm, where all its operands are defined. Null
/// otherwise.
AddOp residualSum(Operation *norm, Value x) {
  auto add = x.getDefiningOp<AddOp>();
  if (!add || llvm::any_of(add.getResult().getUsers(), [&](Operation *user) {
        return user != norm && user->isBeforeInBlock(norm);
      })) {
    return {};
  }
  return add;
}

/// add + layer_norm_stats -> add_layer_norm.
struct FuseAddLayerNorm : OpRewritePattern<LayerNormStatsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LayerNormStatsOp norm,
                                PatternRewriter &rewriter) const override {
    AddOp add = residualSum(norm, norm.getX());
    if (!add) {
      return rewriter.notifyMatchFailure(norm, "no sum that it reads first");
    }
    auto fused = AddLayerNormOp::create(
        rewriter, norm.getLoc(),
        TypeRange{add.getResult().getType(), norm.getResult().getType(),
                  norm.getMean().getType(), norm.getRstd().getType()},
        add.getLhs(), add.getRhs(), norm.getGamma(), norm.getBeta(),
        norm.getEpsilonAttr());
    rewriter.replaceOp(
        norm, ValueRange{fused.getResult(), fused.getMean(), fused.getRstd()});
    rewriter.replaceOp(add, fused.getSum());
    return success();
  }
};

/// add + rms_norm_stats -> add_rms_norm.
struct FuseAddRmsNorm : OpRewritePattern<RmsNormStatsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RmsNormStatsOp norm,
                                PatternRewriter &rewriter) const override {
    AddOp add = residualSum(norm, norm.getX());
    if (!add || cast<RankedTensorType>(norm.getX().getType()).getRank() != 3) {
      return rewriter.notifyMatchFailure(norm, "no sum that it reads first");
    }
    auto fused = AddRmsNormOp::create(
        rewriter, norm.getLoc(),
        TypeRange{add.getResult().getType(), norm.getResult().getType(),
                  norm.getRstd().getType()},
        add.getLhs(), add.getRhs(), norm.getGamma(), norm.getEpsilonAttr(),
        norm.getOffsetAttr());
    rewriter.replaceOp(norm, ValueRange{fused.getResult(), fused.getRstd()});
    rewriter.replaceOp(add, fused.getSum());
    return success();
  }
};

/// Linears of one group -> grouped_linear, at the first of them.
struct FuseGroup : OpRewritePattern<LinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LinearOp first,
                                PatternRewriter &rewriter) const override {
    if (!first.getGroup()) {
      return rewriter.notifyMatchFailure(first, "in no group");
    }
    SmallVector<LinearOp> members;
    SmallVector<Value> weights;
    SmallVector<Type> types;
    for (auto linear : first->getBlock()->getOps<LinearOp>()) {
      if (linear.getGroupAttr() == first.getGroupAttr()) {
        members.push_back(linear);
        weights.push_back(linear.getWeight());
        types.push_back(linear.getResult().getType());
      }
    }
    // Weights are parameters: name them before the first member.
    for (Value weight : weights) {
      rewriter.moveOpBefore(weight.getDefiningOp(), members.front());
    }
    rewriter.setInsertionPoint(members.front());
    auto fused = GroupedLinearOp::create(rewriter, first.getLoc(), types,
                                         first.getX(), weights);
    for (auto [member, result] : llvm::zip(members, fused.getResults())) {
      rewriter.replaceOp(member, result);
    }
    return success();
  }
};

/// The input gradient of a member of a group that `value` is, if nothing else
/// reads it and it adds to nothing yet.
LinearInputGradOp memberGradient(Value value) {
  auto grad = value.getDefiningOp<LinearInputGradOp>();
  return grad && grad.getGroup() && !grad.getOnto() && value.hasOneUse()
             ? grad
             : LinearInputGradOp();
}

/// add(a, b), input gradients of one group -> one with the operands of both.
struct FuseInputGrads : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp add,
                                PatternRewriter &rewriter) const override {
    auto a = memberGradient(add.getLhs());
    auto b = memberGradient(add.getRhs());
    if (!a || !b || a.getGroupAttr() != b.getGroupAttr()) {
      return rewriter.notifyMatchFailure(add, "no two gradients of one group");
    }
    // In the order of the weights in memory, which is that of the forward: the
    // backward was built from the end, so later members come first.
    SmallVector<Value> grads(b.getGrads());
    llvm::append_range(grads, a.getGrads());
    SmallVector<Value> weights(b.getWeights());
    llvm::append_range(weights, a.getWeights());
    rewriter.replaceOpWithNewOp<LinearInputGradOp>(
        add, add.getResult().getType(), grads, weights, Value(),
        a.getGroupAttr());
    rewriter.eraseOp(a);
    rewriter.eraseOp(b);
    return success();
  }
};

/// add(add(r, a), b), input gradients a and b of one group -> add(r, add(a,
/// b)), which the pattern above takes: what is read elsewhere, too, comes first
/// in the sum.
struct JoinInputGrads : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp outer,
                                PatternRewriter &rewriter) const override {
    for (bool swap : {false, true}) {
      Value sum = swap ? outer.getRhs() : outer.getLhs();
      Value addend = swap ? outer.getLhs() : outer.getRhs();
      auto inner = sum.getDefiningOp<AddOp>();
      auto b = memberGradient(addend);
      if (!inner || !sum.hasOneUse() || !b) {
        continue;
      }
      for (bool turned : {false, true}) {
        Value rest = turned ? inner.getRhs() : inner.getLhs();
        auto a = memberGradient(turned ? inner.getLhs() : inner.getRhs());
        auto other = memberGradient(rest);
        if (!a || a.getGroupAttr() != b.getGroupAttr() ||
            (other && other.getGroupAttr() == b.getGroupAttr())) {
          continue;
        }
        auto joint =
            AddOp::create(rewriter, outer.getLoc(), outer.getResult().getType(),
                          a.getGradX(), b.getGradX());
        rewriter.replaceOpWithNewOp<AddOp>(outer, outer.getResult().getType(),
                                           rest, joint);
        return success();
      }
    }
    return rewriter.notifyMatchFailure(outer, "no gradients of one group");
  }
};

/// Weight gradients of one group -> one, at the last of them.
struct FuseWeightGrads : OpRewritePattern<LinearWeightGradOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LinearWeightGradOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getGroup()) {
      return rewriter.notifyMatchFailure(op, "in no group");
    }
    SmallVector<LinearWeightGradOp> members;
    for (auto other : op->getBlock()->getOps<LinearWeightGradOp>()) {
      if (other.getGroupAttr() == op.getGroupAttr()) {
        members.push_back(other);
      }
    }
    LinearWeightGradOp last = members.back();
    SmallVector<Value> grads;
    SmallVector<Type> types;
    // Memory order, see FuseInputGrads.
    for (LinearWeightGradOp member : llvm::reverse(members)) {
      llvm::append_range(grads, member.getGrads());
      llvm::append_range(types, member.getResultTypes());
    }
    rewriter.setInsertionPoint(last);
    auto fused = LinearWeightGradOp::create(rewriter, last.getLoc(), types,
                                            last.getX(), grads, IntegerAttr());
    size_t next = 0;
    for (LinearWeightGradOp member : llvm::reverse(members)) {
      for (Value result : member.getGradWeights()) {
        // Its accumulation moves behind the joint gradient.
        for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
          rewriter.moveOpAfter(user, fused);
        }
        rewriter.replaceAllUsesWith(result, fused.getResult(next++));
      }
      rewriter.eraseOp(member);
    }
    return success();
  }
};

/// add(a, gradient) -> the gradient accumulates onto a.
template <typename GradOp> struct FuseAccumulation : OpRewritePattern<AddOp> {
  using OpRewritePattern<AddOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp add,
                                PatternRewriter &rewriter) const override {
    for (bool swap : {false, true}) {
      Value base = swap ? add.getRhs() : add.getLhs();
      Value addend = swap ? add.getLhs() : add.getRhs();
      auto grad = addend.getDefiningOp<GradOp>();
      if (!grad || grad.getOnto() || addend != grad.getGradX() ||
          !addend.hasOneUse() || base.getType() != addend.getType()) {
        continue;
      }
      // The base exists where the gradient is computed.
      Operation *definition = base.getDefiningOp();
      if (definition && !definition->isBeforeInBlock(grad)) {
        continue;
      }
      // A kernel adds in place, and still reads its other operands.
      if (llvm::is_contained(grad->getOperands(), base)) {
        continue;
      }
      rewriter.modifyOpInPlace(grad,
                               [&] { grad.getOntoMutable().assign(base); });
      rewriter.replaceOp(add, grad.getGradX());
      return success();
    }
    return rewriter.notifyMatchFailure(add, "no gradient that can accumulate");
  }
};

struct FuseKernelsPass : mega::impl::FuseKernelsBase<FuseKernelsPass> {
  void runOnOperation() override {
    // Groups first: once an input gradient accumulates onto something it can
    // not be joined any more.
    RewritePatternSet groups(&getContext());
    groups.add<FuseGroup, FuseInputGrads, JoinInputGrads, FuseWeightGrads>(
        &getContext());
    RewritePatternSet others(&getContext());
    others
        .add<FuseBiasGelu, FuseAddLayerNorm, FuseAddRmsNorm,
             FuseAccumulation<LayerNormGradOp>, FuseAccumulation<RmsNormGradOp>,
             FuseAccumulation<LinearInputGradOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(groups))) ||
        failed(applyPatternsGreedily(getOperation(), std::move(others)))) {
      signalPassFailure();
    }
  }
};

} // namespace
