//===- AnnotateLayouts.cpp ------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "passes/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_ANNOTATELAYOUTS
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct AnnotateLayoutsPass
    : mega::impl::AnnotateLayoutsBase<AnnotateLayoutsPass> {
  void runOnOperation() override {
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
};

} // namespace
