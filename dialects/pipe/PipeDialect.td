//===- PipeDialect.td - Stages, programs, schedules -----------------------===//
#ifndef MEGA_DIALECTS_PIPE_PIPEDIALECT
#define MEGA_DIALECTS_PIPE_PIPEDIALECT

include "mlir/IR/OpBase.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::mega::pipe";
  let summary = "What a stage runs, and in which order.";
  let description = [{
    A program is the body of one action: calls of functions on the values of
    one micro-batch. A schedule lists the actions of one stage in the order it
    issues them, each with its micro-batch and the slot of saved frames.

    A pipeline is not compiled: it states what all stages do, and when they wait
    for each other, for `mega-opt --mega-verify-schedule` to prove.
  }];
}

#endif
