//===- Buffers.cpp - Fill, copy, add --------------------------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

#include <cassert>
#include <cstring>

namespace mega {
namespace {
/// target += source by runs, whatever the two element types.
template <typename From, typename To>
void accumulateAs(ThreadPool &pool, const View &source, const View &target) {
  forRows(pool, source.rows(), source.rowSize(), [&](int64_t row) {
    const From *from = source.row<From>(row);
    To *to = target.row<To>(row);
    for (int64_t i = 0; i < source.rowSize(); ++i) {
      to[i] += static_cast<To>(from[i]);
    }
  });
}
} // namespace

void cpu::zero(const KernelContext &ctx, const KernelArguments &args) {
  const View &target = args[0];
  const int64_t bytes = target.elements() * byteSize(target.type);
  constexpr int64_t kRun = kTaskElements * 4;
  ctx.pool.parallelFor(ceilDiv(bytes, kRun), [&](int64_t task, auto) {
    std::memset(target.data + task * kRun, 0,
                static_cast<size_t>(std::min(kRun, bytes - task * kRun)));
  });
}

void cpu::copy(const KernelContext &ctx, const KernelArguments &args) {
  const View &source = args[0], &target = args[1];
  const int64_t element = byteSize(source.type);
  forPieces(
      ctx.pool, args.operands, [&](int64_t row, int64_t column, int64_t count) {
        const int64_t from = row * source.rowStride + column;
        const int64_t to = row * target.rowStride + column;
        std::memmove(target.data + to * element, source.data + from * element,
                     static_cast<size_t>(count * element));
      });
}

void cpu::cast(const KernelContext &ctx, const KernelArguments &args) {
  assert(args[0].type == args[1].type && "cast: bf16 is not implemented yet");
  copy(ctx, args);
}

void cpu::accumulate(const KernelContext &ctx, const KernelArguments &args) {
  const View &source = args[0], &target = args[1];
  if (source.type == DataType::F32 && target.type == DataType::F32) {
    forPieces(ctx.pool, args.operands,
              [&](int64_t row, int64_t column, int64_t count) {
                float *to = at(target, row, column);
                rows::add(to, at(source, row, column), to, count);
              });
  } else if (source.type == DataType::F32 && target.type == DataType::F64) {
    accumulateAs<float, double>(ctx.pool, source, target);
  } else if (source.type == DataType::F64 && target.type == DataType::F64) {
    accumulateAs<double, double>(ctx.pool, source, target);
  } else {
    assert(false && "accumulate: no such pair of element types yet");
  }
}

} // namespace mega
