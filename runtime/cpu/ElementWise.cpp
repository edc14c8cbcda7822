//===- ElementWise.cpp - Sums and activations -----------------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

namespace mega {
void cpu::add(const KernelContext &ctx, const KernelArguments &args) {
  forPieces(ctx.pool, args.operands,
            [&](int64_t row, int64_t column, int64_t count) {
              rows::add(at(args[0], row, column), at(args[1], row, column),
                        at(args[2], row, column), count);
            });
}

void cpu::scale(const KernelContext &ctx, const KernelArguments &args) {
  const float factor = static_cast<float>(args.floats[0]);
  forPieces(ctx.pool, args.operands,
            [&](int64_t row, int64_t column, int64_t count) {
              rows::scale(factor, at(args[0], row, column),
                          at(args[1], row, column), count);
            });
}

void cpu::gelu(const KernelContext &ctx, const KernelArguments &args) {
  forPieces(
      ctx.pool, args.operands, [&](int64_t row, int64_t column, int64_t count) {
        rows::gelu(static_cast<GeluKind>(args.integers[0]),
                   at(args[0], row, column), at(args[1], row, column), count);
      });
}

void cpu::geluGrad(const KernelContext &ctx, const KernelArguments &args) {
  forPieces(ctx.pool, args.operands,
            [&](int64_t row, int64_t column, int64_t count) {
              rows::geluGrad(static_cast<GeluKind>(args.integers[0]),
                             at(args[0], row, column), at(args[1], row, column),
                             at(args[2], row, column), count);
            });
}

void cpu::silu(const KernelContext &ctx, const KernelArguments &args) {
  forPieces(
      ctx.pool, args.operands, [&](int64_t row, int64_t column, int64_t count) {
        rows::silu(at(args[0], row, column), at(args[1], row, column), count);
      });
}

void cpu::siluGrad(const KernelContext &ctx, const KernelArguments &args) {
  forPieces(ctx.pool, args.operands,
            [&](int64_t row, int64_t column, int64_t count) {
              rows::siluGrad(at(args[0], row, column), at(args[1], row, column),
                             at(args[2], row, column), count);
            });
}

void cpu::gated(const KernelContext &ctx, const KernelArguments &args) {
  forPieces(ctx.pool, args.operands,
            [&](int64_t row, int64_t column, int64_t count) {
              rows::gated(static_cast<GateKind>(args.integers[0]),
                          at(args[0], row, column), at(args[1], row, column),
                          at(args[2], row, column), count);
            });
}

void cpu::gatedGrad(const KernelContext &ctx, const KernelArguments &args) {
  forPieces(
      ctx.pool, args.operands, [&](int64_t row, int64_t column, int64_t count) {
        rows::gatedGrad(static_cast<GateKind>(args.integers[0]),
                        at(args[0], row, column), at(args[1], row, column),
                        at(args[2], row, column), at(args[3], row, column),
                        at(args[4], row, column), count);
      });
}

} // namespace mega
