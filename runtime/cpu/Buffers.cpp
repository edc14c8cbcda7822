//===- Buffers.cpp - Fill, copy, add --------------------------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

#include <cstring>

namespace mega {
namespace {
/// target += source by runs, whatever the two element types.
template <typename From, typename To>
void accumulateAs(ThreadPool &pool, const View &source, const View &target) {
  // bf16 adds as f32.
  using Sum = decltype(From() + To());
  forRows(pool, source.rows(), source.rowSize(), [&](int64_t row) {
    const From *from = source.row<From>(row);
    To *to = target.row<To>(row);
    for (int64_t i = 0; i < source.rowSize(); ++i) {
      const Sum sum = static_cast<Sum>(to[i]) + static_cast<Sum>(from[i]);
      to[i] = static_cast<To>(sum);
    }
  });
}

/// body(T()) with the C++ type of any float type.
template <typename Body> void withFloat(DataType type, Body &&body) {
  type == DataType::F64 ? body(double()) : withElement(type, body);
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
  const View &source = args[0], &target = args[1];
  if (source.type == target.type) {
    return copy(ctx, args);
  }
  forPieces(ctx.pool, args.operands,
            [&](int64_t row, int64_t column, int64_t count) {
              if (source.type == DataType::BF16) {
                rows::widen(at<BFloat16>(source, row, column),
                            at<float>(target, row, column), count);
              } else {
                rows::narrow(at<float>(source, row, column),
                             at<BFloat16>(target, row, column), count);
              }
            });
}

void cpu::accumulate(const KernelContext &ctx, const KernelArguments &args) {
  const View &source = args[0], &target = args[1];
  if (target.type == DataType::F32 && source.type != DataType::F64) {
    withElement(source.type, [&]<typename T>(T) {
      forPieces(ctx.pool, args.operands,
                [&](int64_t row, int64_t column, int64_t count) {
                  rows::accumulate(at<T>(source, row, column),
                                   at<float>(target, row, column), count);
                });
    });
    return;
  }
  withFloat(source.type, [&]<typename From>(From) {
    withFloat(target.type, [&]<typename To>(To) {
      accumulateAs<From, To>(ctx.pool, source, target);
    });
  });
}

} // namespace mega
