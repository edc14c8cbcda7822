//===- ModuleState.cpp - Parameters, counters, constants ------------------===//
#include "dialects/pipe/Pipe.h"
#include "passes/FunctionLowering.h"
#include "runtime/plan/PlanLayouts.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mega;

/// Counters lie on cache lines of their own.
static constexpr int64_t kCounterStride = 64;

/// The address in `region` of a member that starts at element `first`.
static StateAddress memberAddress(StringRef region, tfm::MemberOp member,
                                  int64_t first, Type element) {
  const int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  return {region.str(), first * bytes,
          static_cast<int64_t>(member.getStride()) * bytes};
}

/// How the parameters of a bucket, as one vector, are cut.
static dist::LayoutAttr bucketLayout(tfm::BucketOp bucket) {
  Layout layout;
  for (auto member : bucket.getBody().front().getOps<tfm::MemberOp>()) {
    const Layout of = dist::layoutIn(member.getType());
    for (int dim = 0; dim < of.rank; ++dim) {
      for (int i = 0; i < of.dims[static_cast<size_t>(dim)].count; ++i) {
        layout.rank = 1;
        layout.dims[0].push(
            of.dims[static_cast<size_t>(dim)].axes[static_cast<size_t>(i)]);
      }
    }
    // All members are alike.
    break;
  }
  return dist::LayoutAttr::get(bucket.getContext(), layout);
}

ModuleState::ModuleState(ModuleOp module)
    : module(module), mesh_(dist::meshOf(module)) {
  if (mesh_.size(mega::Axis::Pp) > 1) {
    // StageGroup.h.
    const auto pp = mega::Axis::Pp;
    groups = {{pp}, {pp}, {pp}, {static_cast<mega::Axis>(kTieAxis)}};
  }
  for (auto bucket : module.getOps<tfm::BucketOp>()) {
    for (auto member : bucket.getBody().front().getOps<tfm::MemberOp>()) {
      const auto first = static_cast<int64_t>(member.getOffset());
      const Type stored =
          cast<RankedTensorType>(member.getType()).getElementType();
      Member &entry =
          members[{member.getBlock().str(), member.getName().str()}];
      entry.gradient = memberAddress("gradients", member, first, stored);
      entry.weight = memberAddress("parameters", member, first, stored);
      if (const auto compute = bucket.getCompute()) {
        entry.weight =
            memberAddress("weights", member, bucket.toCompute(first), *compute);
      }
    }
  }
}

Value mega::stateBuffer(OpBuilder &builder, Location loc, exec::BufferType type,
                        const StateAddress &address) {
  const auto number = [&](int64_t value) {
    return builder.getI64IntegerAttr(value);
  };
  const SmallVector<int32_t> axes =
      llvm::map_to_vector(address.cutOver, [](mega::Axis axis) {
        return static_cast<int32_t>(axis);
      });
  return exec::StateOp::create(
      builder, loc, type, builder.getStringAttr(address.region),
      number(address.offset), number(address.perInstance),
      axes.empty() ? DenseI32ArrayAttr() : builder.getDenseI32ArrayAttr(axes),
      axes.empty() ? IntegerAttr() : number(type.bytes()));
}

FailureOr<ModuleState::Member>
ModuleState::find(Operation *user, StringRef block, StringRef name) const {
  const auto it = members.find({block.str(), name.str()});
  if (it == members.end()) {
    return user->emitError() << "parameter \"" << name << "\" of block \""
                             << block << "\" is in no bucket";
  }
  return it->second;
}

FailureOr<StateAddress> ModuleState::weight(Operation *user, StringRef block,
                                            StringRef name) const {
  auto member = find(user, block, name);
  return failed(member) ? FailureOr<StateAddress>() : member->weight;
}

FailureOr<StateAddress> ModuleState::gradient(Operation *user, StringRef block,
                                              StringRef name) const {
  auto member = find(user, block, name);
  return failed(member) ? FailureOr<StateAddress>() : member->gradient;
}

StateAddress ModuleState::counter(StringRef name, exec::BufferType type) {
  const auto [it, inserted] = counters.insert(
      {name.str(),
       {static_cast<int64_t>(counters.size()) * kCounterStride, type}});
  return {"counters", it->second.offset, 0};
}

StateAddress ModuleState::ropeTable(tfm::RopeTableOp table) {
  const auto type = exec::BufferType::get(table.getResult().getType());
  const int64_t integer = table.kernelInteger();
  SmallVector<double> floats = table.kernelFloats();
  for (const Constant &constant : constants) {
    if (constant.integer == integer && constant.floats == floats &&
        constant.type == type) {
      return {"constants", constant.offset, 0};
    }
  }
  constants.push_back({integer, std::move(floats), type, constantBytes});
  constantBytes += llvm::alignTo(type.bytes(), kBufferAlignment);
  return {"constants", constants.back().offset, 0};
}

int64_t ModuleState::groupOf(ArrayRef<mega::Axis> axes) {
  const auto it = llvm::find(groups, axes);
  if (it != groups.end()) {
    return it - groups.begin();
  }
  groups.emplace_back(axes.begin(), axes.end());
  return static_cast<int64_t>(groups.size()) - 1;
}

void ModuleState::emitGroups(OpBuilder &builder) {
  for (const auto &axes : groups) {
    exec::GroupOp::create(
        builder, module.getLoc(),
        builder.getDenseI32ArrayAttr(llvm::map_to_vector(
            axes, [](mega::Axis axis) { return static_cast<int32_t>(axis); })));
  }
}

void ModuleState::emitSetup(OpBuilder &builder) {
  SmallVector<tfm::BucketOp> rounded;
  for (auto bucket : module.getOps<tfm::BucketOp>()) {
    if (bucket.getCompute()) {
      rounded.push_back(bucket);
    }
  }
  if (constants.empty() && rounded.empty()) {
    return;
  }
  const Location loc = module.getLoc();
  auto function =
      exec::FunctionOp::create(builder, loc, "setup", StringAttr(),
                               IntegerAttr(), IntegerAttr(), IntegerAttr());
  OpBuilder inner = OpBuilder::atBlockEnd(&function.getBody().emplaceBlock());
  for (const Constant &constant : constants) {
    Value table =
        stateBuffer(inner, loc, constant.type, {"constants", constant.offset});
    exec::LaunchOp::create(inner, loc, "rope_table", table,
                           inner.getDenseI64ArrayAttr(constant.integer),
                           inner.getDenseF64ArrayAttr(constant.floats),
                           DenseI64ArrayAttr());
  }
  for (tfm::BucketOp bucket : rounded) {
    const auto run = [&](StringRef region, Type element, int64_t first) {
      const auto elements = static_cast<int64_t>(bucket.getElements());
      const auto type =
          exec::BufferType::get(builder.getContext(), {elements}, element,
                                elements, bucketLayout(bucket));
      return stateBuffer(
          inner, loc, type,
          {region.str(), first * element.getIntOrFloatBitWidth() / 8});
    };
    const auto first = static_cast<int64_t>(bucket.getOffset());
    Value source = run("parameters", builder.getF32Type(), first);
    Value target =
        run("weights", *bucket.getCompute(), bucket.toCompute(first));
    exec::LaunchOp::create(inner, loc, "cast", ValueRange{source, target},
                           DenseI64ArrayAttr(), DenseF64ArrayAttr(),
                           DenseI64ArrayAttr());
  }
  auto program = pipe::ProgramOp::create(
      builder, loc, builder.getStringAttr("step.setup"),
      pipe::ActionKindAttr::get(builder.getContext(), pipe::ActionKind::Setup),
      IntegerAttr());
  OpBuilder body = OpBuilder::atBlockEnd(&program.getBody().emplaceBlock());
  pipe::CallOp::create(body, loc, TypeRange(), "setup", ValueRange(), 0, 0, 1,
                       false, DenseI64ArrayAttr(), IntegerAttr());
}

void ModuleState::emitCounters(OpBuilder &builder) {
  for (const auto &[name, counter] : counters) {
    exec::CounterOp::create(builder, module.getLoc(), name, counter.offset,
                            counter.type);
  }
}
