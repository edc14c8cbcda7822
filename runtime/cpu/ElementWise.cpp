//===- ElementWise.cpp - Sums and activations -----------------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

namespace mega {
namespace {
/// body(elements, count) for pieces that cover the operands, all of one shape
/// and element type T; elements(i) is where the piece of operand i starts.
template <typename Body>
void forTypedPieces(const KernelContext &ctx, const KernelArguments &args,
                    Body &&body) {
  withElement(args[0].type, [&]<typename T>(T) {
    forPieces(ctx.pool, args.operands,
              [&](int64_t row, int64_t column, int64_t count) {
                body([&](int i) { return at<T>(args[i], row, column); }, count);
              });
  });
}
} // namespace

void cpu::add(const KernelContext &ctx, const KernelArguments &args) {
  forTypedPieces(ctx, args,
                 [](auto x, int64_t n) { rows::add(x(0), x(1), x(2), n); });
}

void cpu::scale(const KernelContext &ctx, const KernelArguments &args) {
  const float factor = static_cast<float>(args.floats[0]);
  forTypedPieces(ctx, args, [&](auto x, int64_t n) {
    rows::scale(factor, x(0), x(1), n);
  });
}

void cpu::gelu(const KernelContext &ctx, const KernelArguments &args) {
  const auto kind = static_cast<GeluKind>(args.integers[0]);
  forTypedPieces(ctx, args,
                 [&](auto x, int64_t n) { rows::gelu(kind, x(0), x(1), n); });
}

void cpu::geluGrad(const KernelContext &ctx, const KernelArguments &args) {
  const auto kind = static_cast<GeluKind>(args.integers[0]);
  forTypedPieces(ctx, args, [&](auto x, int64_t n) {
    rows::geluGrad(kind, x(0), x(1), x(2), n);
  });
}

void cpu::silu(const KernelContext &ctx, const KernelArguments &args) {
  forTypedPieces(ctx, args,
                 [](auto x, int64_t n) { rows::silu(x(0), x(1), n); });
}

void cpu::siluGrad(const KernelContext &ctx, const KernelArguments &args) {
  forTypedPieces(ctx, args, [](auto x, int64_t n) {
    rows::siluGrad(x(0), x(1), x(2), n);
  });
}

void cpu::gated(const KernelContext &ctx, const KernelArguments &args) {
  const auto kind = static_cast<GateKind>(args.integers[0]);
  forTypedPieces(ctx, args, [&](auto x, int64_t n) {
    rows::gated(kind, x(0), x(1), x(2), n);
  });
}

void cpu::gatedGrad(const KernelContext &ctx, const KernelArguments &args) {
  const auto kind = static_cast<GateKind>(args.integers[0]);
  forTypedPieces(ctx, args, [&](auto x, int64_t n) {
    rows::gatedGrad(kind, x(0), x(1), x(2), x(3), x(4), n);
  });
}

} // namespace mega
