//===- ExecTypes.td - !exec.buf -------------------------------------------===//
#ifndef MEGA_DIALECTS_EXEC_EXECTYPES
#define MEGA_DIALECTS_EXEC_EXECTYPES

include "dialects/exec/ExecDialect.td"

def Exec_BufferType : TypeDef<Exec_Dialect, "Buffer"> {
  let mnemonic = "buf";
  let summary = "A buffer: element type, local shape, row stride, layout";
  let description = [{
    Rows and strides are defined in `runtime/plan/Shape.h`. The stride (in
    elements) is written when rows are not contiguous, as for q, k and v, which
    are column slices of one GEMM's output. The layout is kept so that the plan
    can be checked against the calculus.

    **Constraints**
    - (B1) at most four static dimensions.
    - (B2) the stride is at least the row.

    ```mlir
    %q = exec.alloc scratch : !exec.buf<4x32x64xf32 stride 192>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    "int64_t":$rowStride,
    "::mega::dist::LayoutAttr":$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The contiguous buffer of a tensor type, all axes of size 1.
    static BufferType get(::mlir::RankedTensorType tensor);
    /// The same facts as a plain value.
    ::mega::BufferType plain() const;
    /// Bytes from the first to one past the last element.
    int64_t bytes() const { return plain().extentBytes(); }
  }];
}

#endif
