//===- TfmModelOps.td - Parameters, blocks, models ------------------------===//
#ifndef MEGA_DIALECTS_TFM_TFMMODELOPS
#define MEGA_DIALECTS_TFM_TFMMODELOPS

include "dialects/tfm/TfmDialect.td"

def Tfm_SharedOp : Tfm_Op<"shared", [Symbol]> {
  let summary = "A parameter used by several blocks";
  let description = [{
    One tensor, one gradient, however many blocks use it: tied embeddings.
    `tied`: the first and the last stage of the pipeline both have it.

    ```mlir
    tfm.shared @wte = "wte.weight" init(normal, 0.02) : tensor<257x64xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$name,
                       Tfm_InitializerKind:$initializer, F64Attr:$value,
                       TypeAttrOf<Tfm_Float>:$type, UnitAttr:$tied);
  let assemblyFormat = [{
    $sym_name `=` $name custom<Init>($initializer, $value) (`tied` $tied^)?
    attr-dict `:` $type
  }];
  let hasVerifier = 1;
}

def Tfm_UseOp : Tfm_Op<"use", [
    Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Reads a shared parameter";
  let description = [{
    In the element type that the block computes in (AssignPrecision); the
    tfm.shared states the type it is stored in.

    **Constraints**
    - (U1) the symbol is a tfm.shared of the same shape.

    ```mlir
    tfm.shared @wte = "wte.weight" init(normal, 0.02) : tensor<257x64xf32>
    %wte = tfm.use @wte : tensor<257x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$symbol);
  let results = (outs Tfm_Float:$result);
  let assemblyFormat = "$symbol attr-dict `:` type($result)";
}

def Tfm_ParamOp : Tfm_Op<"param", [
    Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A parameter of the block";
  let description = [{
    Every application of the block has its own; its logical name is
    `prefix.index.name` under a tfm.repeat, and `name` under a tfm.call. Initial
    values are keyed by that name and the global element index. Its type is what
    the block computes with: bf16 for a matrix after AssignPrecision, while
    storage, gradient and optimizer state stay f32.

    **Constraints**
    - (P1) static shape of rank 1 or 2, not empty.
    - (P2) names are unique in a block.
    - (P3) the initial value is finite, a standard deviation not negative, and
      the parameter has at most 2^44 elements.

    ```mlir
    %w = tfm.param "attn.q.weight" init(normal, 0.02) : tensor<64x64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, Tfm_InitializerKind:$initializer,
                       F64Attr:$value);
  let results = (outs Tfm_Float:$result);
  let assemblyFormat = [{
    $name custom<Init>($initializer, $value) attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Tfm_BlockOp : Tfm_Op<"block", [
    FunctionOpInterface, IsolatedFromAbove, SingleBlock]> {
  let summary = "A function of the model, compiled once";
  let description = [{
    Applied by tfm.call once or by tfm.repeat many times. Ends in tfm.yield.
    `attributes {recompute = #tfm.recompute<full>}` says what its backward
    computes again instead of keeping it, whatever `--recompute` says
    (ChooseRecompute).

    **Constraints**
    - (B1) the terminator yields the result types of the signature.

    ```mlir
    tfm.block @twice(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
      %y = tfm.add %x, %x : tensor<?x?x8xf32>
      tfm.yield %y : tensor<?x?x8xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<Tfm_RecomputeAttr>:$recompute);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Tfm_YieldOp : Tfm_Op<"yield", [Pure, Terminator, HasParent<"BlockOp">]> {
  let summary = "Ends a block";
  let description = [{
    Its operands are the results of the block.

    ```mlir
    tfm.block @same(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
      tfm.yield %x : tensor<?x?x8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Tfm_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Tfm_ModelOp : Tfm_Op<"model", [
    Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "Inputs, block applications and loss terms";
  let description = [{
    Applications are numbered through the whole model in program order.

    **Constraints**
    - (M1) only tfm.input, tfm.call, tfm.repeat, tfm.count_valid, tfm.loss_term
      and tfm.output.
    - (M2) input names are unique.

    ```mlir
    tfm.model @empty max_sequence(128) {
      %tokens = tfm.input "tokens" : tensor<?x?xi32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$max_sequence);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `max_sequence` `(` $max_sequence `)` attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Tfm_InputOp : Tfm_Op<"input", [
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    HasParent<"ModelOp">]> {
  let summary = "A batch tensor the data loader fills";
  let description = [{
    The loader knows `tokens` and `labels`, and of rows that hold several
    documents `positions`, the place of each token in its document, and
    `segment_ids`, the number of its document in the row.

    ```mlir
    tfm.model @m max_sequence(8) {
      %labels = tfm.input "labels" : tensor<?x?xi32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Tfm_Ids:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Tfm_CallOp : Tfm_Op<"call", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>, HasParent<"ModelOp">]> {
  let summary = "Applies a block once";
  let description = [{
    Parameters of the block get their plain names, without a prefix. In a stage
    of a pipeline `application` is its number in the whole model.

    **Constraints**
    - (C1) the callee is a tfm.block with this signature.
    - (C2) a block with parameters is called once, so that its parameters have
      one name; repeat it to have several applications.

    ```mlir
    tfm.block @same(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
      tfm.yield %x : tensor<?x?xi32>
    }
    tfm.model @m max_sequence(8) {
      %t = tfm.input "tokens" : tensor<?x?xi32>
      %u = tfm.call @same(%t) : (tensor<?x?xi32>) -> tensor<?x?xi32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
                       Variadic<Tfm_Tensor>:$arguments,
                       OptionalAttr<I64Attr>:$application);
  let results = (outs Variadic<Tfm_Tensor>:$results);
  let assemblyFormat = [{
    $callee `(` $arguments `)` attr-dict `:`
    functional-type($arguments, $results)
  }];
}

def Tfm_RepeatOp : Tfm_Op<"repeat", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>, HasParent<"ModelOp">,
    AttrSizedOperandSegments]> {
  let summary = "Applies a cycle of blocks one after the other";
  let description = [{
    The results of one application are the first operands of the next; operands
    after `with` are the same for all. A cycle such as `[@sliding x5, @full]` is
    walked until `times` applications are done. Application i has the parameter
    prefix `prefix.(from + i)`. In a stage of a pipeline `application` is the
    number of the first in the whole model.

    **Constraints**
    - (R1) every block of the cycle takes the carried types, then the invariant
      ones, and yields the carried types.
    - (R2) times and counts are positive, and at most 4096.

    ```mlir
    tfm.block @layer(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
      %y = tfm.add %x, %x : tensor<?x?x8xf32>
      tfm.yield %y : tensor<?x?x8xf32>
    }
    tfm.block @embed(%t: tensor<?x?xi32>) -> tensor<?x?x8xf32> {
      %w = tfm.param "w" init(ones) : tensor<4x8xf32>
      %y = tfm.embedding %t, %w : tensor<?x?xi32>, tensor<4x8xf32> -> tensor<?x?x8xf32>
      tfm.yield %y : tensor<?x?x8xf32>
    }
    tfm.model @m max_sequence(8) {
      %t = tfm.input "tokens" : tensor<?x?xi32>
      %x = tfm.call @embed(%t) : (tensor<?x?xi32>) -> tensor<?x?x8xf32>
      %y = tfm.repeat @layer times 6 (%x) prefix "h" : tensor<?x?x8xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefArrayAttr:$blocks,
                       DenseI64ArrayAttr:$counts, I64Attr:$times,
                       Variadic<Tfm_Tensor>:$carried,
                       Variadic<Tfm_Tensor>:$invariants, StrAttr:$prefix,
                       DefaultValuedAttr<I64Attr, "0">:$from,
                       OptionalAttr<I64Attr>:$application);
  let results = (outs Variadic<Tfm_Tensor>:$results);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The block of application `index`, 0 <= index < times.
    ::mlir::FlatSymbolRefAttr blockOf(int64_t index);
  }];
}

def Tfm_ReceiveOp : Tfm_Op<"receive", [HasParent<"ModelOp">]> {
  let summary = "The activation with which a part of the model begins";
  let description = [{
    The result of part `part - 1`, computed on another stage of the pipeline, or
    by the chunk before on the same one.

    ```mlir
    tfm.model @m max_sequence(8) {
      %x = tfm.receive part(1) : tensor<2x8x8xf32>
      tfm.send %x part(1) : tensor<2x8x8xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$part);
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "`part` `(` $part `)` attr-dict `:` type($result)";
}

def Tfm_SendOp : Tfm_Op<"send", [HasParent<"ModelOp">]> {
  let summary = "The activation with which a part of the model ends";
  let description = "What tfm.receive of the next part gets.";
  let arguments = (ins Tfm_Tensor:$value, I64Attr:$part);
  let assemblyFormat = "$value `part` `(` $part `)` attr-dict `:` type($value)";
}

def Tfm_ElsewhereOp : Tfm_Op<"elsewhere", [Pure, HasParent<"ModelOp">]> {
  let summary = "A loss sum that another stage computes";
  let description = [{
    Every stage has every loss term: all report the same loss.
  }];
  let results = (outs Tfm_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tfm_CountValidOp : Tfm_Op<"count_valid", [
    Pure, DeclareOpInterfaceMethods<LowerToExec>]> {
  let summary = "Counts the labels that are not ignored";
  let description = [{
    The count of a loss term: known before the first forward, because it depends on
    an input only.

    ```mlir
    tfm.model @m max_sequence(8) {
      %labels = tfm.input "labels" : tensor<?x?xi32>
      %n = tfm.count_valid %labels ignore(-100) : tensor<?x?xi32> -> tensor<i64>
    }
    ```
  }];
  let arguments = (ins Tfm_Ids:$labels, I64Attr:$ignore);
  let results = (outs Tfm_Count:$result);
  let assemblyFormat = [{
    $labels `ignore` `(` $ignore `)` attr-dict `:` type($labels) `->`
    type($result)
  }];
}

def Tfm_LossTermOp : Tfm_Op<"loss_term", [HasParent<"ModelOp">]> {
  let summary = "Adds weight * sum(sums) / sum(counts) to the loss";
  let description = [{
    Sums run over the whole global batch: a token mean, whatever the
    micro-batches and replicas.

    **Constraints**
    - (T1) the count depends on inputs only.
    - (T2) term names are unique.

    ```mlir
    tfm.block @sum(%l: tensor<?x?xi32>) -> tensor<f32> {
      %x = tfm.param "x" init(ones) : tensor<4x8xf32>
      %e = tfm.embedding %l, %x : tensor<?x?xi32>, tensor<4x8xf32> -> tensor<?x?x8xf32>
      %z = tfm.linear %e, %x : tensor<?x?x8xf32>, tensor<4x8xf32> -> tensor<?x?x4xf32>
      %s = tfm.cross_entropy %z, %l ignore(-100) : tensor<?x?x4xf32>, tensor<?x?xi32> -> tensor<f32>
      tfm.yield %s : tensor<f32>
    }
    tfm.model @m max_sequence(8) {
      %labels = tfm.input "labels" : tensor<?x?xi32>
      %s = tfm.call @sum(%labels) : (tensor<?x?xi32>) -> tensor<f32>
      %n = tfm.count_valid %labels ignore(-100) : tensor<?x?xi32> -> tensor<i64>
      tfm.loss_term "lm", %s, %n : tensor<f32>, tensor<i64>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Tfm_Scalar:$sum, Tfm_Count:$count,
                       DefaultValuedAttr<F64Attr, "1.0">:$weight);
  let assemblyFormat = [{
    $name `,` $sum `,` $count (`weight` `(` custom<Float>($weight)^ `)`)?
    attr-dict `:` type($sum) `,` type($count)
  }];
  let hasVerifier = 1;
}

def Tfm_OutputOp : Tfm_Op<"output", [HasParent<"ModelOp">]> {
  let summary = "A value that eval and generate can return";
  let description = [{
    Dropped when training.

    ```mlir
    tfm.model @m max_sequence(8) {
      %t = tfm.input "tokens" : tensor<?x?xi32>
      tfm.output "tokens", %t : tensor<?x?xi32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Tfm_Tensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
}

#endif
