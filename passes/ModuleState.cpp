//===- ModuleState.cpp - Parameters, counters, constants ------------------===//
#include "dialects/pipe/Pipe.h"
#include "passes/FunctionLowering.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mega;

/// Counters lie on cache lines of their own.
static constexpr int64_t kCounterStride = 64;

ModuleState::ModuleState(ModuleOp module) : loc(module.getLoc()) {
  module.walk([&](tfm::MemberOp member) {
    const int64_t bytes =
        cast<RankedTensorType>(member.getType()).getElementTypeBitWidth() / 8;
    StateAddress address;
    address.offset = static_cast<int64_t>(member.getOffset()) * bytes;
    address.perInstance = static_cast<int64_t>(member.getStride()) * bytes;
    parameters[{member.getBlock().str(), member.getName().str()}] = address;
  });
}

FailureOr<StateAddress> ModuleState::parameter(Operation *user, StringRef block,
                                               StringRef name,
                                               StringRef region) const {
  const auto it = parameters.find({block.str(), name.str()});
  if (it == parameters.end()) {
    return user->emitError() << "parameter \"" << name << "\" of block \""
                             << block << "\" is in no bucket";
  }
  StateAddress address = it->second;
  address.region = region.str();
  return address;
}

StateAddress ModuleState::counter(StringRef name, exec::BufferType type) {
  const auto [it, inserted] = counters.insert(
      {name.str(),
       {static_cast<int64_t>(counters.size()) * kCounterStride, type}});
  return {"counters", it->second.offset, 0};
}

StateAddress ModuleState::ropeTable(double base, exec::BufferType type) {
  for (const Constant &constant : constants) {
    if (constant.base == base && constant.type == type) {
      return {"constants", constant.offset, 0};
    }
  }
  constants.push_back({base, type, constantBytes});
  constantBytes += llvm::alignTo(type.bytes(), kBufferAlignment);
  return {"constants", constants.back().offset, 0};
}

void ModuleState::emitSetup(OpBuilder &builder) {
  if (constants.empty()) {
    return;
  }
  auto function =
      exec::FunctionOp::create(builder, loc, "setup", StringAttr(),
                               IntegerAttr(), IntegerAttr(), IntegerAttr());
  OpBuilder inner = OpBuilder::atBlockEnd(&function.getBody().emplaceBlock());
  for (const Constant &constant : constants) {
    Value table = exec::StateOp::create(inner, loc, constant.type, "constants",
                                        constant.offset, 0);
    exec::LaunchOp::create(inner, loc, "rope_table", table, DenseI64ArrayAttr(),
                           inner.getDenseF64ArrayAttr(constant.base));
  }
  auto program = pipe::ProgramOp::create(
      builder, loc, builder.getStringAttr("step.setup"),
      pipe::ActionKindAttr::get(builder.getContext(), pipe::ActionKind::Setup));
  OpBuilder body = OpBuilder::atBlockEnd(&program.getBody().emplaceBlock());
  pipe::CallOp::create(body, loc, TypeRange(), "setup", ValueRange(), 0, 0, 1,
                       false, DenseI64ArrayAttr());
}

void ModuleState::emitCounters(OpBuilder &builder) {
  for (const auto &[name, counter] : counters) {
    exec::CounterOp::create(builder, loc, name, counter.offset, counter.type);
  }
}
