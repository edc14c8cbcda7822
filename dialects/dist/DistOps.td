//===- DistOps.td - Conversions between layouts ---------------------------===//
#ifndef MEGA_DIALECTS_DIST_DISTOPS
#define MEGA_DIALECTS_DIST_DISTOPS

include "dialects/dist/DistAttrs.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Tensor : RankedTensorOf<[F32, BF16, F64, I32, I64]>;

// Every conversion is the identity on the global value and changes its layout:
// the axes that the op names, all from one state to another.
class Dist_ConversionOp<string mnemonic, list<Trait> traits = []>
    : Op<Dist_Dialect, mnemonic, [Pure] # traits> {
  let arguments = (ins Dist_Tensor:$x, DenseI32ArrayAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $x custom<Axes>($axes) attr-dict `:` type($x) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What the op is in the table of conversions.
    static ::mega::Conversion getConversion();
  }];
}

// The numbers of the constraints are the same for all of them.
defvar conversionConstraints = [{
    **Constraints**
    - (C1) x and result are one tensor: shape and element type.
    - (C2) both have a layout.
    - (C3) the layouts differ by exactly this conversion over exactly these
      axes, in their order in the dimension they leave or enter.
}];

def Dist_ReplicateOp : Dist_ConversionOp<"replicate"> {
  let summary = "invariant to replicated: no data moves";
  let description = [{
    From here on every rank uses the value in its own way. Its transpose is an
    all_reduce: the gradient, partial, is summed.

  }] # conversionConstraints # [{
    ```mlir
    #I = #dist.layout<>
    #R = #dist.layout<replicated = {tp}>
    func.func @f(%x: tensor<4x8xf32, #I>) {
      %y = dist.replicate %x {tp} : tensor<4x8xf32, #I> -> tensor<4x8xf32, #R>
      return
    }
    ```
  }];
}

def Dist_AssumeInvariantOp : Dist_ConversionOp<"assume_invariant"> {
  let summary = "replicated to invariant: no data moves";
  let description = [{
    What follows is the same on all ranks, so of the gradients, which are equal,
    one is kept: the transpose is to_partial.

  }] # conversionConstraints # [{
    ```mlir
    #I = #dist.layout<>
    #R = #dist.layout<replicated = {tp}>
    func.func @f(%x: tensor<4x8xf32, #R>) {
      %y = dist.assume_invariant %x {tp} : tensor<4x8xf32, #R> -> tensor<4x8xf32, #I>
      return
    }
    ```
  }];
}

def Dist_SliceOp : Dist_ConversionOp<"slice"> {
  let summary = "invariant or replicated to sharded: every rank keeps its piece";
  let description = [{
    Local. The axes become the minor-most of the dimension they split.

  }] # conversionConstraints # [{
    ```mlir
    #R = #dist.layout<replicated = {tp}>
    #S = #dist.layout<[{tp}, {} ]>
    func.func @f(%x: tensor<4x8xf32, #R>) {
      %y = dist.slice %x {tp} : tensor<4x8xf32, #R> -> tensor<4x8xf32, #S>
      return
    }
    ```
  }];
}

def Dist_ToPartialOp : Dist_ConversionOp<"to_partial"> {
  let summary = "to partial: summands whose sum is the value";
  let description = [{
    Local. One rank keeps an invariant or replicated value and the others have
    zeros; a sharded value is padded with zeros.

  }] # conversionConstraints # [{
    ```mlir
    #I = #dist.layout<>
    #P = #dist.layout<partial = {tp}>
    func.func @f(%x: tensor<f64, #I>) {
      %y = dist.to_partial %x {tp} : tensor<f64, #I> -> tensor<f64, #P>
      return
    }
    ```
  }];
}

def Dist_AllGatherOp : Dist_ConversionOp<"all_gather"> {
  let summary = "sharded to replicated or invariant";
  let description = [{
    The axes are the minor-most of the dimension they split. Gathered to
    replicated, the transpose is a reduce_scatter; to invariant, a slice.

  }] # conversionConstraints # [{
    ```mlir
    #R = #dist.layout<replicated = {tp}>
    #S = #dist.layout<[{}, {tp}, {} ]>
    func.func @f(%x: tensor<4x64x64xf32, #S>) {
      %y = dist.all_gather %x {tp} : tensor<4x64x64xf32, #S> -> tensor<4x64x64xf32, #R>
      return
    }
    ```
  }];
}

def Dist_AllToAllOp : Dist_ConversionOp<"all_to_all"> {
  let summary = "sharded in one dimension to sharded in another";
  let description = [{
    The axes leave the minor end of one dimension for that of another. The
    transpose is the way back.

  }] # conversionConstraints # [{
    ```mlir
    #S = #dist.layout<[{}, {cp}, {}, {} ]>
    #H = #dist.layout<[{}, {}, {cp}, {} ]>
    func.func @f(%x: tensor<4x64x8x16xf32, #S>) {
      %y = dist.all_to_all %x {cp} : tensor<4x64x8x16xf32, #S> -> tensor<4x64x8x16xf32, #H>
      return
    }
    ```
  }];
}

def Dist_AllReduceOp : Dist_ConversionOp<"all_reduce"> {
  let summary = "partial to invariant or replicated: the summands are added";
  let description = [{
    Or their maximum, minimum or disjunction is taken, as the layout says.
    Reduced to invariant, the transpose is replicate, which is free; to
    replicated, an all_reduce.

  }] # conversionConstraints # [{
    ```mlir
    #P = #dist.layout<partial = {tp}>
    func.func @f(%x: tensor<4x64x64xf32, #P>) {
      %y = dist.all_reduce %x {tp} : tensor<4x64x64xf32, #P> -> tensor<4x64x64xf32, #dist.layout<>>
      return
    }
    ```
  }];
}

def Dist_ReduceScatterOp : Dist_ConversionOp<"reduce_scatter"> {
  let summary = "partial to sharded: summands are added, pieces kept";
  let description = [{
    The axes become the minor-most of the dimension they split. The transpose is
    an all_gather to replicated.

  }] # conversionConstraints # [{
    ```mlir
    #P = #dist.layout<partial = {tp}>
    #S = #dist.layout<[{}, {tp}, {} ]>
    func.func @f(%x: tensor<4x64x64xf32, #P>) {
      %y = dist.reduce_scatter %x {tp} : tensor<4x64x64xf32, #P> -> tensor<4x64x64xf32, #S>
      return
    }
    ```
  }];
}

def Dist_ConstrainOp : Op<Dist_Dialect, "constrain", [
    Pure, AllTypesMatch<["x", "result"]>]> {
  let summary = "a layout that the model asks for";
  let description = [{
    Written in models; InsertCollectives replaces it by the conversion it takes.
    It speaks of tp: what the layout does not cut, replicate or leave as a sum
    over tp becomes invariant over it. Over dp the value stays as it is. Without
    tensor parallelism it is void.

    ```mlir
    func.func @f(%x: tensor<?x?x64xf32>) {
      %y = dist.constrain %x to <[{}, {tp}, {} ]> : tensor<?x?x64xf32>
      return
    }
    ```
  }];
  let arguments = (ins Dist_Tensor:$x, Dist_LayoutAttr:$layout);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat =
    "$x `to` custom<Layout>($layout) attr-dict `:` type($x)";
}

#endif
