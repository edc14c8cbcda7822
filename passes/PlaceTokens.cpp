//===- PlaceTokens.cpp ----------------------------------------------------===//
//
// Finds the ops that look at places of tokens, block by block, gives those
// blocks the arguments they lack, and the model the inputs that the arguments
// come from.
//
//===----------------------------------------------------------------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/Passes.h"
#include "runtime/plan/DataInputs.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_PLACETOKENS
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

namespace {

StringRef toStringRef(std::string_view text) {
  return {text.data(), text.size()};
}

/// What a block has to know of a token's document.
struct Needs {
  bool positions = false;
  bool segments = false;

  bool operator==(const Needs &) const = default;
  Needs operator|(const Needs &other) const {
    return {positions || other.positions, segments || other.segments};
  }
};

/// What an op lacks to know the places of its tokens. Of `reordered` rows a
/// dropout has to know them too: it counts tokens.
Needs lackOf(Operation &op, bool reordered) {
  return llvm::TypeSwitch<Operation *, Needs>(&op)
      .Case<AddPositionsOp, RopeOp>(
          [](auto op) { return Needs{!op.getPositions(), false}; })
      .Case([](AttentionOp op) {
        return Needs{!op.getQPositions(), !op.getQPositions()};
      })
      .Case([&](DropoutOp op) {
        const bool lacks = reordered && !op.getPositions();
        return Needs{lacks, lacks};
      })
      .Default(Needs{});
}

struct PlaceTokensPass : mega::impl::PlaceTokensBase<PlaceTokensPass> {
  using PlaceTokensBase::PlaceTokensBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    bool declares = false;
    module.walk([&](InputOp input) {
      declares |= input.getName() == toStringRef(kPositionsInput) ||
                  input.getName() == toStringRef(kSegmentsInput);
    });
    if (packed || declares) {
      module->setAttr(kPackedAttrName, UnitAttr::get(&getContext()));
    }
    if (!packed && cp == 1) {
      return;
    }
    ModelOp model = findModel(module);
    if (!model) {
      return signalPassFailure();
    }
    auto inputs = model.getBody().front().getOps<InputOp>();
    if (inputs.empty()) {
      model.emitError() << "has no input that says how long a row is";
      return signalPassFailure();
    }
    if (declares) {
      checkWritten(module);
      return;
    }
    addToBlocks(module, cast<RankedTensorType>(
                            (*inputs.begin()).getResult().getType()));
    addToModel(model);
  }

  StringRef flag() const { return packed ? "--packed" : "--cp"; }

  /// A model that has the inputs says itself where they go, everywhere.
  void checkWritten(ModuleOp module) {
    module.walk([&](Operation *op) {
      const Needs lack = lackOf(*op, cp > 1);
      if (lack == Needs{}) {
        return;
      }
      op->emitError() << flag() << " needs "
                      << toStringRef(lack.positions ? kPositionsInput
                                                    : kSegmentsInput)
                      << " here, and the model has inputs for packed sequences "
                         "of its own; pass them on to this op, or declare none "
                         "and leave it to "
                      << flag();
      signalPassFailure();
    });
  }

  /// The blocks of a cycle take the same arguments.
  void findNeeds(ModuleOp module) {
    for (auto block : module.getOps<BlockOp>()) {
      Needs &need = needs[block.getSymNameAttr()];
      for (Operation &op : block.getBody().front()) {
        need = need | lackOf(op, cp > 1);
      }
    }
    bool changed = true;
    while (changed) {
      changed = false;
      module.walk([&](RepeatOp repeat) {
        Needs all;
        for (auto name : repeat.getBlocks().getAsRange<FlatSymbolRefAttr>()) {
          all = all | needs[name.getAttr()];
        }
        for (auto name : repeat.getBlocks().getAsRange<FlatSymbolRefAttr>()) {
          Needs &need = needs[name.getAttr()];
          changed |= need != all;
          need = all;
        }
      });
    }
  }

  void addToBlocks(ModuleOp module, RankedTensorType type) {
    findNeeds(module);
    for (auto block : module.getOps<BlockOp>()) {
      const Needs need = needs[block.getSymNameAttr()];
      Block &body = block.getBody().front();
      const auto add = [&](bool needed) {
        return needed ? Value(body.addArgument(type, block.getLoc())) : Value();
      };
      Value positions = add(need.positions);
      Value segments = add(need.segments);
      for (Operation &op : body) {
        llvm::TypeSwitch<Operation *>(&op)
            .Case<AddPositionsOp, RopeOp>(
                [&](auto op) { op.getPositionsMutable().assign(positions); })
            .Case([&](AttentionOp op) {
              op.getQPositionsMutable().assign(positions);
              op.getQSegmentsMutable().assign(segments);
              op.getKPositionsMutable().assign(positions);
              op.getKSegmentsMutable().assign(segments);
            })
            .Case([&](DropoutOp op) {
              if (cp > 1) {
                op.getPositionsMutable().assign(positions);
                op.getSegmentsMutable().assign(segments);
              }
            });
      }
      block.setFunctionType(FunctionType::get(
          &getContext(), SmallVector<Type>(body.getArgumentTypes()),
          block.getResultTypes()));
    }
  }

  void addToModel(ModelOp model) {
    SmallVector<InputOp> inputs(model.getBody().front().getOps<InputOp>());
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(inputs.back());
    Value positions, segments;
    const auto valueOf = [&](Value &value, std::string_view name) {
      if (!value) {
        value = InputOp::create(builder, model.getLoc(),
                                inputs.front().getResult().getType(),
                                builder.getStringAttr(toStringRef(name)));
      }
      return value;
    };
    const auto extend = [&](FlatSymbolRefAttr block,
                            MutableOperandRange operands) {
      const Needs need = needs[block.getAttr()];
      if (need.positions) {
        operands.append(valueOf(positions, kPositionsInput));
      }
      if (need.segments) {
        operands.append(valueOf(segments, kSegmentsInput));
      }
    };
    for (Operation &op : model.getBody().front()) {
      if (auto call = dyn_cast<CallOp>(op)) {
        extend(call.getCalleeAttr(), call.getArgumentsMutable());
      } else if (auto repeat = dyn_cast<RepeatOp>(op)) {
        extend(repeat.blockOf(0), repeat.getInvariantsMutable());
      }
    }
    if (!positions && packed) {
      model.emitError() << "--packed keeps documents apart where positions and "
                           "attention are computed, and no block of the model "
                           "does; leave it out";
      signalPassFailure();
    }
  }

  llvm::DenseMap<StringAttr, Needs> needs;
};

} // namespace
