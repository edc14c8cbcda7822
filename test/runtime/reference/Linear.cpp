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
                 int64_t hidden) {
  Values out;
  for (int id : ids) {
    out.insert(out.end(), table.begin() + id * hidden,
               table.begin() + (id + 1) * hidden);
  }
  return out;
}

Values embeddingGrad(const std::vector<int> &ids, const Values &gradOut,
                     int64_t tableRows, int64_t hidden) {
  Values grad(tableRows * hidden, 0.0);
  for (size_t t = 0; t < ids.size(); ++t) {
    for (int64_t i = 0; i < hidden; ++i) {
      grad[ids[t] * hidden + i] += gradOut[t * hidden + i];
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
                    int64_t hidden) {
  Values y = x;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] += table[i % (sequence * hidden)];
  }
  return y;
}

Values positionsGrad(const Values &gradOut, int64_t sequence, int64_t hidden,
                     int64_t tableRows) {
  Values grad = columnSums(gradOut, sequence * hidden);
  grad.resize(tableRows * hidden, 0.0);
  return grad;
}

} // namespace mega::reference
