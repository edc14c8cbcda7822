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
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"

#include <limits>

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
    if (tp < 1 || cp < 1 || dp < 1) {
      module.emitError() << "--tp " << int64_t{tp} << ", --cp " << int64_t{cp}
                         << " and --dp " << int64_t{dp} << " must be positive";
      return signalPassFailure();
    }
    if (failed(chooseMesh(module))) {
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

  /// tp is one axis, or two if there are fewer key/value heads: as many over
  /// the major one as there are heads.
  LogicalResult chooseMesh(ModuleOp module) {
    int64_t major = tp;
    const WalkResult walked = module.walk([&](AttentionOp op) {
      const int64_t heads = tensor(op.getQ()).getDimSize(2);
      const int64_t groups = tensor(op.getK()).getDimSize(2);
      if (!isLegal(tp, heads, groups)) {
        InFlightDiagnostic error = op.emitError();
        error << "--tp " << int64_t{tp} << " does not divide " << heads
              << " heads into parts of whole groups of the " << groups
              << " key/value heads" << legal(heads, [&](int64_t n) {
                   return isLegal(n, heads, groups);
                 });
        return WalkResult::interrupt();
      }
      if (groups < tp) {
        if (major != tp && major != groups) {
          op.emitError() << "--tp " << int64_t{tp}
                         << " is more than the key/value heads, " << groups
                         << " here and " << major
                         << " elsewhere; tp can be parted once only";
          return WalkResult::interrupt();
        }
        major = groups;
      }
      return WalkResult::advance();
    });
    if (walked.wasInterrupted()) {
      return failure();
    }
    const auto size = [&](mega::Axis axis) -> int64_t & {
      return mesh.sizes[static_cast<size_t>(axis)];
    };
    size(mega::Axis::Cp) = cp;
    size(mega::Axis::Dp) = dp;
    size(mega::Axis::Pp) = pp;
    if (major == tp || major == 1) {
      size(mega::Axis::Tp) = tp;
    } else {
      size(mega::Axis::TpMajor) = major;
      size(mega::Axis::TpMinor) = tp / major;
    }
    return success();
  }

  /// " (legal: ...)": those of 1 to `most` for which `isLegal` holds.
  static std::string legal(int64_t most,
                           llvm::function_ref<bool(int64_t)> isLegal) {
    SmallVector<std::string> values;
    for (int64_t n = 1; n <= most; ++n) {
      if (isLegal(n)) {
        values.push_back(std::to_string(n));
      }
    }
    return " (legal: " + llvm::join(values, ", ") + ")";
  }

  /// Every rank has whole groups of heads, or a part of one group.
  static bool isLegal(int64_t n, int64_t heads, int64_t groups) {
    return heads % n == 0 && (groups % n == 0 || n % groups == 0);
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
        // Features of heads have no padding.
        bool heads = false;
        const llvm::SetVector<Operation *> readers = readersOf(linear, heads);
        if (readers.empty()) {
          continue;
        }
        if (failed(
                cut(linear, linear.getWeight(), 0, !heads, headsOf(linear)))) {
          return failure();
        }
        for (Operation *reader : readers) {
          auto row = cast<LinearOp>(reader);
          if (failed(cut(row, row.getWeight(), 1, !heads))) {
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

  /// The linears that read the features of `linear`, cut; whether they are
  /// those of heads in between.
  llvm::SetVector<Operation *> readersOf(LinearOp linear, bool &heads) {
    llvm::SetVector<Operation *> readers;
    SmallVector<std::pair<Value, int>> work = {{linear.getResult(), 2}};
    llvm::DenseSet<Value> seen;
    while (!work.empty()) {
      const auto [value, dim] = work.pop_back_val();
      if (!seen.insert(value).second) {
        continue;
      }
      for (OpOperand &use : value.getUses()) {
        if (auto asked = dyn_cast<dist::ConstrainOp>(use.getOwner())) {
          work.push_back({asked.getResult(), dim});
          continue;
        }
        heads |= isa<SplitHeadsOp>(use.getOwner());
        auto user = dyn_cast<Sharded>(use.getOwner());
        if (!user || isa<AddOp>(use.getOwner())) {
          continue;
        }
        const ShardingRule rule = user.getShardingRule().joined();
        const char factor = rule.operands[use.getOperandNumber()]
                                .factors[static_cast<size_t>(dim)];
        if (isa<LinearOp>(use.getOwner()) && use.getOperandNumber() == 0) {
          readers.insert(use.getOwner());
          continue;
        }
        if (ShardingRule::isWhole(factor)) {
          continue;
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

  /// The heads that the features of a linear become, or all ranks of tp.
  int64_t headsOf(LinearOp linear) {
    Value value = linear.getResult();
    while (value.hasOneUse()) {
      Operation *user = *value.getUsers().begin();
      if (auto split = dyn_cast<SplitHeadsOp>(user)) {
        return std::min<int64_t>(tensor(split.getResult()).getDimSize(2), tp);
      }
      if (!isa<AddBiasOp, dist::ConstrainOp>(user)) {
        break;
      }
      value = user->getResult(0);
    }
    return tp;
  }

  /// Cuts dimension `dim` of a parameter over tp, padded where that is allowed,
  /// into `most` pieces at most: over the major part of tp, and replicated over
  /// the rest. A layout that the model gave it stays.
  LogicalResult cut(Operation *op, Value parameter, int dim, bool mayPad,
                    int64_t most = std::numeric_limits<int64_t>::max()) {
    const RankedTensorType type = tensor(parameter);
    if (!isParameter(parameter) || !dist::layoutIn(type).isInvariant()) {
      return success();
    }
    const int64_t extent = type.getDimSize(dim);
    Layout layout;
    for (mega::Axis axis : kTpAxes) {
      if (mesh.size(axis) == 1) {
        continue;
      }
      if (axis == mega::Axis::TpMajor || most >= tp) {
        layout.rank = static_cast<uint8_t>(type.getRank());
        layout.dims[static_cast<size_t>(dim)].push(axis);
      } else {
        layout.replicated |= mega::bit(axis);
      }
    }
    const int64_t pieces = layout.shards(dim, mesh);
    if (extent % pieces != 0) {
      if (!mayPad) {
        return op->emitError()
               << "--tp " << pieces << " does not divide " << extent
               << " features"
               << legal(extent, [&](int64_t n) { return extent % n == 0; });
      }
      layout.dims[static_cast<size_t>(dim)].padded =
          static_cast<int64_t>(llvm::alignTo(extent, pieces));
    }
    parameter.setType(
        dist::withLayout(type, dist::LayoutAttr::get(&getContext(), layout)));
    return success();
  }

  Mesh mesh;
};

} // namespace
