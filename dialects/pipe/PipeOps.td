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
    I32EnumAttrCase<"Transfer", 5, "transfer">,
    I32EnumAttrCase<"Weight", 6, "weight">]> {
  let cppNamespace = "::mega::pipe";
}

def Pipe_ProgramOp : Pipe_Op<"program", [
    Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "The calls of one action";
  let description = [{
    `setup` runs once before the first step, `prologue` at the start of a step,
    `forward` and `backward` for every micro-batch, and `weight` for the gradients
    of weights that a backward has left, `finish` at its end,
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

//===----------------------------------------------------------------------===//
// Schedules of all stages, by hand
//===----------------------------------------------------------------------===//

def Pipe_Work : I32EnumAttr<"Work", "what is run for a part", [
    I32EnumAttrCase<"Forward", 0, "forward">,
    I32EnumAttrCase<"Backward", 1, "backward">,
    I32EnumAttrCase<"Weight", 2, "weight">]> {
  let cppNamespace = "::mega::pipe";
}

def Pipe_PipelineOp : Pipe_Op<"pipeline", [Symbol, NoTerminator, SingleBlock]> {
  let summary = "What all stages do, in issue order";
  let description = [{
    A schedule written by hand, for VerifySchedule to prove. `parts` has the
    stage of every part of the model. With `train` a step, whose backwards leave
    the weight gradients to weight runs if it `splits_weight`; without, forwards
    only.

    **Constraints**
    - (P1) holds a pipe.stage for every stage, in order from 0, nothing else.
    - (P2) only what trains splits weights.

    ```mlir
    pipe.pipeline @gpipe parts([0, 1]) micro_batches(1) train {
      pipe.stage 0 {
        pipe.run forward part(0) micro_batch(0) slot(0) buffer(0)
        pipe.send @a forward part(0) micro_batch(0) to(1) communicator(0) queue(0) buffer(0) bytes(4096)
        pipe.receive @g backward part(1) micro_batch(0) from(1) communicator(1) queue(1) buffer(1) bytes(4096)
        pipe.wait @a
        pipe.wait @g
        pipe.run backward part(0) micro_batch(0) slot(0) buffer(1)
      }
      pipe.stage 1 {
        pipe.receive @a forward part(0) micro_batch(0) from(0) communicator(0) queue(0) buffer(0) bytes(4096)
        pipe.wait @a
        pipe.run forward part(1) micro_batch(0) slot(0) buffer(0)
        pipe.run backward part(1) micro_batch(0) slot(0) buffer(0)
        pipe.send @g backward part(1) micro_batch(0) to(0) communicator(1) queue(1) buffer(0) bytes(4096)
        pipe.wait @g
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI32ArrayAttr:$parts,
                       SI32Attr:$micro_batches, UnitAttr:$train,
                       UnitAttr:$splits_weight);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `parts` `(` $parts `)` `micro_batches` `(` $micro_batches `)`
    (`train` $train^)? (`splits_weight` $splits_weight^)?
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Pipe_StageOp : Pipe_Op<"stage", [
    HasParent<"PipelineOp">, SymbolTable, NoTerminator, SingleBlock]> {
  let summary = "What one stage does";
  let description = [{
    Its operations are its events. Counter-examples count them from 0.

    **Constraints**
    - (G1) holds pipe.run, pipe.send, pipe.receive, pipe.collective and
      pipe.wait, nothing else.
    - (G2) names are unique in a stage; other stages may use them again.

    ```mlir
    pipe.pipeline @one_stage parts([0]) micro_batches(1) {
      pipe.stage 0 {
        pipe.run forward part(0) micro_batch(0)
      }
    }
    ```
  }];
  let arguments = (ins SI32Attr:$number);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$number attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Pipe_RunOp : Pipe_Op<"run", [HasParent<"StageOp">]> {
  let summary = "Runs a part for a micro-batch";
  let description = [{
    The host goes on when it has ended. `slot` has what backward and weight read
    of the forward; forwards of an evaluation need none. `buffer` is where what
    came from another part is, and where the result is left for the next; a run
    with neither, and a weight run, have none.

    ```mlir
    pipe.pipeline @split parts([0]) micro_batches(1) train splits_weight {
      pipe.stage 0 {
        pipe.run forward part(0) micro_batch(0) slot(0)
        pipe.run backward part(0) micro_batch(0) slot(0)
        pipe.run weight part(0) micro_batch(0) slot(0)
      }
    }
    ```
  }];
  let arguments = (ins Pipe_Work:$work, SI32Attr:$part, SI32Attr:$micro_batch,
                       OptionalAttr<SI32Attr>:$slot,
                       OptionalAttr<SI32Attr>:$buffer);
  let assemblyFormat = [{
    $work `part` `(` $part `)` `micro_batch` `(` $micro_batch `)`
    (`slot` `(` $slot^ `)`)? (`buffer` `(` $buffer^ `)`)? attr-dict
  }];
}

class Pipe_TransferOp<string mnemonic, string direction>
    : Pipe_Op<mnemonic, [HasParent<"StageOp">, Symbol]> {
  let arguments = (ins SymbolNameAttr:$sym_name, Pipe_Work:$work,
                       SI32Attr:$part, SI32Attr:$micro_batch, SI32Attr:$peer,
                       SI32Attr:$communicator, OptionalAttr<SI32Attr>:$queue,
                       SI32Attr:$buffer, OptionalAttr<SI64Attr>:$bytes);
  let assemblyFormat = !strconcat([{
    $sym_name $work `part` `(` $part `)` `micro_batch` `(` $micro_batch `)`
    `}], direction, [{` `(` $peer `)` `communicator` `(` $communicator `)`
    (`queue` `(` $queue^ `)`)? `buffer` `(` $buffer `)`
    (`bytes` `(` $bytes^ `)`)? attr-dict
  }]);
}

def Pipe_SendOp : Pipe_TransferOp<"send", "to"> {
  let summary = "Starts to send the result of a run";
  let description = [{
    The activation that a `forward` leaves, or the gradient of a `backward`, of
    that part, to another stage. It uses its buffer until a pipe.wait. The k-th
    operations of two stages with each other on a communicator meet; sizes need
    not be written, but both sides have to agree. Operations of one `queue` of a
    stage run one after the other; without it, on that of the runs. Proofs take
    a send to end only once its receive has started.

    ```mlir
    pipe.pipeline @eval parts([0, 1]) micro_batches(1) {
      pipe.stage 0 {
        pipe.run forward part(0) micro_batch(0) buffer(0)
        pipe.send @a forward part(0) micro_batch(0) to(1) communicator(0) buffer(0)
        pipe.wait @a
      }
      pipe.stage 1 {
        pipe.receive @a forward part(0) micro_batch(0) from(0) communicator(0) buffer(0)
        pipe.wait @a
        pipe.run forward part(1) micro_batch(0) buffer(0)
      }
    }
    ```
  }];
}

def Pipe_ReceiveOp : Pipe_TransferOp<"receive", "from"> {
  let summary = "Starts to receive the result of a run";
  let description = [{
    `part` and the rest are those of the run on the other stage, as its
    pipe.send has them.

    ```mlir
    pipe.pipeline @eval parts([1, 0]) micro_batches(1) {
      pipe.stage 0 {
        pipe.receive @a forward part(0) micro_batch(0) from(1) communicator(0) queue(0) buffer(0)
        pipe.wait @a
        pipe.run forward part(1) micro_batch(0) buffer(0)
      }
      pipe.stage 1 {
        pipe.run forward part(0) micro_batch(0) buffer(0)
        pipe.send @a forward part(0) micro_batch(0) to(0) communicator(0) queue(0) buffer(0)
        pipe.wait @a
      }
    }
    ```
  }];
}

def Pipe_CollectiveOp : Pipe_Op<"collective", [HasParent<"StageOp">, Symbol]> {
  let summary = "Starts a collective of several stages";
  let description = [{
    Its members are the stages with a collective on that communicator; they have
    equally many. A pipe.wait for it may be missing.

    ```mlir
    pipe.pipeline @eval parts([0]) micro_batches(1) {
      pipe.stage 0 {
        pipe.collective @count communicator(0) queue(0)
        pipe.run forward part(0) micro_batch(0)
        pipe.wait @count
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, SI32Attr:$communicator,
                       OptionalAttr<SI32Attr>:$queue);
  let assemblyFormat = [{
    $sym_name `communicator` `(` $communicator `)` (`queue` `(` $queue^ `)`)?
    attr-dict
  }];
}

def Pipe_WaitOp : Pipe_Op<"wait", [
    HasParent<"StageOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Waits until an operation of the stage has ended";
  let description = [{
    The host goes on, and the buffer of a transfer is free or filled, when it
    has.

    **Constraints**
    - (W1) the stage has an operation of that name. VerifySchedule wants it to
      be an earlier one.

    ```mlir
    pipe.pipeline @eval parts([0]) micro_batches(1) {
      pipe.stage 0 {
        pipe.run forward part(0) micro_batch(0)
        pipe.collective @sum communicator(0)
        pipe.wait @sum
      }
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$target);
  let assemblyFormat = "$target attr-dict";
}

#endif
