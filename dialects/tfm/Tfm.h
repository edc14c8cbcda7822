//===- Tfm.h - The tfm dialect ----------------------------------*- C++ -*-===//
#ifndef MEGA_DIALECTS_TFM_TFM_H
#define MEGA_DIALECTS_TFM_TFM_H

#include "dialects/dist/Dist.h"
#include "dialects/tfm/Interfaces.h"
#include "dialects/tfm/TfmDialect.h.inc"
#include "dialects/tfm/TfmEnums.h.inc"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_ATTRDEF_CLASSES
#include "dialects/tfm/TfmAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/tfm/TfmOps.h.inc"

#endif // MEGA_DIALECTS_TFM_TFM_H
