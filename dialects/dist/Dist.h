//===- Dist.h - The dist dialect --------------------------------*- C++ -*-===//
#ifndef MEGA_DIALECTS_DIST_DIST_H
#define MEGA_DIALECTS_DIST_DIST_H

#include "runtime/plan/Layout.h"

#include "llvm/ADT/Hashing.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mega {
inline llvm::hash_code hash_value(const Mesh &mesh) {
  return llvm::hash_combine_range(mesh.sizes.begin(), mesh.sizes.end());
}
llvm::hash_code hash_value(const Layout &layout);
} // namespace mega

#include "dialects/dist/DistDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/dist/DistOps.h.inc"

namespace mega::dist {

/// Name of the module attribute that holds the mesh.
inline constexpr llvm::StringLiteral kMeshAttrName = "dist.mesh";

/// The layout of a tensor type, or null when unassigned.
LayoutAttr layoutOf(mlir::Type type);

/// The layout of a tensor type; invariant when it is unassigned.
Layout layoutIn(mlir::Type type);

/// `type` with `layout` as its encoding.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type,
                                  LayoutAttr layout);

/// The mesh of a module; one rank if it states none.
Mesh meshOf(mlir::ModuleOp module);

/// What one rank holds of a tensor: its pieces of the dimensions that are cut,
/// padding included. The layout stays.
mlir::RankedTensorType localType(mlir::RankedTensorType type, const Mesh &mesh);

/// The plan's element type of an MLIR type; nothing when there is none.
std::optional<DataType> toDataType(mlir::Type type);

/// A contiguous buffer of a tensor's shape.
BufferType bufferType(mlir::RankedTensorType type);

/// Axes in braces: `{tp, dp}`.
mlir::ParseResult parseAxes(mlir::OpAsmParser &parser,
                            mlir::DenseI32ArrayAttr &axes);
void printAxes(mlir::OpAsmPrinter &printer, mlir::Operation *,
               mlir::DenseI32ArrayAttr axes);

/// A mesh axis by its name.
mlir::ParseResult parseAxis(mlir::AsmParser &parser, mega::Axis &axis);

/// `x` in `layout`, by one conversion op (none if it has it). Reports an error
/// at `loc` and returns null where one conversion does not do it.
mlir::Value createConversion(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value x, LayoutAttr layout);

/// The transpose of a conversion from a value of type `forward`: takes the
/// gradient of its result to the gradient of its operand, which has the dual of
/// the layout of `forward`. Null, with an error, where there is none (max, min
/// and or).
mlir::Value createTranspose(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value grad, mlir::RankedTensorType forward);

} // namespace mega::dist

#endif // MEGA_DIALECTS_DIST_DIST_H
