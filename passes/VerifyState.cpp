//===- VerifyState.cpp - Postcondition of the state phase -----------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Applications.h"
#include "passes/Passes.h"

#include "llvm/ADT/StringSet.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace mega {
#define GEN_PASS_DEF_VERIFYSTATE
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

namespace {

std::string keyOf(StringRef block, StringRef name) {
  return (block + "/" + name).str();
}

struct VerifyStatePass : mega::impl::VerifyStateBase<VerifyStatePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::map<std::string, MemberOp> members;
    std::map<int64_t, std::pair<int64_t, MemberOp>> spans;
    std::map<std::string, MemberOp> names;
    module.walk([&](MemberOp member) {
      const std::string key = keyOf(member.getBlock(), member.getName());
      if (!members.emplace(key, member).second) {
        fail(member) << "parameter " << key << " is in two buckets";
        return;
      }
      place(member, spans);
      checkNames(member, names);
    });
    int64_t end = 0;
    for (const auto &[start, span] : spans) {
      if (start < end) {
        fail(span.second) << "overlaps its predecessor, which ends at " << end;
      }
      end = span.first;
    }

    for (auto shared : module.getOps<SharedOp>()) {
      require(shared, members, keyOf("", shared.getSymName()),
              cast<RankedTensorType>(shared.getType()), 1);
    }
    ModelOp model = findModel(module);
    if (!model) {
      return signalPassFailure();
    }
    const Applications applications(model);
    for (BlockOp block : applications.blocks()) {
      for (auto param : block.getBody().front().getOps<ParamOp>()) {
        require(param, members, keyOf(block.getSymName(), param.getName()),
                cast<RankedTensorType>(param.getResult().getType()),
                applications.instances(block));
      }
    }
    module.walk([&](AccumulateGradientOp op) {
      auto function = op->getParentOfType<FunctionOp>();
      const auto symbol = dyn_cast<FlatSymbolRefAttr>(op.getTarget());
      const std::string key =
          symbol ? keyOf("", symbol.getValue())
                 : keyOf(function.getBlock().value_or(""),
                         cast<StringAttr>(op.getTarget()).getValue());
      if (!members.count(key)) {
        fail(op) << "parameter " << key << " is in no bucket";
      }
    });
  }

  InFlightDiagnostic fail(Operation *op) {
    signalPassFailure();
    return op->emitError();
  }

  void place(MemberOp member,
             std::map<int64_t, std::pair<int64_t, MemberOp>> &spans) {
    const int64_t size =
        dist::localType(cast<RankedTensorType>(member.getType()),
                        dist::meshOf(getOperation()))
            .getNumElements();
    for (int64_t i = 0; i < static_cast<int64_t>(member.getInstances()); ++i) {
      const int64_t start = static_cast<int64_t>(member.getOffset()) +
                            i * static_cast<int64_t>(member.getStride());
      if (!spans.emplace(start, std::pair(start + size, member)).second) {
        fail(member) << "starts where another parameter starts";
      }
    }
  }

  /// Logical names key initial values and checkpoints: no two are equal.
  void checkNames(MemberOp member, std::map<std::string, MemberOp> &names) {
    const ArrayRef<int64_t> runs = member.getRuns();
    if (runs.size() != 3 * member.getPrefixes().size()) {
      fail(member) << "has " << member.getPrefixes().size() << " prefixes but "
                   << runs.size() << " numbers in runs";
      return;
    }
    for (auto [run, attr] : llvm::enumerate(member.getPrefixes())) {
      const StringRef prefix = cast<StringAttr>(attr).getValue();
      for (int64_t i = 0; i < runs[3 * run + 2]; ++i) {
        std::string name = member.getLogical().str();
        if (!prefix.empty()) {
          name = (prefix + "." + llvm::Twine(runs[3 * run] + i) + "." +
                  member.getLogical())
                     .str();
        }
        const auto [other, inserted] = names.emplace(name, member);
        if (!inserted) {
          InFlightDiagnostic error = fail(member);
          error << "two parameters are named \"" << name << "\"";
          error.attachNote(other->second.getLoc()) << "first parameter";
          return;
        }
      }
    }
  }

  void require(Operation *op, const std::map<std::string, MemberOp> &members,
               const std::string &key, RankedTensorType type,
               int64_t instances) {
    const auto it = members.find(key);
    if (it == members.end()) {
      fail(op) << "parameter " << key << " is in no bucket";
      return;
    }
    MemberOp member = it->second;
    // Stored in f32, whatever it is computed with.
    if (member.getType() != type.clone(Float32Type::get(&getContext())) ||
        static_cast<int64_t>(member.getInstances()) != instances) {
      fail(op) << "parameter " << key << " has " << instances
               << " applications of " << type << " but its bucket "
               << static_cast<int64_t>(member.getInstances()) << " of "
               << member.getType();
    }
  }
};

} // namespace
