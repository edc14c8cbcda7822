//===- PipeOps.td - Programs, calls, schedules ----------------------------===//
#ifndef MEGA_DIALECTS_PIPE_PIPEOPS
#define MEGA_DIALECTS_PIPE_PIPEOPS

include "dialects/pipe/PipeDialect.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Pipe_Op<string mnemonic, list<Trait> traits = []>
    : Op<Pipe_Dialect, mnemonic, traits>;

def Pipe_ActionKind : I32EnumAttr<"ActionKind", "kind of an action", [
    I32EnumAttrCase<"Setup", 0, "setup">,
    I32EnumAttrCase<"Prologue", 1, "prologue">,
    I32EnumAttrCase<"Forward", 2, "forward">,
    I32EnumAttrCase<"Backward", 3, "backward">,
    I32EnumAttrCase<"Finish", 4, "finish">,
    I32EnumAttrCase<"Transfer", 5, "transfer">]> {
  let cppNamespace = "::mega::pipe";
}

def Pipe_ProgramOp : Pipe_Op<"program", [
    Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "The calls of one action";
  let description = [{
    `setup` runs once before the first step, `prologue` at the start of a step,
    `forward` and `backward` for every micro-batch, `finish` at its end,
    `transfer` when something goes to another stage or comes from one. `part` is
    the part of the model that it runs, or whose result is moved.

    ```mlir
    pipe.program @nothing kind(finish) {
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Pipe_ActionKind:$kind,
                       OptionalAttr<I64Attr>:$part);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `kind` `(` $kind `)` (`part` `(` $part^ `)`)? attr-dict-with-keyword $body
  }];
}

def Pipe_InputOp : Pipe_Op<"input", [
    Pure, HasParent<"ProgramOp">,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A batch tensor of the action's micro-batch";
  let description = [{
    With `all`, the batches of all micro-batches of the step, one after the
    other along the first dimension.

    ```mlir
    pipe.program @f kind(forward) {
      %tokens = pipe.input "tokens" : tensor<4x32xi32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, UnitAttr:$all);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$name (`all` $all^)? attr-dict `:` type($result)";
}

def Pipe_CounterOp : Pipe_Op<"counter", [Pure, HasParent<"ProgramOp">]> {
  let summary = "Reads a counter";
  let description = [{
    See tfm.record.

    ```mlir
    pipe.program @b kind(backward) {
      %seed = pipe.counter "lm.seed" : tensor<f32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Pipe_BoundaryOp : Pipe_Op<"boundary", [Pure, HasParent<"ProgramOp">]> {
  let summary = "The action's buffer between stages";
  let description = [{
    Holds what came from another stage, or what goes there.

    ```mlir
    pipe.program @p kind(forward) part(1) {
      %x = pipe.boundary : tensor<2x8x8xf32>
      pipe.leave %x : tensor<2x8x8xf32>
    }
    ```
  }];
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Pipe_LeaveOp : Pipe_Op<"leave", [HasParent<"ProgramOp">]> {
  let summary = "Leaves a value in the action's buffer between stages";
  let description = [{
    The calls that the value comes from work in that buffer.
  }];
  let arguments = (ins AnyRankedTensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Pipe_CallOp : Pipe_Op<"call", [
    HasParent<"ProgramOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a function once, or for several applications in a row";
  let description = [{
    Run i has application `application + i` (numbered through the model),
    instance `instance + i` (among the applications of its block: it names the
    parameters) and the frame of the same number, or `frame + i`; `reverse` runs
    the last first. The results of one run are the first operands of the next. A result
    with the type of the operand of the same number takes over its memory.
    `carry` holds the byte offsets of the results, filled in by PlanMemory; -1
    is the buffer between stages.

    **Constraints**
    - (C1) the callee is a function with these operand and result types,
      without what it saves.
    - (C2) an operand whose memory is taken over has no other use.

    ```mlir
    tfm.function @f.eval(%x: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
      %y = tfm.add %x, %x : tensor<2x8x8xf32>
      tfm.return %y : tensor<2x8x8xf32>
    }
    pipe.program @p kind(forward) {
      %x = pipe.counter "x" : tensor<2x8x8xf32>
      %y = pipe.call @f.eval(%x) application(1) count(6)
        : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee,
                       Variadic<AnyRankedTensor>:$arguments,
                       DefaultValuedAttr<I64Attr, "0">:$application,
                       DefaultValuedAttr<I64Attr, "0">:$instance,
                       DefaultValuedAttr<I64Attr, "1">:$count,
                       UnitAttr:$reverse,
                       OptionalAttr<DenseI64ArrayAttr>:$carry,
                       OptionalAttr<I64Attr>:$frame);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $callee `(` $arguments `)` (`application` `(` $application^ `)`)?
    (`instance` `(` $instance^ `)`)? (`count` `(` $count^ `)`)?
    (`reverse` $reverse^)? (`frame` `(` $frame^ `)`)? (`carry` $carry^)?
    attr-dict `:`
    functional-type($arguments, $results)
  }];
  let extraClassDeclaration = [{
    /// Number of the first frame in the slot.
    int64_t firstFrame() {
      return static_cast<int64_t>(getFrame().value_or(getInstance()));
    }
    /// Whether result `index` takes over the memory of operand `index`.
    bool takesOver(unsigned index) {
      return index < getArguments().size() &&
             getArguments()[index].getType() == getResult(index).getType();
    }
  }];
}

def Pipe_ScheduleOp : Pipe_Op<"schedule", [
    Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The actions of one stage";
  let description = [{
    Written as a list of `@program(micro_batch, slot)`, with the number of the
    buffer between stages behind it if that is not 0.

    **Constraints**
    - (S1) programs exist; micro-batches are below `micro_batches`.

    ```mlir
    pipe.program @f kind(forward) {
    }
    pipe.schedule @train stage(0) micro_batches(2) [@f(0, 0), @f(1, 0)]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$stage,
                       I64Attr:$micro_batches,
                       FlatSymbolRefArrayAttr:$programs,
                       DenseI32ArrayAttr:$actions);
  let assemblyFormat = [{
    $sym_name `stage` `(` $stage `)` `micro_batches` `(` $micro_batches `)`
    custom<Actions>($programs, $actions) attr-dict
  }];
}

#endif
