//===- DistAttrs.td - #dist.mesh and #dist.layout -------------------------===//
#ifndef MEGA_DIALECTS_DIST_DISTATTRS
#define MEGA_DIALECTS_DIST_DISTATTRS

include "dialects/dist/DistDialect.td"
include "mlir/IR/TensorEncoding.td"

class Dist_Attr<string name, string mnemonic_, list<Trait> traits = []>
    : AttrDef<Dist_Dialect, name, traits> {
  let mnemonic = mnemonic_;
  let hasCustomAssemblyFormat = 1;
}

def Dist_MeshAttr : Dist_Attr<"Mesh", "mesh"> {
  let summary = "Sizes of the mesh axes";
  let description = [{
    The module attribute `dist.mesh`. Axes are named, fastest varying first
    (tp, cp, dp, pp); an axis of size 1 is not written.

    **Constraints**
    - (M1) a size is at least 2, axes are in mesh order and occur once.

    ```mlir
    module attributes {dist.mesh = #dist.mesh<tp = 2, dp = 4>} {}
    ```
  }];
  let parameters = (ins "::mega::Mesh":$mesh);
}

def Dist_LayoutAttr : Dist_Attr<"Layout", "layout", [
    DeclareAttrInterfaceMethods<VerifiableTensorEncoding, ["verifyEncoding"]>]> {
  let summary = "The state of a tensor on every mesh axis";
  let description = [{
    Per dimension an ordered list of axes, major to minor, then the replicated
    and the partial axes; every other axis is invariant. No encoding means
    unassigned, `#dist.layout<>` invariant everywhere. There is one spelling
    per layout, because types are compared as text.

    **Constraints**
    - (L1) an axis occurs once; `pp` is placement and never occurs.
    - (L2) the dimension list is omitted when nothing is sharded, and otherwise
      has one entry per dimension of the tensor.
    - (L3) axis sets are in mesh order.
    - (L4) padding belongs to a sharded dimension and is at least its extent.

    ```mlir
    func.func private @f(tensor<4x64x64xf32, #dist.layout<[{}, {tp}, {} ]>>)
    ```
  }];
  let parameters = (ins "::mega::Layout":$layout);
}

#endif
