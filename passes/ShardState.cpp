//===- ShardState.cpp -----------------------------------------------------===//
//
// Parameters -> buckets, and the function that updates them.
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/Passes.h"

#include "llvm/Support/MathExtras.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

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

/// What members of a bucket have in common.
struct BucketKey {
  bool decay;
  /// The element type of the copy that functions read; null if they read the
  /// parameters themselves.
  Type compute;

  /// Matrices decay; vectors and biases do not.
  static BucketKey of(RankedTensorType type) {
    return {type.getRank() >= 2,
            type.getElementType().isF32() ? Type() : type.getElementType()};
  }
  bool operator==(const BucketKey &other) const {
    return decay == other.decay && compute == other.compute;
  }
};

/// The types a tfm.shared is read in: one, because AssignPrecision decides.
RankedTensorType computeType(ModuleOp module, SharedOp shared) {
  RankedTensorType type = cast<RankedTensorType>(shared.getType());
  module.walk([&](UseOp use) {
    if (use.getSymbol() == shared.getSymName()) {
      type = use.getResult().getType();
    }
  });
  return type;
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
  void runOnOperation() override {
    ModuleOp module = getOperation();
    ModelOp model = findModel(module);
    if (!model) {
      return signalPassFailure();
    }
    const Applications applications(model);

    SmallVector<BucketOp> buckets;
    OpBuilder builder(model);
    int64_t offset = 0;
    int64_t computeOffset = 0;
    const Type bf16 = builder.getBF16Type();
    for (const BucketKey &key :
         {BucketKey{true, {}}, BucketKey{true, bf16}, BucketKey{false, {}},
          BucketKey{false, bf16}}) {
      BucketOp bucket = makeBucket(builder, module, applications, key, offset);
      const auto elements = static_cast<int64_t>(bucket.getElements());
      if (elements == 0) {
        bucket.erase();
        continue;
      }
      offset += elements;
      if (key.compute) {
        bucket.setCompute(key.compute);
        bucket.setComputeOffset(computeOffset);
        computeOffset += elements;
      }
      buckets.push_back(bucket);
    }
    if (buckets.empty()) {
      model.emitError() << "has no parameters";
      return signalPassFailure();
    }
    makeFinish(builder, buckets);
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
    std::string name = key.decay ? "decayed" : "undecayed";
    if (key.compute) {
      name += "_bf16";
    }
    auto bucket = BucketOp::create(
        builder, module.getLoc(), builder.getStringAttr(name),
        key.decay ? builder.getUnitAttr() : UnitAttr(),
        builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(start),
        TypeAttr(), IntegerAttr());
    Block *body = &bucket.getBody().emplaceBlock();
    OpBuilder inner = OpBuilder::atBlockEnd(body);
    int64_t next = start;
    for (auto shared : module.getOps<SharedOp>()) {
      const RankedTensorType type = computeType(module, shared);
      if (BucketKey::of(type) == key) {
        makeMember(inner, shared, builder.getStringAttr(""),
                   shared.getSymNameAttr(), next, type, {""}, {0, 0, 1});
        next = align(next + type.getNumElements());
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
        if (!(BucketKey::of(item.type) == key)) {
          continue;
        }
        next = item.follows ? next : align(next);
        ParamOp param = item.param;
        members.push_back(makeMember(inner, param, block.getSymNameAttr(),
                                     param.getNameAttr(), next, item.type,
                                     prefixes, runs));
        next += item.type.getNumElements();
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
    bucket.setElements(next - start);
    return bucket;
  }

  void makeFinish(OpBuilder &builder, MutableArrayRef<BucketOp> buckets) {
    const Location loc = buckets.front().getLoc();
    const auto layout = dist::LayoutAttr::get(&getContext(), Layout());
    const auto scalar = [&](Type element) {
      return RankedTensorType::get({}, element, layout);
    };
    auto finish = FunctionOp::create(
        builder, loc, "finish", builder.getFunctionType({}, {}), ArrayAttr(),
        ArrayAttr(), StringAttr(), 0, 0);
    OpBuilder inner = OpBuilder::atBlockEnd(&finish.getBody().emplaceBlock());
    SmallVector<Value> gradients;
    for (BucketOp bucket : buckets) {
      const auto type =
          RankedTensorType::get({static_cast<int64_t>(bucket.getElements())},
                                builder.getF32Type(), layout);
      gradients.push_back(BucketGradientOp::create(
          inner, loc, type, FlatSymbolRefAttr::get(bucket.getSymNameAttr())));
    }
    Value squares = SumSquaresOp::create(
        inner, loc, scalar(builder.getF64Type()), gradients);
    RecordOp::create(inner, loc, "gradient_square_sum", squares, false);
    Value scale =
        ClipScaleOp::create(inner, loc, scalar(builder.getF32Type()), squares);
    for (auto [bucket, gradient] : llvm::zip(buckets, gradients)) {
      AdamWOp::create(inner, loc,
                      FlatSymbolRefAttr::get(bucket.getSymNameAttr()), gradient,
                      scale);
    }
    for (BucketOp bucket : buckets) {
      if (bucket.getCompute()) {
        RoundWeightsOp::create(inner, loc,
                               FlatSymbolRefAttr::get(bucket.getSymNameAttr()));
      }
    }
    ReturnOp::create(inner, loc, ValueRange());
  }
};

} // namespace
