//===- Embedding.cpp - Token and position embeddings ----------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

#include <cstring>

namespace mega {
void cpu::embedding(const KernelContext &ctx, const KernelArguments &args) {
  const View &table = args[1], &out = args[2];
  const int32_t *ids = args[0].as<int32_t>();
  withElement(out.type, [&]<typename T>(T) {
    forRows(ctx.pool, out.rows(), out.rowSize(), [&](int64_t row) {
      std::memcpy(out.row<T>(row), table.row<T>(ids[row]),
                  static_cast<size_t>(out.rowSize()) * sizeof(T));
    });
  });
}

void cpu::embeddingGrad(const KernelContext &ctx, const KernelArguments &args) {
  const View &gradOut = args[1], &gradTable = args[2];
  const int32_t *ids = args[0].as<int32_t>();
  withElement(gradOut.type, [&]<typename T>(T) {
    // A token may occur twice, so tasks own columns and not rows.
    forColumns(ctx.pool, gradOut.rowSize(), [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < gradOut.rows(); ++row) {
        rows::accumulate(at<T>(gradOut, row, begin),
                         at<float>(gradTable, ids[row], begin), end - begin);
      }
    });
  });
}

void cpu::addPositions(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &table = args[1], &out = args[2];
  withElement(x.type, [&]<typename T>(T) {
    forRows(ctx.pool, x.rows(), x.rowSize(), [&](int64_t row) {
      rows::add(x.row<T>(row), table.row<T>(row % x.dims[1]), out.row<T>(row),
                x.rowSize());
    });
  });
}

void cpu::positionsGrad(const KernelContext &ctx, const KernelArguments &args) {
  const View &gradOut = args[0], &gradTable = args[1];
  const int64_t batch = gradOut.dims[0], sequence = gradOut.dims[1];
  withElement(gradOut.type, [&]<typename T>(T) {
    forRows(ctx.pool, sequence, batch * gradOut.rowSize(), [&](int64_t s) {
      for (int64_t b = 0; b < batch; ++b) {
        rows::accumulate(gradOut.row<T>(b * sequence + s),
                         gradTable.row<float>(s), gradOut.rowSize());
      }
    });
  });
}

} // namespace mega
