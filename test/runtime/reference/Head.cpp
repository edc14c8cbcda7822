#include "test/runtime/reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mega::reference {
namespace {
Values logits(const HeadShape &s, const Values &x, const Values &w) {
  Values z = gemm({s.tokens, s.vocabulary, s.hidden, false, true}, x, w);
  for (double &value : z) {
    value = s.softcap == 0 ? value : s.softcap * std::tanh(value / s.softcap);
  }
  for (int64_t i = 0; i < s.tokens * s.vocabulary; ++i) {
    if (s.isPadding(i % s.vocabulary)) {
      z[i] = -std::numeric_limits<double>::infinity();
    }
  }
  return z;
}

/// The label's row of w, or -1.
int64_t labelRow(const HeadShape &s, int label) {
  const int64_t row = label - s.firstRow;
  return label != s.ignore && row >= 0 && row < s.vocabulary ? row : -1;
}
} // namespace

HeadStats headStats(const HeadShape &s, const Values &x, const Values &w,
                    const std::vector<int> &labels) {
  const Values z = logits(s, x, w);
  HeadStats stats;
  for (int64_t t = 0; t < s.tokens; ++t) {
    const double *row = &z[t * s.vocabulary];
    const double max = *std::max_element(row, row + s.vocabulary);
    double sum = 0;
    for (int64_t v = 0; v < s.vocabulary; ++v) {
      sum += s.isPadding(v) ? 0 : std::exp(row[v] - max);
    }
    const int64_t label = labelRow(s, labels[t]);
    stats.max.push_back(max);
    stats.sum.push_back(sum);
    stats.target.push_back(label < 0 ? 0.0 : row[label]);
  }
  return stats;
}

double headLoss(const HeadShape &s, const HeadStats &stats,
                const std::vector<int> &labels) {
  double loss = 0;
  for (int64_t t = 0; t < s.tokens; ++t) {
    if (labels[t] != s.ignore) {
      loss += std::log(stats.sum[t]) + stats.max[t] - stats.target[t];
    }
  }
  return loss;
}

HeadGrad headStatsGrad(const HeadShape &s, const Values &x, const Values &w,
                       const std::vector<int> &labels, const Values &max,
                       const Values &gradSum, const Values &gradTarget) {
  Values z = logits(s, x, w);
  for (int64_t t = 0; t < s.tokens; ++t) {
    double *row = &z[t * s.vocabulary];
    const int64_t label = labelRow(s, labels[t]);
    for (int64_t v = 0; v < s.vocabulary; ++v) {
      if (s.isPadding(v)) {
        row[v] = 0;
        continue;
      }
      const double tanh = s.softcap == 0 ? 0 : row[v] / s.softcap;
      row[v] = gradSum[t] * std::exp(row[v] - max[t]) +
               (v == label ? gradTarget[t] : 0);
      row[v] *= 1 - tanh * tanh;
    }
  }
  return {gemm({s.tokens, s.hidden, s.vocabulary, false, false}, z, w),
          gemm({s.vocabulary, s.hidden, s.tokens, true, false}, z, x)};
}

} // namespace mega::reference
