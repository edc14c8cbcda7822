//===- ShardState.cpp -----------------------------------------------------===//
//
// Parameters -> buckets, and the function that updates them.
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"

#include "llvm/Support/MathExtras.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <compare>
#include <map>
#include <set>

namespace mega {
#define GEN_PASS_DEF_SHARDSTATE
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

namespace {

/// 256 bytes of f32: members start at cache lines on every target.
constexpr int64_t kAlignment = 64;

int64_t align(int64_t elements) {
  return static_cast<int64_t>(llvm::alignTo(elements, kAlignment));
}

/// A parameter to be placed, in the type it is computed with. Followers of a
/// linear group join their predecessor without padding.
struct Item {
  ParamOp param;
  RankedTensorType type;
  bool follows = false;
};

/// A set of mesh axes: bit per axis.
using Axes = unsigned;

/// Over these every parameter is replicated, and every gradient a sum; the
/// optimizer states of ZeRO are cut over them, major to minor.
constexpr mega::Axis kReplicas[] = {mega::Axis::Dp, mega::Axis::Cp};
constexpr Axes kReplicaAxes =
    mega::bit(mega::Axis::Dp) | mega::bit(mega::Axis::Cp);

Axes axesIn(const Layout &layout, State state) {
  Axes axes = 0;
  for (int i = 0; i < kAxisCount; ++i) {
    if (layout.state(static_cast<mega::Axis>(i)) == state) {
      axes |= 1u << i;
    }
  }
  return axes;
}

/// What members of a bucket have in common, in the order of buckets.
struct BucketKey {
  /// Vectors and biases do not decay, matrices do.
  bool vector;
  /// bf16 is the element type of the copy that functions read; otherwise they
  /// read the parameters themselves.
  bool bf16;
  /// The axes that cut the parameters, and those over which gradients are sums.
  Axes cut;
  Axes partial;
  /// Whether the first and the last stage both have them.
  bool tied = false;

  static BucketKey of(RankedTensorType type, bool tied = false) {
    const Layout layout = dist::layoutIn(type);
    return {type.getRank() < 2, type.getElementType().isBF16(),
            axesIn(layout, State::Shard), axesIn(layout, State::Replicated),
            tied};
  }
  auto operator<=>(const BucketKey &) const = default;

  /// `decayed`, `undecayed_bf16`, `decayed_cut_tp`, `undecayed_sum_tp_dp`, ...
  /// Sums over dp and cp are what everything is, and go without saying.
  std::string name() const {
    std::string text = vector ? "undecayed" : "decayed";
    text += bf16 ? "_bf16" : "";
    const auto append = [&](StringRef what, Axes axes) {
      if (axes == 0) {
        return;
      }
      text += what;
      for (int i = 0; i < kAxisCount; ++i) {
        if (axes >> i & 1) {
          text += "_";
          text += mega::name(static_cast<mega::Axis>(i));
        }
      }
    };
    append("_cut", cut);
    append("_sum", partial & ~kReplicaAxes);
    text += tied ? "_tied" : "";
    return text;
  }
};

/// The type a tfm.shared is read in; one for all uses, or an error.
FailureOr<RankedTensorType> computeType(ModuleOp module, SharedOp shared) {
  UseOp first;
  LogicalResult same = success();
  // Functions have the uses of their blocks.
  for (auto block : module.getOps<BlockOp>()) {
    for (auto use : block.getBody().front().getOps<UseOp>()) {
      if (use.getSymbol() != shared.getSymName()) {
        continue;
      }
      first = first ? first : use;
      if (use.getResult().getType() != first.getResult().getType()) {
        InFlightDiagnostic error = use.emitError();
        error << "reads @" << shared.getSymName() << " as "
              << use.getResult().getType() << ", another use as "
              << first.getResult().getType()
              << "; a shared parameter in two layouts is not supported yet";
        error.attachNote(first.getLoc()) << "other use";
        same = error;
      }
    }
  }
  if (failed(same)) {
    return failure();
  }
  return first ? first.getResult().getType()
               : cast<RankedTensorType>(shared.getType());
}

/// Parameters of a block in order of declaration, members of a linear group
/// moved behind their first.
SmallVector<Item> itemsOf(BlockOp block) {
  llvm::DenseMap<int64_t, SmallVector<ParamOp>> groups;
  llvm::DenseMap<Operation *, int64_t> groupOf;
  for (auto linear : block.getBody().front().getOps<LinearOp>()) {
    if (!linear.getGroup()) {
      continue;
    }
    auto param = linear.getWeight().getDefiningOp<ParamOp>();
    const auto group = static_cast<int64_t>(*linear.getGroup());
    groups[group].push_back(param);
    groupOf[param] = group;
  }
  SmallVector<Item> items;
  const auto add = [&](ParamOp param, bool follows) {
    items.push_back(
        {param, cast<RankedTensorType>(param.getResult().getType()), follows});
  };
  for (auto param : block.getBody().front().getOps<ParamOp>()) {
    const auto it = groupOf.find(param);
    if (it == groupOf.end()) {
      add(param, false);
      continue;
    }
    const auto &members = groups[it->second];
    if (members.front() == param) {
      for (ParamOp member : members) {
        add(member, member != param);
      }
    }
  }
  return items;
}

struct ShardStatePass : mega::impl::ShardStateBase<ShardStatePass> {
  using ShardStateBase::ShardStateBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    ModelOp model = findModel(module);
    if (!model) {
      return signalPassFailure();
    }
    mesh = dist::meshOf(module);
    if (zero < 0 || zero > 1) {
      module.emitError() << "--zero " << int64_t{zero} << " is neither 0 nor 1";
      return signalPassFailure();
    }
    pieces = zero == 1 ? mesh.size(kReplicas) : 1;
    const Applications applications(model);
    if (failed(collect(module, applications))) {
      return signalPassFailure();
    }

    SmallVector<Gradient> gradients;
    OpBuilder builder(model);
    int64_t offset = 0;
    int64_t computeOffset = 0;
    for (const BucketKey &key : keys) {
      BucketOp bucket = makeBucket(builder, module, applications, key, offset);
      const auto elements = static_cast<int64_t>(bucket.getElements());
      offset += elements;
      if (key.bf16) {
        bucket.setCompute(builder.getBF16Type());
        bucket.setComputeOffset(computeOffset);
        computeOffset += elements;
      }
      gradients.push_back({bucket, key, {}, {}});
    }
    if (gradients.empty()) {
      InFlightDiagnostic error = model.emitError();
      error << "has no parameters";
      if (mesh.size(mega::Axis::Pp) > 1) {
        error << " on stage " << stageOf(module)
              << "; give it a layer (--stages), or use fewer stages";
      }
      return signalPassFailure();
    }
    if (failed(makeReduce(builder, gradients))) {
      return signalPassFailure();
    }
    makeTie(builder, gradients);
    if (failed(makeFinish(builder, gradients, mesh.size(mega::Axis::Pp) > 1,
                          stageOf(module) > 0))) {
      signalPassFailure();
    }
  }

private:
  /// A bucket and its gradient.
  struct Gradient {
    BucketOp bucket;
    BucketKey key;
    /// Once it is reduced.
    RankedTensorType type;
    Value value;

    Axes cut() const {
      return axesIn(dist::layoutIn(value.getType()), State::Shard);
    }
  };

  /// Finds the keys there are, and the types of shared parameters.
  LogicalResult collect(ModuleOp module, const Applications &applications) {
    for (auto shared : module.getOps<SharedOp>()) {
      auto type = computeType(module, shared);
      if (failed(type)) {
        return failure();
      }
      shared.setType(type->clone(Float32Type::get(&getContext())));
      sharedTypes[shared] = *type;
      keys.insert(BucketKey::of(*type, shared.getTied()));
    }
    for (BlockOp block : applications.blocks()) {
      for (const Item &item : itemsOf(block)) {
        keys.insert(BucketKey::of(item.type));
      }
    }
    return success();
  }

  int64_t localElements(RankedTensorType type) const {
    return dist::localType(type, mesh).getNumElements();
  }

  /// `op` is the tfm.param or tfm.shared.
  template <typename ParameterOp>
  MemberOp makeMember(OpBuilder &builder, ParameterOp op, StringAttr block,
                      StringAttr name, int64_t offset, RankedTensorType type,
                      ArrayRef<StringRef> prefixes, ArrayRef<int64_t> runs) {
    const auto number = [&](int64_t value) {
      return builder.getI64IntegerAttr(value);
    };
    return MemberOp::create(
        builder, op.getLoc(), block, name, number(offset), number(0), number(1),
        op.getNameAttr(), op.getInitializerAttr(), op.getValueAttr(),
        builder.getStrArrayAttr(prefixes), builder.getDenseI64ArrayAttr(runs),
        // Stored in f32 whatever it is computed with.
        TypeAttr::get(type.clone(builder.getF32Type())));
  }

  BucketOp makeBucket(OpBuilder &builder, ModuleOp module,
                      const Applications &applications, const BucketKey &key,
                      int64_t start) {
    auto bucket = BucketOp::create(
        builder, module.getLoc(), builder.getStringAttr(key.name()),
        key.vector ? UnitAttr() : builder.getUnitAttr(),
        builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(start),
        TypeAttr(), IntegerAttr(), builder.getI64IntegerAttr(pieces));
    Block *body = &bucket.getBody().emplaceBlock();
    OpBuilder inner = OpBuilder::atBlockEnd(body);
    int64_t next = start;
    for (auto shared : module.getOps<SharedOp>()) {
      const RankedTensorType type = sharedTypes[shared];
      if (BucketKey::of(type, shared.getTied()) == key) {
        makeMember(inner, shared, builder.getStringAttr(""),
                   shared.getSymNameAttr(), next, type, {""}, {0, 0, 1});
        next = align(next + localElements(type));
      }
    }
    for (BlockOp block : applications.blocks()) {
      const int64_t base = next;
      SmallVector<StringRef> prefixes;
      SmallVector<int64_t> runs;
      for (const ApplicationRun &run : applications.runs()) {
        if (run.block == block) {
          prefixes.push_back(run.prefix);
          runs.append({run.index, run.instance, run.count});
        }
      }
      SmallVector<MemberOp> members;
      for (const Item &item : itemsOf(block)) {
        if (BucketKey::of(item.type) != key) {
          continue;
        }
        next = item.follows ? next : align(next);
        ParamOp param = item.param;
        members.push_back(makeMember(inner, param, block.getSymNameAttr(),
                                     param.getNameAttr(), next, item.type,
                                     prefixes, runs));
        next += localElements(item.type);
      }
      // Instances follow each other at the stride of one.
      const int64_t stride = align(next) - base;
      const int64_t instances = applications.instances(block);
      for (MemberOp member : members) {
        member.setStride(stride);
        member.setInstances(instances);
      }
      next = base + stride * instances;
    }
    bucket.setElements(
        static_cast<int64_t>(llvm::alignTo(next - start, kAlignment * pieces)));
    return bucket;
  }

  /// The gradient as micro-batches leave it: cut where the parameters are,
  /// partial where they are replicated.
  RankedTensorType gradientType(BucketOp bucket, const BucketKey &key) {
    Layout layout;
    auto elements = static_cast<int64_t>(bucket.getElements());
    // Major to minor.
    for (int i = kAxisCount; i-- > 0;) {
      if (key.cut >> i & 1) {
        layout.rank = 1;
        layout.dims[0].push(static_cast<mega::Axis>(i));
        elements *= mesh.size(static_cast<mega::Axis>(i));
      }
    }
    layout.partial = static_cast<uint8_t>(key.partial);
    return RankedTensorType::get({elements}, Float32Type::get(&getContext()),
                                 dist::LayoutAttr::get(&getContext(), layout));
  }

  /// Sums over dp and cp are scattered to the pieces or reduced, all others
  /// reduced.
  Value reduce(OpBuilder &builder, Location loc, Value gradient) {
    const auto convert = [&](Layout layout) {
      gradient = dist::createConversion(
          builder, loc, gradient, dist::LayoutAttr::get(&getContext(), layout));
      return gradient;
    };
    Layout layout = dist::layoutIn(gradient.getType());
    if (pieces > 1 && (layout.partial & kReplicaAxes) != 0) {
      layout.partial &= static_cast<uint8_t>(~kReplicaAxes);
      layout.rank = 1;
      for (mega::Axis axis : kReplicas) {
        if (mesh.size(axis) > 1) {
          layout.dims[0].push(axis);
        }
      }
      if (!convert(layout)) {
        return {};
      }
    }
    layout.partial = 0;
    return convert(layout);
  }

  /// The square of the norm. Sums over pieces are reduced over the axes that
  /// cut them before those that are cut by fewer axes are added.
  Value normOf(OpBuilder &builder, Location loc, ArrayRef<Gradient> gradients) {
    // Subsets come after the sets they are part of: dp and cp cut all or none.
    const auto more = [](Axes a, Axes b) {
      return std::pair(llvm::popcount(a), a) > std::pair(llvm::popcount(b), b);
    };
    std::map<Axes, SmallVector<Value>, decltype(more)> byCut(more);
    for (const Gradient &gradient : gradients) {
      byCut[gradient.cut()].push_back(gradient.value);
    }
    const auto partialScalar = [&](Axes partial) {
      Layout layout;
      layout.partial = static_cast<uint8_t>(partial);
      return RankedTensorType::get(
          {}, builder.getF64Type(),
          dist::LayoutAttr::get(&getContext(), layout));
    };
    Value total;
    Axes open = 0;
    const auto reduceTo = [&](Axes axes) {
      if (open != axes) {
        total = dist::createConversion(builder, loc, total,
                                       dist::layoutOf(partialScalar(axes)));
      }
      open = axes;
    };
    for (const auto &[cut, values] : byCut) {
      if (total) {
        reduceTo(cut);
      }
      open = cut;
      total =
          SumSquaresOp::create(builder, loc, partialScalar(cut), values, total);
    }
    reduceTo(0);
    return total;
  }

  static FlatSymbolRefAttr nameOf(BucketOp bucket) {
    return FlatSymbolRefAttr::get(bucket.getSymNameAttr());
  }

  OpBuilder makeFunction(OpBuilder &builder, Location loc, StringRef name) {
    auto function =
        FunctionOp::create(builder, loc, name, builder.getFunctionType({}, {}),
                           ArrayAttr(), ArrayAttr(), StringAttr(), 0, 0);
    return OpBuilder::atBlockEnd(&function.getBody().emplaceBlock());
  }

  /// The function `reduce`, if any gradient needs it.
  LogicalResult makeReduce(OpBuilder &builder,
                           MutableArrayRef<Gradient> gradients) {
    const Location loc = gradients.front().bucket.getLoc();
    bool any = false;
    for (Gradient &gradient : gradients) {
      gradient.type = gradientType(gradient.bucket, gradient.key);
      any |= dist::layoutIn(gradient.type).partial != 0;
    }
    if (!any) {
      return success();
    }
    OpBuilder inner = makeFunction(builder, loc, "reduce");
    for (Gradient &gradient : gradients) {
      Value sum = BucketGradientOp::create(inner, loc, gradient.type,
                                           nameOf(gradient.bucket));
      sum = reduce(inner, loc, sum);
      if (!sum) {
        return failure();
      }
      gradient.type = cast<RankedTensorType>(sum.getType());
      StoreGradientOp::create(inner, loc, nameOf(gradient.bucket), sum);
    }
    ReturnOp::create(inner, loc, ValueRange());
    return success();
  }

  /// The function `tie`: both stages that have a parameter end up with its
  /// whole gradient.
  void makeTie(OpBuilder &builder, MutableArrayRef<Gradient> gradients) {
    std::optional<OpBuilder> inner;
    const Location loc = gradients.front().bucket.getLoc();
    for (Gradient &gradient : gradients) {
      if (!gradient.key.tied) {
        continue;
      }
      if (!inner) {
        inner = makeFunction(builder, loc, "tie");
      }
      Value own = BucketGradientOp::create(*inner, loc, gradient.type,
                                           nameOf(gradient.bucket));
      Value sum =
          SumStagesOp::create(*inner, loc, own.getType(), own, /*tie=*/true);
      StoreGradientOp::create(*inner, loc, nameOf(gradient.bucket), sum);
    }
    if (inner) {
      ReturnOp::create(*inner, loc, ValueRange());
    }
  }

  RankedTensorType scalar(Type element) {
    return RankedTensorType::get(
        {}, element, dist::LayoutAttr::get(&getContext(), Layout()));
  }

  /// Records the norm. In a pipeline, of what this stage has, as the function
  /// `norm`; a tied parameter counts on the first stage.
  LogicalResult makeNorm(OpBuilder &builder,
                         MutableArrayRef<Gradient> gradients, bool counted) {
    const Location loc = gradients.front().bucket.getLoc();
    SmallVector<Gradient> own;
    for (Gradient &gradient : gradients) {
      if (gradient.key.tied && counted) {
        continue;
      }
      // As @reduce leaves it.
      gradient.value = BucketGradientOp::create(builder, loc, gradient.type,
                                                nameOf(gradient.bucket));
      own.push_back(gradient);
    }
    if (own.empty()) {
      ZeroCounterOp::create(builder, loc, "gradient_square_sum");
      return success();
    }
    Value squares = normOf(builder, loc, own);
    if (!squares) {
      return failure();
    }
    RecordOp::create(builder, loc, "gradient_square_sum", squares, false);
    return success();
  }

  LogicalResult makeFinish(OpBuilder &builder,
                           MutableArrayRef<Gradient> gradients, bool pipeline,
                           bool counted) {
    const Location loc = gradients.front().bucket.getLoc();
    if (pipeline) {
      OpBuilder norm = makeFunction(builder, loc, "norm");
      if (failed(makeNorm(norm, gradients, counted))) {
        return failure();
      }
      ReturnOp::create(norm, loc, ValueRange());
    }
    OpBuilder inner = makeFunction(builder, loc, "finish");
    for (Gradient &gradient : gradients) {
      // As @reduce leaves it.
      gradient.value = BucketGradientOp::create(inner, loc, gradient.type,
                                                nameOf(gradient.bucket));
    }
    Value squares;
    if (pipeline) {
      squares = ReadCounterOp::create(inner, loc, scalar(builder.getF64Type()),
                                      "gradient_square_sum");
    } else {
      squares = normOf(inner, loc, gradients);
      if (!squares) {
        return failure();
      }
      RecordOp::create(inner, loc, "gradient_square_sum", squares, false);
    }
    Value scale =
        ClipScaleOp::create(inner, loc, scalar(builder.getF32Type()), squares);
    for (const Gradient &gradient : gradients) {
      AdamWOp::create(inner, loc, nameOf(gradient.bucket), gradient.value,
                      scale);
    }
    for (Gradient &gradient : gradients) {
      if (gradient.bucket.getCompute()) {
        RoundWeightsOp::create(inner, loc, nameOf(gradient.bucket),
                               dist::layoutOf(gradient.value.getType()));
      }
    }
    for (Gradient &gradient : gradients) {
      if (pieces > 1) {
        GatherWeightsOp::create(inner, loc, nameOf(gradient.bucket),
                                dist::layoutOf(gradient.value.getType()));
      }
    }
    ReturnOp::create(inner, loc, ValueRange());
    return success();
  }

  Mesh mesh;
  /// Of the optimizer states over dp and cp; 1: they are whole.
  int64_t pieces = 1;
  std::set<BucketKey> keys;
  llvm::DenseMap<Operation *, RankedTensorType> sharedTypes;
};

} // namespace
