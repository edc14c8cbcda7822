//===- Pipe.h - The pipe dialect --------------------------------*- C++ -*-===//
#ifndef MEGA_DIALECTS_PIPE_PIPE_H
#define MEGA_DIALECTS_PIPE_PIPE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/pipe/PipeDialect.h.inc"
#include "dialects/pipe/PipeEnums.h.inc"

#define GET_OP_CLASSES
#include "dialects/pipe/PipeOps.h.inc"

#endif // MEGA_DIALECTS_PIPE_PIPE_H
