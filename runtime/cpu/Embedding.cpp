//===- Embedding.cpp - Token and position embeddings ----------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

#include <algorithm>
#include <cstring>

namespace mega {
namespace {
/// Rows of a whole table that are in this piece of it.
struct Piece {
  int64_t first, rows;

  Piece(const KernelArguments &args, const View &table)
      : first(args.integers[0]),
        rows(std::min(table.rows(), args.integers[1] - first)) {}
  /// The row for `id`, or -1.
  int64_t rowOf(int32_t id) const {
    const int64_t row = id - first;
    return row >= 0 && row < rows ? row : -1;
  }
};
} // namespace

void cpu::embedding(const KernelContext &ctx, const KernelArguments &args) {
  const View &table = args[1], &out = args[2];
  const int32_t *ids = args[0].as<int32_t>();
  const Piece piece(args, table);
  withElement(out.type, [&]<typename T>(T) {
    const size_t bytes = static_cast<size_t>(out.rowSize()) * sizeof(T);
    forRows(ctx.pool, out.rows(), out.rowSize(), [&](int64_t row) {
      if (const int64_t from = piece.rowOf(ids[row]); from >= 0) {
        std::memcpy(out.row<T>(row), table.row<T>(from), bytes);
      } else {
        std::fill_n(out.row<T>(row), out.rowSize(), T{});
      }
    });
  });
}

/// Rows of operand 1 are added to rows rowOf(id) of operand 2, in order. A row
/// may occur twice, so tasks own columns and not rows.
template <typename RowOf>
static void addToRows(const KernelContext &ctx, const KernelArguments &args,
                      RowOf rowOf) {
  const View &gradOut = args[1], &gradTable = args[2];
  const int32_t *ids = args[0].as<int32_t>();
  withElement(gradOut.type, [&]<typename T>(T) {
    forColumns(ctx.pool, gradOut.rowSize(), [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < gradOut.rows(); ++row) {
        if (const int64_t to = rowOf(ids[row]); to >= 0) {
          rows::accumulate(at<T>(gradOut, row, begin),
                           at<float>(gradTable, to, begin), end - begin);
        }
      }
    });
  });
}

void cpu::embeddingGrad(const KernelContext &ctx, const KernelArguments &args) {
  addToRows(ctx, args, [piece = Piece(args, args[2])](int32_t id) {
    return piece.rowOf(id);
  });
}

void cpu::positionsGradAt(const KernelContext &ctx,
                          const KernelArguments &args) {
  addToRows(ctx, args, [](int32_t position) { return int64_t{position}; });
}

/// The table's row positionOf(row) is added to each row of x.
template <typename Position>
static void addRows(const KernelContext &ctx, const KernelArguments &args,
                    const View &out, Position positionOf) {
  const View &x = args[0], &table = args[1];
  withElement(x.type, [&]<typename T>(T) {
    forRows(ctx.pool, x.rows(), x.rowSize(), [&](int64_t row) {
      rows::add(x.row<T>(row), table.row<T>(positionOf(row)), out.row<T>(row),
                x.rowSize());
    });
  });
}

void cpu::addPositions(const KernelContext &ctx, const KernelArguments &args) {
  addRows(ctx, args, args[2],
          [first = args.integers[0], sequence = args[0].dims[1]](int64_t row) {
            return first + row % sequence;
          });
}

void cpu::addPositionsAt(const KernelContext &ctx,
                         const KernelArguments &args) {
  addRows(ctx, args, args[3], [positions = args[2].as<int32_t>()](int64_t row) {
    return positions[row];
  });
}

void cpu::positionsGrad(const KernelContext &ctx, const KernelArguments &args) {
  const View &gradOut = args[0], &gradTable = args[1];
  const int64_t batch = gradOut.dims[0], sequence = gradOut.dims[1];
  const int64_t first = args.integers[0];
  withElement(gradOut.type, [&]<typename T>(T) {
    forRows(ctx.pool, sequence, batch * gradOut.rowSize(), [&](int64_t s) {
      for (int64_t b = 0; b < batch; ++b) {
        rows::accumulate(gradOut.row<T>(b * sequence + s),
                         gradTable.row<float>(first + s), gradOut.rowSize());
      }
    });
  });
}

} // namespace mega
