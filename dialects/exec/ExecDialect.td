//===- ExecDialect.td - The plan in IR form -------------------------------===//
#ifndef MEGA_DIALECTS_EXEC_EXECDIALECT
#define MEGA_DIALECTS_EXEC_EXECDIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::mega::exec";
  let summary = "Buffers and kernel launches: the plan as IR.";
  let description = [{
    What EmitPlan writes, one to one: functions that launch kernels of
    `runtime/plan/Kernels.h` over buffers. A buffer is named by the region it
    lies in (`scratch`, `saved`, a parameter, a gradient, ...); PlanMemory
    gives it an offset. Nothing here computes on values: order of launches is
    order of execution.
  }];
  let useDefaultTypePrinterParser = 1;
}

#endif
