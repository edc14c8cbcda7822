//===- AnnotateLayouts.cpp ------------------------------------------------===//
//
// The default policy of tensor parallelism, found by structure: a linear whose
// features flow into another linear (through a bias, an activation, heads and
// attention, but not through a residual sum or a norm, which need them whole)
// is cut by columns, and the other by rows. Tables that are indexed by ids, and
// the head, are cut by vocabulary. Everything else is not.
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "dialects/tfm/Tfm.h"
#include "passes/Passes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_ANNOTATELAYOUTS
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

namespace {

struct AnnotateLayoutsPass
    : mega::impl::AnnotateLayoutsBase<AnnotateLayoutsPass> {
  using AnnotateLayoutsBase::AnnotateLayoutsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Mesh mesh;
    mesh.sizes[static_cast<int>(mega::Axis::Tp)] = tp;
    mesh.sizes[static_cast<int>(mega::Axis::Dp)] = dp;
    if (tp < 1 || dp < 1) {
      module.emitError() << "--tp " << int64_t{tp} << " and --dp "
                         << int64_t{dp} << " must be positive";
      return signalPassFailure();
    }
    if (mesh.ranks() > 1) {
      module->setAttr(dist::kMeshAttrName,
                      dist::MeshAttr::get(&getContext(), mesh));
    }
    assignInvariant();
    if (tp == 1) {
      return;
    }
    for (auto block : module.getOps<BlockOp>()) {
      if (failed(annotate(block))) {
        signalPassFailure();
      }
    }
  }

  /// Every tensor that has no layout is invariant until something says more.
  void assignInvariant() {
    const auto invariant = dist::LayoutAttr::get(&getContext(), Layout());
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](RankedTensorType type) -> Type {
      return type.getEncoding() ? type : dist::withLayout(type, invariant);
    });
    replacer.recursivelyReplaceElementsIn(getOperation(),
                                          /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
  }

  LogicalResult annotate(BlockOp block) {
    for (Operation &op : block.getBody().front()) {
      if (auto linear = dyn_cast<LinearOp>(op)) {
        FailureOr<llvm::SetVector<Operation *>> readers = readersOf(linear);
        if (failed(readers)) {
          return failure();
        }
        if (readers->empty()) {
          continue;
        }
        if (failed(cut(linear, linear.getWeight(), 0, false))) {
          return failure();
        }
        for (Operation *reader : *readers) {
          auto row = cast<LinearOp>(reader);
          if (failed(cut(row, row.getWeight(), 1, false))) {
            return failure();
          }
        }
      } else if (auto embedding = dyn_cast<EmbeddingOp>(op)) {
        if (failed(cut(&op, embedding.getTable(), 0, true))) {
          return failure();
        }
      } else if (auto head = dyn_cast<HeadStatsOp>(op)) {
        if (failed(cut(&op, head.getWeight(), 0, true))) {
          return failure();
        }
      }
    }
    return success();
  }

  /// The linears that read the features of `linear`, cut.
  FailureOr<llvm::SetVector<Operation *>> readersOf(LinearOp linear) {
    llvm::SetVector<Operation *> readers;
    SmallVector<std::pair<Value, int>> work = {{linear.getResult(), 2}};
    llvm::DenseSet<Value> seen;
    while (!work.empty()) {
      const auto [value, dim] = work.pop_back_val();
      if (!seen.insert(value).second) {
        continue;
      }
      for (OpOperand &use : value.getUses()) {
        auto user = dyn_cast<Sharded>(use.getOwner());
        if (!user || isa<AddOp>(use.getOwner())) {
          continue;
        }
        const ShardingRule rule = user.getShardingRule();
        const char factor = rule.operands[use.getOperandNumber()]
                                .factors[static_cast<size_t>(dim)];
        if (isa<LinearOp>(use.getOwner()) && use.getOperandNumber() == 0) {
          readers.insert(use.getOwner());
          continue;
        }
        if (ShardingRule::isWhole(factor)) {
          continue;
        }
        if (auto split = dyn_cast<SplitHeadsOp>(use.getOwner());
            split && failed(checkHeads(split))) {
          return failure();
        }
        for (auto [index, result] : llvm::enumerate(user->getResults())) {
          const size_t at = rule.results[index].factors.find(factor);
          if (at != std::string::npos) {
            work.push_back({result, static_cast<int>(at)});
          }
        }
      }
    }
    return readers;
  }

  LogicalResult checkHeads(SplitHeadsOp split) {
    const int64_t heads = tensor(split.getResult()).getDimSize(2);
    if (heads % tp == 0) {
      return success();
    }
    InFlightDiagnostic error = split.emitError();
    error << "--tp " << int64_t{tp} << " does not divide " << heads
          << " heads (legal: ";
    for (int64_t n = 1; n <= heads; ++n) {
      if (heads % n == 0) {
        error << (n == 1 ? "" : ", ") << n;
      }
    }
    return error << ")";
  }

  /// Cuts dimension `dim` of a parameter over tp, padded where that is allowed;
  /// a layout that the model gave it stays.
  LogicalResult cut(Operation *op, Value parameter, int dim, bool mayPad) {
    const RankedTensorType type = tensor(parameter);
    if (!isParameter(parameter) ||
        !dist::layoutOf(type).getLayout().isInvariant()) {
      return success();
    }
    const int64_t extent = type.getDimSize(dim);
    Layout layout;
    layout.rank = static_cast<uint8_t>(type.getRank());
    layout.dims[static_cast<size_t>(dim)].push(mega::Axis::Tp);
    if (extent % tp != 0) {
      if (!mayPad) {
        return op->emitError() << "--tp " << int64_t{tp} << " does not divide "
                               << extent << " features";
      }
      layout.dims[static_cast<size_t>(dim)].padded =
          static_cast<int64_t>(llvm::alignTo(extent, tp));
    }
    parameter.setType(
        dist::withLayout(type, dist::LayoutAttr::get(&getContext(), layout)));
    return success();
  }
};

} // namespace
