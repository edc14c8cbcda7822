#include "test/runtime/reference/Reference.h"

namespace mega::reference {

Values gemm(const GemmShape &s, const Values &a, const Values &b) {
  Values c(s.m * s.n, 0.0);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      for (int64_t k = 0; k < s.k; ++k) {
        c[i * s.n + j] += a[s.transposeA ? k * s.m + i : i * s.k + k] *
                          b[s.transposeB ? j * s.k + k : k * s.n + j];
      }
    }
  }
  return c;
}

Values embedding(const std::vector<int> &ids, const Values &table,
                 int64_t hidden, int64_t firstRow) {
  const auto rows = static_cast<int64_t>(table.size()) / hidden;
  Values out;
  for (int id : ids) {
    const int64_t row = id - firstRow;
    for (int64_t i = 0; i < hidden; ++i) {
      out.push_back(row >= 0 && row < rows ? table[row * hidden + i] : 0.0);
    }
  }
  return out;
}

Values embeddingGrad(const std::vector<int> &ids, const Values &gradOut,
                     int64_t tableRows, int64_t hidden, int64_t firstRow) {
  Values grad(tableRows * hidden, 0.0);
  for (size_t t = 0; t < ids.size(); ++t) {
    const int64_t row = ids[t] - firstRow;
    for (int64_t i = 0; i < hidden && row >= 0 && row < tableRows; ++i) {
      grad[row * hidden + i] += gradOut[t * hidden + i];
    }
  }
  return grad;
}

Values addBias(const Values &x, const Values &bias) {
  Values y = x;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] += bias[i % bias.size()];
  }
  return y;
}

Values columnSums(const Values &x, int64_t columns) {
  Values sums(columns, 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    sums[i % columns] += x[i];
  }
  return sums;
}

Values addPositions(const Values &x, const Values &table, int64_t sequence,
                    int64_t hidden, int64_t first) {
  Values y = x;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] += table[first * hidden + i % (sequence * hidden)];
  }
  return y;
}

Values positionsGrad(const Values &gradOut, int64_t sequence, int64_t hidden,
                     int64_t tableRows, int64_t first) {
  Values grad = columnSums(gradOut, sequence * hidden);
  grad.insert(grad.begin(), first * hidden, 0.0);
  grad.resize(tableRows * hidden, 0.0);
  return grad;
}

} // namespace mega::reference
