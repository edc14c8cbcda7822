//===- Optimizer.cpp - Gradient norm, clipping, AdamW ---------------------===//
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

#include <cmath>

namespace mega {
void cpu::sumSquares(const KernelContext &ctx, const KernelArguments &args) {
  const float *x = args[0].as<float>();
  const int64_t elements = args[0].elements();
  constexpr int64_t kBlock = int64_t{1} << 16;
  constexpr int64_t kBlocksAtOnce = 256;
  const int64_t blocks = ceilDiv(elements, kBlock);
  double total = args.integers[0] ? *args[1].as<double>() : 0.0;
  // One partial sum for each block, added in order.
  for (int64_t first = 0; first < blocks; first += kBlocksAtOnce) {
    double partial[kBlocksAtOnce];
    const int64_t count = std::min(kBlocksAtOnce, blocks - first);
    ctx.pool.parallelFor(count, [&](int64_t task, auto) {
      const int64_t begin = (first + task) * kBlock;
      partial[task] =
          rows::sumSquares(x + begin, std::min(kBlock, elements - begin));
    });
    for (int64_t i = 0; i < count; ++i) {
      total += partial[i];
    }
  }
  *args[1].as<double>() = total;
}

void cpu::clipScale(const KernelContext &ctx, const KernelArguments &args) {
  const double clip = ctx.scalars.clip;
  const double norm = std::sqrt(*args[0].as<double>());
  *args[1].as<float>() =
      clip == 0 ? 1.0f
                : static_cast<float>(std::min(1.0, clip / (norm + 1e-6)));
}

void cpu::adamW(const KernelContext &ctx, const KernelArguments &args) {
  const StepScalars &s = ctx.scalars;
  const auto correction = [&](float beta) {
    return static_cast<float>(1 / (1 - std::pow(static_cast<double>(beta),
                                                static_cast<double>(s.step))));
  };
  const rows::AdamWStep step = {.lr = s.lr,
                                .beta1 = s.beta1,
                                .beta2 = s.beta2,
                                .epsilon = s.epsilon,
                                .weightDecay =
                                    args.integers[0] ? s.weightDecay : 0.0f,
                                .correction1 = correction(s.beta1),
                                .correction2 = correction(s.beta2),
                                .gradScale = *args[4].as<float>()};
  forPieces(ctx.pool, args.operands.first(4),
            [&](int64_t row, int64_t column, int64_t count) {
              rows::adamW(step, at<float>(args[0], row, column),
                          at<float>(args[1], row, column),
                          at<float>(args[2], row, column),
                          at<float>(args[3], row, column), count);
            });
}

} // namespace mega
