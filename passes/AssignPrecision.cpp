//===- AssignPrecision.cpp ------------------------------------------------===//
//
// Rewrites element types: what blocks compute with becomes bf16, what is
// summed, stored or read once per row stays f32.
//
//===----------------------------------------------------------------------===//
#include "dialects/tfm/Tfm.h"
#include "passes/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct AssignPrecisionPass
    : mega::impl::AssignPrecisionBase<AssignPrecisionPass> {
  using AssignPrecisionBase::AssignPrecisionBase;

  void runOnOperation() override {
    if (precision != "fp32" && precision != "bf16") {
      getOperation().emitError()
          << "--precision " << precision << " is not one of fp32, bf16";
      return signalPassFailure();
    }
    if (failed(checkWritten())) {
      return signalPassFailure();
    }
    if (precision == "bf16") {
      assign();
    }
  }

  /// A model says what is computed, in f32; the flag says how exactly.
  LogicalResult checkWritten() {
    LogicalResult result = success();
    const auto check = [&](Operation *op, Type type) {
      const auto tensor = dyn_cast<RankedTensorType>(type);
      if (tensor && tensor.getElementType().isBF16()) {
        op->emitError() << "is " << tensor
                        << ": models are written in f32; --precision bf16 "
                           "chooses what is computed in bf16";
        result = failure();
      }
    };
    getOperation().walk([&](Operation *op) {
      for (Type type : op->getResultTypes()) {
        check(op, type);
      }
      for (Region &region : op->getRegions()) {
        for (BlockArgument argument : region.getArguments()) {
          check(op, argument.getType());
        }
      }
      if (auto shared = dyn_cast<tfm::SharedOp>(op)) {
        check(op, shared.getType());
      }
    });
    return result;
  }

  void assign() {
    ModuleOp module = getOperation();
    const Type bf16 = BFloat16Type::get(&getContext());
    // A tfm.shared states the type it is stored in.
    SmallVector<std::pair<tfm::SharedOp, RankedTensorType>> stored;
    for (auto shared : module.getOps<tfm::SharedOp>()) {
      stored.push_back({shared, cast<RankedTensorType>(shared.getType())});
    }
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](RankedTensorType type) -> Type {
      return type.getElementType().isF32() && type.getRank() >= 2
                 ? type.clone(bf16)
                 : type;
    });
    replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    for (auto [shared, type] : stored) {
      shared.setType(type);
    }
    // A constant multiplies in the type of what it multiplies.
    module.walk([&](tfm::ScaleOp scale) {
      APFloat factor = scale.getFactor();
      bool exact = false;
      factor.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &exact);
      factor.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                     &exact);
      scale.setFactor(factor);
    });
  }
};

} // namespace
