//===- HeadStats.cpp - Softmax statistics of logits that never exist ------===//
#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/KernelList.h"
#include "runtime/cpu/Parallel.h"
#include "runtime/cpu/rows/Rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mega {
namespace {
/// Logits of tokens [token, token + tokens) and vocabulary rows [first, first
/// + columns), in scratch with rows of `columns`.
struct LogitTile {
  int64_t token, tokens, first, columns;
  float *logits;

  float *row(int64_t i) const { return logits + i * columns; }
  Matrix<float> matrix() const { return {logits, columns}; }
};

/// Rows of w that are no padding; may be 0.
int64_t logicalRows(const KernelArguments &args) {
  return std::clamp<int64_t>(args.integers[2] - args.integers[1], 0,
                             args[1].rows());
}

/// body(tile) for the tiles of x w^T over the first `rows` rows of w,
/// vocabulary innermost.
template <typename Body>
void forLogitTiles(ThreadPool &pool, const View &x, const View &w, int64_t rows,
                   const View &scratch, Body &&body) {
  const HeadTile cut = headTile(x.rows(), w.rows());
  for (int64_t token = 0; token < x.rows(); token += cut.tokens) {
    for (int64_t first = 0; first < rows; first += cut.columns) {
      const LogitTile tile = {token, std::min(cut.tokens, x.rows() - token),
                              first, std::min(cut.columns, rows - first),
                              scratch.as<float>()};
      gemm(pool, {tile.tokens, tile.columns, x.rowSize(), false, true},
           AnyMatrix(x, token), AnyMatrix(w, first), false, tile.matrix());
      body(tile);
    }
  }
}

/// The label's column in the tile, or -1.
int64_t labelColumn(const LogitTile &tile, int32_t label,
                    const KernelArguments &args) {
  const int64_t column = label - args.integers[1] - tile.first;
  const bool here =
      label != args.integers[0] && column >= 0 && column < tile.columns;
  return here ? column : -1;
}
} // namespace

void cpu::headStats(const KernelContext &ctx, const KernelArguments &args) {
  const int32_t *labels = args[2].as<int32_t>();
  float *max = args[3].as<float>(), *sum = args[4].as<float>();
  float *target = args[5].as<float>();
  const float softcap = static_cast<float>(args.floats[0]);
  const int64_t rows = logicalRows(args);
  if (rows == 0) {
    std::fill_n(max, args[0].rows(), -std::numeric_limits<float>::infinity());
    std::fill_n(sum, args[0].rows(), 0.0f);
    std::fill_n(target, args[0].rows(), 0.0f);
    return;
  }
  forLogitTiles(
      ctx.pool, args[0], args[1], rows, args[6], [&](const LogitTile &t) {
        forRows(ctx.pool, t.tokens, 4 * t.columns, [&](int64_t i) {
          const int64_t token = t.token + i;
          float *logits = t.row(i);
          if (softcap != 0) {
            rows::softcap(softcap, logits, t.columns);
          }
          const float best = rows::maximum(logits, t.columns);
          if (t.first == 0) {
            max[token] = best;
            sum[token] = rows::sumExp(best, logits, t.columns);
            target[token] = 0;
          } else {
            const float before = max[token], after = std::max(before, best);
            max[token] = after;
            sum[token] = sum[token] * std::exp(before - after) +
                         rows::sumExp(after, logits, t.columns);
          }
          if (const int64_t c = labelColumn(t, labels[token], args); c >= 0) {
            target[token] = logits[c];
          }
        });
      });
}

void cpu::headStatsGrad(const KernelContext &ctx, const KernelArguments &args) {
  const View &x = args[0], &w = args[1], &gradX = args[6], &gradW = args[7];
  const int32_t *labels = args[2].as<int32_t>();
  const float *max = args[3].as<float>(), *gradSum = args[4].as<float>();
  const float *gradTarget = args[5].as<float>();
  const float softcap = static_cast<float>(args.floats[0]);
  const int64_t hidden = x.rowSize();
  const bool narrow = gradX.type != DataType::F32;
  const int64_t rows = logicalRows(args);
  if (rows == 0) {
    withElement(gradX.type, [&]<typename T>(T) {
      forRows(ctx.pool, gradX.rows(), hidden, [&](int64_t token) {
        std::fill_n(gradX.row<T>(token), hidden, T{});
      });
    });
    return;
  }
  // Sums over all tiles of the vocabulary, to be rounded once.
  const Matrix<float> sums = {
      args[8].as<float>() + headScratch(x.rows(), w.rows()), hidden};
  forLogitTiles(ctx.pool, x, w, rows, args[8], [&](const LogitTile &t) {
    forRows(ctx.pool, t.tokens, 4 * t.columns, [&](int64_t i) {
      const int64_t token = t.token + i;
      float *logits = t.row(i);
      const int64_t c = labelColumn(t, labels[token], args);
      float atLabel = gradTarget[token];
      if (softcap == 0) {
        rows::scaledExp(gradSum[token], max[token], logits, t.columns);
      } else {
        if (c >= 0) {
          const float tanh = std::tanh(logits[c] / softcap);
          atLabel *= 1 - tanh * tanh;
        }
        rows::softcapExp(softcap, gradSum[token], max[token], logits,
                         t.columns);
      }
      if (c >= 0) {
        logits[c] += atLabel;
      }
    });
    gemm(ctx.pool, {t.tokens, hidden, t.columns}, t.matrix(),
         AnyMatrix(w, t.first), t.first != 0,
         narrow ? AnyMatrix(sums) : AnyMatrix(gradX, t.token));
    gemm(ctx.pool, {t.columns, hidden, t.tokens, true, false}, t.matrix(),
         AnyMatrix(x, t.token), true, AnyMatrix(gradW, t.first));
    if (narrow && t.first + t.columns == rows) {
      forRows(ctx.pool, t.tokens, hidden, [&](int64_t i) {
        rows::narrow(sums.data + i * hidden, gradX.row<BFloat16>(t.token + i),
                     hidden);
      });
    }
  });
}

} // namespace mega
