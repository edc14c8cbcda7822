//===- DistDialect.td - Meshes, layouts, collectives ----------------------===//
#ifndef MEGA_DIALECTS_DIST_DISTDIALECT
#define MEGA_DIALECTS_DIST_DISTDIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::mega::dist";
  let summary = "Where tensors live on a mesh of ranks.";
  let description = [{
    A layout is the encoding of a tensor type: for every axis of the mesh it
    says whether the value is invariant, replicated, sharded or partial.
    Shapes in types are global; the local shape follows from layout and mesh.
    `docs/layouts.md` explains the calculus; its arithmetic is the class
    `mega::Layout` in `runtime/plan/Layout.h`, shared with the runtime.
  }];
  let useDefaultAttributePrinterParser = 1;
}

#endif
