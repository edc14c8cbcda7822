//===- ExecOps.td - Functions, buffers, launches --------------------------===//
#ifndef MEGA_DIALECTS_EXEC_EXECOPS
#define MEGA_DIALECTS_EXEC_EXECOPS

include "dialects/exec/ExecTypes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Exec_Op<string mnemonic, list<Trait> traits = []>
    : Op<Exec_Dialect, mnemonic, traits>;

def Exec_FunctionOp : Exec_Op<"function", [
    Symbol, NoTerminator, SingleBlock, IsolatedFromAbove]> {
  let summary = "A sequence of launches";
  let description = [{
    Called by programs with addresses for its arguments (inputs, then outputs)
    and the numbers of application, instance, frame, slot and micro-batch.
    `frame` is the size in bytes of what it saves, `scratch` of what dies
    inside.

    ```mlir
    exec.function @copy.eval {
      %x = exec.argument 0 : !exec.buf<4x8xf32>
      %y = exec.argument 1 : !exec.buf<4x8xf32>
      exec.launch "copy"(%x, %y) : !exec.buf<4x8xf32>, !exec.buf<4x8xf32>
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    OptionalAttr<StrAttr>:$block,
    OptionalAttr<I64Attr>:$frame,
    OptionalAttr<I64Attr>:$scratch,
    OptionalAttr<I64Attr>:$flops);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name (`block` `(` $block^ `)`)? (`frame` `(` $frame^ `)`)?
    (`scratch` `(` $scratch^ `)`)? (`flops` `(` $flops^ `)`)?
    attr-dict-with-keyword $body
  }];
}

def Exec_ArgumentOp : Exec_Op<"argument", [Pure]> {
  let summary = "A buffer the caller supplies";
  let description = [{
    Arguments are numbered: the function's inputs, then its outputs. An output
    may be the same memory as an input of the same number.
  }];
  let arguments = (ins I64Attr:$number);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = "$number attr-dict `:` type($result)";
}

def Exec_Space : I32EnumAttr<"Space", "where a buffer lives", [
    I32EnumAttrCase<"Scratch", 0, "scratch">,
    I32EnumAttrCase<"Saved", 1, "saved">]> {
  let cppNamespace = "::mega::exec";
}

def Exec_AllocOp : Exec_Op<"alloc"> {
  let summary = "A buffer of the function's scratch or of its saved frame";
  let description = [{
    PlanMemory fills in the offset.

    ```mlir
    %0 = exec.alloc scratch : !exec.buf<4x32x64xf32>
    %1 = exec.alloc saved at 8192 : !exec.buf<4x32x64xf32>
    ```
  }];
  let arguments = (ins Exec_Space:$space, OptionalAttr<I64Attr>:$offset);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = "$space (`at` $offset^)? attr-dict `:` type($result)";
}

def Exec_StateOp : Exec_Op<"state", [Pure]> {
  let summary = "A buffer in a state region";
  let description = [{
    `region` is `parameters`, `gradients`, `moments`, `variances`, `constants`
    or `counters`. `per_instance` is the distance in bytes between neighbouring
    applications of the same block. With `piece([4, 3], 4096)` the buffer is one
    of the pieces of a vector that is cut over mesh axes number 4 and 3 (dp, then
    cp): 4096 bytes further for every step of the rank's place on them.

    ```mlir
    %w = exec.state "parameters" at 4096 per_instance 65536 : !exec.buf<64x64xf32>
    ```
  }];
  let arguments = (ins StrAttr:$region, I64Attr:$offset,
                       DefaultValuedOptionalAttr<I64Attr, "0">:$per_instance,
                       OptionalAttr<DenseI32ArrayAttr>:$axes,
                       OptionalAttr<I64Attr>:$per_piece);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat = [{
    $region `at` $offset (`per_instance` $per_instance^)?
    (`piece` `(` $axes^ `,` $per_piece `)`)? attr-dict
    `:` type($result)
  }];
}

def Exec_SliceOp : Exec_Op<"slice", [Pure]> {
  let summary = "Columns or another shape of a buffer";
  let description = [{
    The buffer of the result type that starts `first` columns into the rows of
    `source`. Rows are those of the source.

    **Constraints**
    - (S1) the result has as many rows as the source, and its columns lie
      inside the source's rows.

    ```mlir
    %qkv = exec.alloc scratch : !exec.buf<4x32x192xf32>
    %k = exec.slice %qkv[64] : !exec.buf<4x32x192xf32> -> !exec.buf<4x32x8x8xf32 stride 192>
    ```
  }];
  let arguments = (ins Exec_BufferType:$source, I64Attr:$first);
  let results = (outs Exec_BufferType:$result);
  let assemblyFormat =
    "$source `[` $first `]` attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// What the plan says besides its functions
//===----------------------------------------------------------------------===//

def Exec_Part : I32EnumAttr<"Part", "part of planned memory", [
    I32EnumAttrCase<"State", 0, "state">,
    I32EnumAttrCase<"Pool", 1, "pool">,
    I32EnumAttrCase<"Boundary", 2, "boundary">,
    I32EnumAttrCase<"Carry", 3, "carry">,
    I32EnumAttrCase<"Gathered", 4, "gathered">,
    I32EnumAttrCase<"Staging", 5, "staging">,
    I32EnumAttrCase<"Scratch", 6, "scratch">,
    I32EnumAttrCase<"Input", 7, "input">,
    I32EnumAttrCase<"Snapshot", 8, "snapshot">,
    I32EnumAttrCase<"Workspace", 9, "workspace">]> {
  let cppNamespace = "::mega::exec";
}

def Exec_RegionOp : Exec_Op<"region"> {
  let summary = "One allocation of a rank";
  let description = [{
    Pools are named `saved.<block>`. `copies` are rotated through, step by step.
    Of a pool, or of the buffers between stages, `slot` is one of them.

    ```mlir
    exec.region "scratch" part(scratch) bytes(65536) copies(1)
    ```
  }];
  let arguments = (ins StrAttr:$name, Exec_Part:$part, I64Attr:$bytes,
                       I64Attr:$copies, OptionalAttr<I64Attr>:$slot);
  let assemblyFormat = [{
    $name `part` `(` $part `)` `bytes` `(` $bytes `)` `copies` `(` $copies `)`
    (`slot` `(` $slot^ `)`)? attr-dict
  }];
}

def Exec_GroupOp : Exec_Op<"group"> {
  let summary = "The members of a collective";
  let description = [{
    Ranks that differ on these axes only, major to minor. The k-th of a module
    is group k, to which the integers of launches refer.

    ```mlir
    exec.group {tp}
    ```
  }];
  let arguments = (ins DenseI32ArrayAttr:$axes);
  let assemblyFormat = "custom<Axes>($axes) attr-dict";
}

def Exec_CounterOp : Exec_Op<"counter"> {
  let summary = "A named scalar in the region `counters`";
  let description = [{
    Named by tfm.record; aligned so that no two counters share a cache line.

    ```mlir
    exec.counter "lm.sum" at 0 : !exec.buf<f64>
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$offset,
                       TypeAttrOf<Exec_BufferType>:$type);
  let assemblyFormat = "$name `at` $offset attr-dict `:` $type";
}

def Exec_InputOp : Exec_Op<"input"> {
  let summary = "A batch tensor in the region `inputs`";
  let description = [{
    The data loader fills one buffer of this type for every micro-batch; they
    follow each other. Ids are at least 0 and below `limit`, except ignored
    labels.

    ```mlir
    exec.input "tokens" limit(257) at 0 : !exec.buf<4x32xi32>
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$limit, OptionalAttr<I64Attr>:$offset,
                       TypeAttrOf<Exec_BufferType>:$type);
  let assemblyFormat = [{
    $name `limit` `(` $limit `)` (`at` $offset^)? attr-dict `:` $type
  }];
}

def Exec_LossTermOp : Exec_Op<"loss_term"> {
  let summary = "weight * counter <name>.sum / counter <name>.count";
  let description = [{
    What the runtime reports as the loss, summed over terms. Labels equal to
    `ignore` count nowhere.

    ```mlir
    exec.loss_term "lm" weight(1.0) ignore(-100)
    ```
  }];
  let arguments = (ins StrAttr:$name, F64Attr:$weight, I64Attr:$ignore);
  let assemblyFormat = [{
    $name `weight` `(` custom<Float>($weight) `)` `ignore` `(` $ignore `)`
    attr-dict
  }];
}

def Exec_LaunchOp : Exec_Op<"launch"> {
  let summary = "Runs one kernel";
  let description = [{
    Operands, integers and floats in the order of the kernel's row in
    `runtime/plan/Kernels.cpp`. Integers may depend on the rank: `terms` holds
    triples (number of the integer, number of a mesh axis, what every step of
    the rank's coordinate on it adds).

    **Constraints**
    - (K1) the kernel exists.
    - (K2) operands and attributes satisfy the kernel's shape rules.

    ```mlir
    %x = exec.argument 0 : !exec.buf<4x32x64xf32>
    %w = exec.state "parameters" at 0 : !exec.buf<16x64xf32>
    %y = exec.alloc scratch : !exec.buf<4x32x16xf32>
    exec.launch "gemm"(%x, %w, %y) integers (0, 1, 0)
      : !exec.buf<4x32x64xf32>, !exec.buf<16x64xf32>, !exec.buf<4x32x16xf32>
    ```
  }];
  let arguments = (ins StrAttr:$kernel, Variadic<Exec_BufferType>:$buffers,
                       OptionalAttr<DenseI64ArrayAttr>:$integers,
                       OptionalAttr<DenseF64ArrayAttr>:$floats,
                       OptionalAttr<DenseI64ArrayAttr>:$terms);
  let assemblyFormat = [{
    $kernel `(` $buffers `)` (`integers` custom<Integers>($integers)^)?
    (`terms` custom<Integers>($terms)^)?
    (`floats` custom<Floats>($floats)^)? attr-dict `:` type($buffers)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<int64_t> integerValues() {
      return getIntegers() ? *getIntegers() : ::llvm::ArrayRef<int64_t>();
    }
    ::llvm::ArrayRef<double> floatValues() {
      return getFloats() ? *getFloats() : ::llvm::ArrayRef<double>();
    }
  }];
}

#endif
