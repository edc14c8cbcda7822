//===- Exec.h - The exec dialect --------------------------------*- C++ -*-===//
#ifndef MEGA_DIALECTS_EXEC_EXEC_H
#define MEGA_DIALECTS_EXEC_EXEC_H

#include "dialects/dist/Dist.h"
#include "runtime/plan/Kernels.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/exec/ExecDialect.h.inc"
#include "dialects/exec/ExecEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/exec/ExecTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/exec/ExecOps.h.inc"

#endif // MEGA_DIALECTS_EXEC_EXEC_H
