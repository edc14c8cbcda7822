//===- Shape.h - Buffer types: element type, shape, row stride --*- C++ -*-===//
//
// A buffer is a matrix of *rows*. The leading min(2, rank - 1) dimensions
// count rows, the others form one contiguous row:
//
//   [batch, seq, hidden]         batch*seq rows of hidden elements
//   [batch, seq, heads, dim]     batch*seq rows of heads*dim elements
//   [out, in]  (a weight)        out rows of in elements
//   [n], []                      one row
//
// `rowStride` is the distance in elements between the starts of two
// neighbouring rows. It exceeds the row when the buffer is a column slice of a
// wider one: q, k and v are slices of the output of a single GEMM.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_SHAPE_H
#define MEGA_RUNTIME_PLAN_SHAPE_H

#include "runtime/plan/DataType.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace mega {

struct BufferType {
  static constexpr int kMaxRank = 4;

  DataType type = DataType::F32;
  int rank = 0;
  std::array<int64_t, kMaxRank> dims = {1, 1, 1, 1};
  /// In elements; at least rowSize().
  int64_t rowStride = 1;

  BufferType() = default;
  /// A contiguous buffer.
  BufferType(DataType type, std::initializer_list<int64_t> shape)
      : type(type), rank(static_cast<int>(shape.size())) {
    int i = 0;
    for (int64_t extent : shape) {
      dims[i++] = extent;
    }
    rowStride = rowSize();
  }

  int rowDims() const { return rank <= 1 ? 0 : rank == 2 ? 1 : 2; }
  /// Number of rows.
  int64_t rows() const {
    int64_t n = 1;
    for (int i = 0; i < rowDims(); ++i) {
      n *= dims[i];
    }
    return n;
  }
  /// Elements in one row.
  int64_t rowSize() const {
    int64_t n = 1;
    for (int i = rowDims(); i < rank; ++i) {
      n *= dims[i];
    }
    return n;
  }
  int64_t elements() const { return rows() * rowSize(); }
  bool isContiguous() const { return rowStride == rowSize() || rows() == 1; }
  /// Bytes from the first to one past the last element.
  int64_t extentBytes() const {
    return rows() == 0
               ? 0
               : ((rows() - 1) * rowStride + rowSize()) * byteSize(type);
  }

  friend bool operator==(const BufferType &, const BufferType &) = default;
};

/// `4x32x64xf32 stride 96`, as in the textual form of `!exec.buf`.
std::string toString(const BufferType &type);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_SHAPE_H
