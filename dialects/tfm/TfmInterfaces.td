//===- TfmInterfaces.td - What an op says about itself --------------------===//
#ifndef MEGA_DIALECTS_TFM_TFMINTERFACES
#define MEGA_DIALECTS_TFM_TFMINTERFACES

include "mlir/IR/OpBase.td"

def Differentiable : OpInterface<"Differentiable"> {
  let cppNamespace = "::mega::tfm";
  let description = [{
    How Differentiate transposes an op. Reverse mode: given the gradients of
    the results, build ops for the gradients of the operands.
  }];
  let methods = [
    InterfaceMethod<[{
        Replaces the op, before Differentiate, by a variant with further
        results that its backward needs (row statistics); returns the op itself
        when there is none.
      }],
      "::mlir::Operation *", "expandForTraining",
      (ins "::mlir::OpBuilder &":$builder), "",
      [{ return $_op.getOperation(); }]>,
    InterfaceMethod<[{
        Builds the backward. `context` hands out the gradients of results and
        forward values (saving them as needed) and takes those of operands.
      }],
      "void", "buildGradient",
      (ins "::mega::tfm::GradientContext &":$context)>
  ];
}

def Cost : OpInterface<"Cost"> {
  let cppNamespace = "::mega::tfm";
  let description = [{
    What an op costs: floating-point operations of its matrix products (a
    multiply-add is two) and bytes read and written, for the global shapes in
    its types.
  }];
  let methods = [
    InterfaceMethod<"The cost of one execution.",
      "::mega::tfm::OpCost", "getCost", (ins)>
  ];
}

def Sharded : OpInterface<"Sharded"> {
  let cppNamespace = "::mega::tfm";
  let description = [{
    Which layouts an op may have on a mesh: how the dimensions of its operands
    and results belong together, and in what it is linear. One notation for all
    ops, read by one check (runtime/plan/ShardingRule.h).
  }];
  let methods = [
    InterfaceMethod<[{
        The rule, with an entry for every operand and result, in order.
      }],
      "::mega::ShardingRule", "getShardingRule", (ins)>
  ];
}

def Randomized : OpInterface<"Randomized"> {
  let cppNamespace = "::mega::tfm";
  let description = [{
    An op that draws random numbers when training. Its numbers are keyed by
    the block's name and its own, so that clones and recomputation draw the
    same ones.
  }];
  let methods = [
    InterfaceMethod<[{
        Its name, unique in a block; null if it draws none (attention without
        dropout).
      }],
      "::mlir::StringAttr", "getRandomName", (ins)>,
    InterfaceMethod<"Sets the key attribute, see randomKey.",
      "void", "assignKey", (ins "::llvm::StringRef":$block)>,
    InterfaceMethod<[{
        Becomes what it is in eval, drawing nothing; may erase the op.
      }],
      "void", "makeDeterministic", (ins)>
  ];
}

def IndexesByIds : OpInterface<"IndexesByIds"> {
  let cppNamespace = "::mega::tfm";
  let description = [{
    An op that takes ids as row numbers of a table. The data loader checks the
    ids of a batch against the smallest of these tables.
  }];
  let methods = [
    InterfaceMethod<"The ids; null if the op counts rows itself.",
      "::mlir::Value", "getIndexIds", (ins)>,
    InterfaceMethod<"Rows of the table: ids are below it.",
      "int64_t", "getIndexLimit", (ins)>
  ];
}

def LowerToExec : OpInterface<"LowerToExec"> {
  let cppNamespace = "::mega::tfm";
  let description = [{
    How an op becomes kernel launches. It states launches over its operands and
    results and where a result must lie; the pass of the same name chooses
    buffers.
  }];
  let methods = [
    InterfaceMethod<"States the launches.",
      "::llvm::LogicalResult", "lowerToExec",
      (ins "::mega::tfm::ExecContext &":$context)>
  ];
}

#endif
