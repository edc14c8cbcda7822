//===- Passes.td - The passes, by phase -----------------------------------===//
#ifndef MEGA_PASSES_PASSES
#define MEGA_PASSES_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// model
//===----------------------------------------------------------------------===//

def PlaceTokens : Pass<"mega-place-tokens", "::mlir::ModuleOp"> {
  let summary = "Makes the places of tokens inputs of the model";
  let description = [{
    Rows are cut from a stream of documents (docs/data.md). With `packed` the
    documents of a row do not see each other, and their positions count from 0;
    with `cp` above 1 a rank has some tokens of a row, in any order. Either way
    ops cannot tell a token's place from where it stands. This pass adds the
    inputs `positions` and `segment_ids` to the model, hands them to the blocks
    with a tfm.add_positions, tfm.rope, tfm.attention or, with cp, tfm.dropout
    (of a tfm.repeat, to all blocks of the cycle), and gives them to these ops. A
    model that has one of the inputs has to do so itself: then it is only
    checked. Afterwards every such op knows the places of its tokens, and the
    module attribute `tfm.packed` says whether documents are kept apart.
  }];
  let options = [
    Option<"packed", "packed", "bool", "false",
           "documents of one row do not see each other">,
    Option<"cp", "cp", "int64_t", "1", "context-parallel degree">];
}

def BindShapes : Pass<"mega-bind-shapes", "::mlir::ModuleOp"> {
  let summary = "Gives batch and sequence their sizes";
  let description = [{
    A model leaves the first two dimensions of its tensors open. This pass
    binds them to the batch (micro-batch size times data-parallel degree: one
    micro-batch of all replicas) and the sequence length. Afterwards every
    shape is static, and no sequence is longer than the model or one of its
    position tables allows.
  }];
  let options = [
    Option<"batch", "batch", "int64_t", "1", "rows of one micro-batch">,
    Option<"sequence", "sequence", "int64_t", "0",
           "sequence length; 0: the model's max_sequence">];
}

def AssignPrecision : Pass<"mega-assign-precision", "::mlir::ModuleOp"> {
  let summary = "Chooses what is computed in bf16";
  let description = [{
    A model is written in f32. With `precision=bf16` activations and matrices
    (f32 tensors of two and more dimensions) are computed in bf16; a matrix is
    stored in f32 and copied. Vectors (norm weights, biases) are read as they
    are stored: once per row, so that rounding them would save nothing.
    Statistics, softmax, losses, gradients of parameters and optimizer state
    are f32 by the types of their ops. Afterwards types say it all: no later
    pass chooses a precision.
  }];
  let options = [
    Option<"precision", "precision", "std::string", "\"fp32\"",
           "fp32 or bf16">];
}

def FuseSemantics : Pass<"mega-fuse-semantics", "::mlir::ModuleOp"> {
  let summary = "Joins the output head with its cross entropy";
  let description = [{
    Logits are the largest tensor of a language model by far. A tfm.linear
    whose only use is a tfm.cross_entropy becomes tfm.head_stats,
    tfm.head_rescale and tfm.head_loss, which never hold more than a tile of
    them. Afterwards no tfm.cross_entropy is left; one that cannot be joined is
    an error.
  }];
}

def VerifyModel : Pass<"mega-verify-model", "::mlir::ModuleOp"> {
  let summary = "After the model phase: static shapes, one model with a loss";
  let description = [{
    Checks what the later phases rely on: exactly one tfm.model, which has
    a loss term and the inputs the data loader knows; static tensor types; no
    tfm.cross_entropy.
  }];
}

//===----------------------------------------------------------------------===//
// shard
//===----------------------------------------------------------------------===//

def AnnotateLayouts : Pass<"mega-annotate-layouts", "::mlir::ModuleOp"> {
  let dependentDialects = ["::mega::dist::DistDialect"];
  let summary = "Chooses the layouts of parameters";
  let description = [{
    States the mesh (`dist.mesh`, if there is more than one rank) and cuts
    parameters over tp by structure: linears in pairs, by columns then by rows;
    tables indexed by ids and the head by vocabulary, padded where it does not
    divide. A layout that the model gave a parameter stays. Afterwards every
    tensor type has an encoding: no encoding means unassigned, everywhere else
    in the compiler. All but parameters are still invariant.
  }];
  let options = [
    Option<"tp", "tp", "int64_t", "1", "tensor-parallel degree">,
    Option<"cp", "cp", "int64_t", "1", "context-parallel degree">,
    Option<"dp", "dp", "int64_t", "1", "data-parallel degree">,
    Option<"pp", "pp", "int64_t", "1", "stages of the pipeline">];
}

def InsertCollectives : Pass<"mega-insert-collectives", "::mlir::ModuleOp"> {
  let dependentDialects = ["::mega::dist::DistDialect"];
  let summary = "Gives every value a layout and converts where ops need it";
  let description = [{
    Walks each block forward. Inputs are cut over dp, and along the sequence over
    cp (the places of tokens are whole); parameters as they were annotated; every op's sharding rule says what its results are, and operands
    that do not obey it are converted: gathered, replicated, sliced or reduced,
    each value at most once to each layout. With `sequence-parallel` the
    residual stream is cut along the sequence over tp, and sums are scattered to
    it instead of reduced. Over cp the sequence is zigzag if all attention is
    causal and rows are not packed. Attention then needs all keys: `cp-method`
    gathers them (`gather`), trades the sequence for heads around it
    (`all-to-all`), makes it a ring (`ring`), or is chosen by what moves
    (empty). Afterwards all layouts obey the calculus
    (VerifyLayouts), and every collective of the forward stands in the IR;
    Differentiate derives those of the backward. A dist.constrain becomes the
    conversion it asks for; with `forbid-implicit-reshard` nothing else may move
    data.
  }];
  let options = [
    Option<"sequenceParallel", "sequence-parallel", "bool", "false",
           "cut the residual stream along the sequence over tp">,
    Option<"cpMethod", "cp-method", "std::string", "\"\"",
           "ring, gather or all-to-all">,
    Option<"forbidImplicit", "forbid-implicit-reshard", "bool", "false",
           "refuse to move data where no dist.constrain asks for it">];
}

def GroupLinears : Pass<"mega-group-linears", "::mlir::ModuleOp"> {
  let summary = "Marks linears of one input that can be one GEMM";
  let description = [{
    q, k and v, or gate and up: linears of the same block that read the same
    value get one group number. Parameters stay separate and logical; ShardState
    places the weights of a group side by side, so that no checkpoint ever sees
    a fused matrix. Afterwards every group has at least two members.
  }];
}

def VerifyLayouts : Pass<"mega-verify-layouts", "::mlir::ModuleOp"> {
  let summary = "After the shard phase: layouts obey the calculus";
  let description = [{
    Checks that every tensor type has a layout that fits the mesh and its shape
    (axes with more than one rank, pieces that divide), and that every op's
    layouts obey its sharding rule on every axis: sums stay sums until they are
    reduced, and invariant values do not mix with replicated or sharded ones.
    Runs again on what Differentiate made, so that a gradient which is not
    reduced where its type says so cannot exist.
  }];
}

//===----------------------------------------------------------------------===//
// differentiate
//===----------------------------------------------------------------------===//

def ChooseRecompute : Pass<"mega-choose-recompute", "::mlir::ModuleOp"> {
  let summary = "Says per block what its backward computes again";
  let description = [{
    Sets the attribute `recompute` of blocks that have none: `none` keeps all a
    backward asks for; `selective` keeps results of matrix products and of
    attention, and what follows from kept values without either is computed
    again; `full` keeps the block's inputs only. The option is for repeated
    blocks, of which there are many; a block that is called once keeps
    everything. Afterwards every applied block has the attribute.
  }];
  let options = [
    Option<"recompute", "recompute", "std::string", "\"none\"",
           "none, selective or full">];
}

def Differentiate : Pass<"mega-differentiate", "::mlir::ModuleOp"> {
  let summary = "Makes forward, backward and eval functions of every block";
  let description = [{
    `@block.forward` returns what the block yields and what it saves;
    `@block.backward` takes the gradients of the active results, the inactive
    arguments (token ids, labels) and the saved values, and returns the
    gradients of the active arguments; `@block.eval` is the block without
    dropout. Gradients of parameters leave through tfm.accumulate_gradient, so
    that several uses and micro-batches simply add. Only what a backward asks
    for is saved, and of that only what the block's `recompute` says; the rest is
    computed again where the backward first reads it, by clones of the forward's
    ops (which draw the same random numbers). Parameters are read again. Ops
    transpose themselves (interface Differentiable). Afterwards no tfm.block is called any more by
    what follows, but blocks stay for reading.
  }];
}

def SplitWeight : Pass<"mega-split-weight", "::mlir::ModuleOp"> {
  let summary = "Leaves gradients of weights to functions of their own";
  let description = [{
    For zero-bubble schedules. `@block.backward` keeps what its results, the
    gradients of the block's inputs, need; the gradients of weights that none of
    that makes on the way move to `@block.weight`, with the collectives that only
    they need. It takes the inactive arguments, all that the forward saved, and
    what the backward saves for it: values that depend on gradients. What
    follows from saved values alone is computed again, and what was gathered is
    gathered again. Afterwards `@block.backward` has saved results, if it has
    anything to leave, and the module says how long forward, backward and weight
    take, which the order of their runs depends on.
  }];
}

//===----------------------------------------------------------------------===//
// state
//===----------------------------------------------------------------------===//

def PartitionPipeline : Pass<"mega-partition-pipeline", "::mlir::ModuleOp"> {
  let dependentDialects = ["::mega::tfm::TfmDialect"];
  let summary = "Leaves one stage of the model";
  let description = [{
    Cuts the applications of the model into `pp` times `vpp` parts, so that the
    most expensive one is as cheap as possible, or as `stages` says. A unit is
    one application of a block; none is divided. Stage `stage` keeps its parts
    in model order, each from the tfm.receive of its first activation to the
    tfm.send of its last, with their numbers in the whole model. Parameters that
    the first and the last stage share are marked `tied`; inputs and loss terms
    are on every stage. Functions and blocks of other stages go.
  }];
  let options = [
    Option<"pp", "pp", "int64_t", "1", "stages">,
    Option<"vpp", "vpp", "int64_t", "1", "chunks of a stage">,
    Option<"stage", "stage", "int64_t", "0", "the stage to keep">,
    Option<"schedule", "schedule", "std::string", "\"\"",
           "1f1b, gpipe, interleaved or zero-bubble">,
    Option<"stages", "stages", "std::string", "\"\"",
           "the parts, as in E 3L | 4L H">];
}

def ShardState : Pass<"mega-shard-state", "::mlir::ModuleOp"> {
  let dependentDialects = ["::mega::dist::DistDialect"];
  let summary = "Puts parameters into buckets and makes the step's end";
  let description = [{
    Buckets hold what is kept, reduced and updated together: matrices decay,
    vectors and biases do not; parameters cut over tp, whole ones, and those
    whose gradient is a sum over tp are apart. Applications of a block follow
    each other at a constant stride, weights of a linear group are neighbours;
    offsets count what one rank holds. `@reduce` adds up the gradients
    that several ranks hold sums of, `@finish` takes the norm, clips and runs
    the optimizer: which collectives that needs is read off the types of the
    parameters. With `zero=1` gradients are scattered
    over dp instead of reduced, every replica updates its piece, and the pieces
    are gathered.
    Afterwards every parameter is in exactly one bucket.
  }];
  let options = [
    Option<"zero", "zero", "int64_t", "0",
           "0: optimizer states are whole; 1: cut over dp">];
}

def VerifyState : Pass<"mega-verify-state", "::mlir::ModuleOp"> {
  let summary = "After the state phase: every parameter is in one bucket";
  let description = [{
    Checks that every parameter of a block, for all its applications, and every
    tfm.shared is a member of exactly one bucket, that members do not overlap,
    that no two have the same logical name, and that every gradient that is
    accumulated has a place.
  }];
}

//===----------------------------------------------------------------------===//
// schedule
//===----------------------------------------------------------------------===//

def EmitSchedule : Pass<"mega-emit-schedule", "::mlir::ModuleOp"> {
  let dependentDialects = ["::mega::exec::ExecDialect", "::mega::pipe::PipeDialect"];
  let summary = "Turns the model into programs and a schedule";
  let description = [{
    Forward, backward and, if the schedule splits it off, weight of every
    micro-batch, between the step's prologue and
    its finish, as entry point `@train`; `@eval` only runs forwards. With one
    stage each in turn; in a pipeline as the schedule says, with the transfers
    of activations and gradients that it needs. The prologue zeroes gradients
    and sums and turns the label count of the whole global batch into the seed
    of the backward. Numbers the applications through the model. Afterwards
    tfm.model and tfm.block are gone.
  }];
  let options = [
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches of one step">,
    Option<"pp", "pp", "int64_t", "1", "stages">,
    Option<"vpp", "vpp", "int64_t", "1", "chunks of a stage">,
    Option<"schedule", "schedule", "std::string", "\"\"",
           "1f1b, gpipe, interleaved or zero-bubble">];
}

def VerifySchedule : Pass<"mega-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Proves schedules written by hand";
  let description = [{
    Every pipe.pipeline is a step, or an evaluation, that cannot hang: each part
    runs each micro-batch once, in order; transfers and collectives match, and
    are waited for; buffers and slots are not written while something in them is
    yet to be read; nothing waits for itself, even where sends block. What is
    wrong with one that is not is an error at the pipeline, with a
    counter-example: events are counted from 0 on every stage, and those of a
    deadlock each wait for the next. The same proof that schedules of the
    compiler pass. Changes nothing.
  }];
}

//===----------------------------------------------------------------------===//
// lower
//===----------------------------------------------------------------------===//

def FuseKernels : Pass<"mega-fuse-kernels", "::mlir::ModuleOp"> {
  let summary = "Joins neighbouring ops that one kernel can do";
  let description = [{
    Bias and gelu; residual sum and norm; the linears of a group, forward and
    backward; a sum with a gradient that can accumulate. Peephole patterns: what
    is computed does not change, passes over memory get fewer.
  }];
}

def LowerToExec : Pass<"mega-lower-to-exec", "::mlir::ModuleOp"> {
  let dependentDialects = ["::mega::exec::ExecDialect", "::mega::pipe::PipeDialect"];
  let summary = "Turns functions into launches over buffers";
  let description = [{
    Ops state their launches (interface LowerToExec); this pass gives every
    value a buffer. Values share one where nothing moves (views), where a kernel
    may work in place, and where a function's result takes over the memory of
    its argument; results of grouped linears are column slices. What the
    backward needs lies in the block's saved frame. Afterwards no tfm.function
    is left.
  }];
}

def PlanMemory : Pass<"mega-plan-memory", "::mlir::ModuleOp"> {
  let dependentDialects = ["::mega::exec::ExecDialect"];
  let summary = "Gives every buffer its place";
  let description = [{
    Scratch by lifetime, first fit; carry between calls likewise; then the size
    of every region of the rank. Afterwards every exec.alloc has an offset and
    the module states its regions (exec.region).
  }];
}

#endif
