//===- Dist.h - The dist dialect --------------------------------*- C++ -*-===//
#ifndef MEGA_DIALECTS_DIST_DIST_H
#define MEGA_DIALECTS_DIST_DIST_H

#include "runtime/plan/Layout.h"

#include "llvm/ADT/Hashing.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"

namespace mega {
inline llvm::hash_code hash_value(const Mesh &mesh) {
  return llvm::hash_combine_range(mesh.sizes.begin(), mesh.sizes.end());
}
llvm::hash_code hash_value(const Layout &layout);
} // namespace mega

#include "dialects/dist/DistDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.h.inc"

namespace mega::dist {

/// Name of the module attribute that holds the mesh.
inline constexpr llvm::StringLiteral kMeshAttrName = "dist.mesh";

/// The layout of a tensor type, or null when unassigned.
LayoutAttr layoutOf(mlir::Type type);

/// `type` with `layout` as its encoding.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type,
                                  LayoutAttr layout);

} // namespace mega::dist

#endif // MEGA_DIALECTS_DIST_DIST_H
