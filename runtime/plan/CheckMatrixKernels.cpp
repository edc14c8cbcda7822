//===- CheckMatrixKernels.cpp - GEMM, embeddings, bias --------------------===//
#include "runtime/plan/KernelChecks.h"
#include "runtime/plan/KernelExpect.h"

namespace mega::checks {

Status gemm(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1}));
  if (s.operands[2].type != DataType::F32) {
    MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 2}));
  }
  for (int64_t flag : s.integers) {
    MEGA_RETURN_IF_ERROR(expectRange("flag", flag, 0, 1));
  }
  const auto [rowsA, colsA] =
      std::pair(s.operands[0].rows(), s.operands[0].rowSize());
  const auto [rowsB, colsB] =
      std::pair(s.operands[1].rows(), s.operands[1].rowSize());
  const int64_t m = s.integers[0] ? colsA : rowsA;
  const int64_t k = s.integers[0] ? rowsA : colsA;
  const int64_t kOfB = s.integers[1] ? colsB : rowsB;
  const int64_t n = s.integers[1] ? rowsB : colsB;
  if (k != kOfB) {
    return badInput("a contracts {} elements but b {}", k, kOfB);
  }
  if (s.operands[2].rows() != m || s.operands[2].rowSize() != n) {
    return badInput("c is {}, expected {} rows of {}", toString(s.operands[2]),
                    m, n);
  }
  return Status::ok();
}

/// ids, table, rows ("rows" has the token dimension); integers first_row, rows.
static Status embeddingShapes(Signature s, int ids, int table, int rows) {
  MEGA_RETURN_IF_ERROR(expectIds(s, ids, s.operands[rows].rows()));
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {table}));
  if (s.operands[table].rank != 2 ||
      s.operands[table].dims[1] != s.operands[rows].rowSize()) {
    return mismatch("the table", s.operands[table], "the rows",
                    s.operands[rows]);
  }
  MEGA_RETURN_IF_ERROR(expectStart(s, 0));
  return expectRange("rows", s.integers[1], 1, int64_t{1} << 40);
}

Status embedding(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {1, 2}));
  return embeddingShapes(s, 0, 1, 2);
}

Status embeddingGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {1}));
  MEGA_RETURN_IF_ERROR(expectF32(s, {2}));
  return embeddingShapes(s, 0, 2, 1);
}

/// Rows of the [positions, hidden] table are added to [B, S, hidden], or take
/// its sums.
static Status positionTable(Signature s, int activations, int rows) {
  MEGA_RETURN_IF_ERROR(expectContiguous(s, {rows}));
  const BufferType &x = s.operands[activations];
  const BufferType &table = s.operands[rows];
  return x.rank == 3 && table.rank == 2 && table.dims[1] == x.rowSize()
             ? Status::ok()
             : mismatch("the position table", table, "the activations", x);
}

/// Operands 0 and 1 so, from integer first_position on.
static Status positionShapes(Signature s) {
  MEGA_RETURN_IF_ERROR(positionTable(s, 0, 1));
  MEGA_RETURN_IF_ERROR(expectStart(s, 0));
  const BufferType &x = s.operands[0];
  const BufferType &table = s.operands[1];
  if (table.dims[0] < s.integers[0] + x.dims[1]) {
    return badInput("the position table is {}, but positions {} to {} are "
                    "added",
                    toString(table), s.integers[0],
                    s.integers[0] + x.dims[1] - 1);
  }
  return Status::ok();
}

Status addPositions(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1, 2}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 2}));
  return positionShapes(s);
}

Status positionsGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0}));
  MEGA_RETURN_IF_ERROR(expectF32(s, {1}));
  return positionShapes(s);
}

Status addPositionsAt(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 1, 3}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 3}));
  MEGA_RETURN_IF_ERROR(positionTable(s, 0, 1));
  return expectPlaces(s, 0, {2});
}

Status positionsGradAt(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {1}));
  MEGA_RETURN_IF_ERROR(expectF32(s, {2}));
  MEGA_RETURN_IF_ERROR(positionTable(s, 1, 2));
  return expectPlaces(s, 1, {0});
}

Status addBias(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 2}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 2}));
  return expectVector(s, 1, s.operands[0].rowSize());
}

Status biasGrad(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0}));
  return expectVector(s, 1, s.operands[0].rowSize());
}

Status biasGelu(Signature s) {
  MEGA_RETURN_IF_ERROR(expectOneType(s, {0, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectSameShape(s, {0, 2, 3}));
  MEGA_RETURN_IF_ERROR(expectVector(s, 1, s.operands[0].rowSize()));
  return expectRange("kind", s.integers[0], 0, 1);
}

} // namespace mega::checks
