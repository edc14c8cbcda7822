#include "test/runtime/reference/Reference.h"

#include <cmath>
#include <limits>

namespace mega::reference {
namespace {
/// Query (b, row) of head h in a [batch, sequence, heads, dim] array.
int64_t queryAt(const AttentionShape &s, int64_t b, int64_t row, int64_t h) {
  return ((b * s.sequence + row) * s.heads + h) * s.dim;
}
int64_t keyAt(const AttentionShape &s, int64_t b, int64_t row, int64_t h) {
  return ((b * s.keyRows() + row) * s.kvHeads + h) * s.dim;
}

double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/// The probabilities of one query's row, without dropout, and the slopes of the
/// capped scores; returns the log-sum-exp. All zero if it sees no key.
double softmaxRow(const AttentionShape &s, const Values &q, const Values &k,
                  int64_t b, int64_t h, int64_t i, Values &p, Values &slope) {
  const int64_t kv = h / (s.heads / s.kvHeads);
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t j = 0; j < s.keyRows(); ++j) {
    p[j] =
        s.scale * dot(&q[queryAt(s, b, i, h)], &k[keyAt(s, b, j, kv)], s.dim);
    slope[j] = 1;
    if (s.softcap != 0) {
      const double tanh = std::tanh(p[j] / s.softcap);
      p[j] = s.softcap * tanh;
      slope[j] = 1 - tanh * tanh;
    }
    if (s.sees(b, i, j)) {
      max = std::max(max, p[j]);
    }
  }
  for (int64_t j = 0; j < s.keyRows(); ++j) {
    p[j] = s.sees(b, i, j) ? std::exp(p[j] - max) : 0.0;
    sum += p[j];
  }
  for (double &value : p) {
    value = sum == 0 ? 0 : value / sum;
  }
  return max + std::log(sum);
}

/// 1 / (1 - p) where the probability is kept, else 0.
double dropoutFactor(const AttentionShape &s, int64_t b, int64_t h, int64_t i,
                     int64_t j) {
  const bool keep =
      keepsAttention(s.dropoutKey, s.dropout, s.firstSample + b,
                     s.firstHead + h, s.queryPlace(b, i), s.keyPlace(b, j));
  return keep ? 1 / (1 - s.dropout) : 0.0;
}
} // namespace

Attention attention(const AttentionShape &s, const Values &q, const Values &k,
                    const Values &v) {
  Attention result{Values(q.size(), 0.0), {}};
  Values p(s.keyRows()), slope(s.keyRows());
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t kv = h / (s.heads / s.kvHeads);
      for (int64_t i = 0; i < s.sequence; ++i) {
        result.lse.push_back(softmaxRow(s, q, k, b, h, i, p, slope));
        for (int64_t j = 0; j < s.keyRows(); ++j) {
          for (int64_t d = 0; d < s.dim; ++d) {
            result.out[queryAt(s, b, i, h) + d] +=
                p[j] * dropoutFactor(s, b, h, i, j) * v[keyAt(s, b, j, kv) + d];
          }
        }
      }
    }
  }
  return result;
}

AttentionGrad attentionGrad(const AttentionShape &s, const Values &gradOut,
                            const Values &q, const Values &k, const Values &v,
                            const Values &out) {
  AttentionGrad grad{Values(q.size(), 0.0), Values(k.size(), 0.0),
                     Values(v.size(), 0.0)};
  Values p(s.keyRows()), slope(s.keyRows()), gradP(s.keyRows());
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      const int64_t kv = h / (s.heads / s.kvHeads);
      for (int64_t i = 0; i < s.sequence; ++i) {
        softmaxRow(s, q, k, b, h, i, p, slope);
        const int64_t row = queryAt(s, b, i, h);
        const double delta = dot(&gradOut[row], &out[row], s.dim);
        for (int64_t j = 0; j < s.keyRows(); ++j) {
          const int64_t key = keyAt(s, b, j, kv);
          const double factor = dropoutFactor(s, b, h, i, j);
          gradP[j] = factor * dot(&gradOut[row], &v[key], s.dim);
          for (int64_t d = 0; d < s.dim; ++d) {
            grad.v[key + d] += p[j] * factor * gradOut[row + d];
          }
        }
        for (int64_t j = 0; j < s.keyRows(); ++j) {
          const int64_t key = keyAt(s, b, j, kv);
          const double gradScore =
              p[j] * (gradP[j] - delta) * slope[j] * s.scale;
          for (int64_t d = 0; d < s.dim; ++d) {
            grad.q[row + d] += gradScore * k[key + d];
            grad.k[key + d] += gradScore * q[row + d];
          }
        }
      }
    }
  }
  return grad;
}

Values ropeTable(int64_t sequence, int64_t dim, double base,
                 const RopeScaling &scaling) {
  Values table(sequence * dim), frequencies(dim / 2);
  ropeFrequencies(scaling, base, dim, frequencies);
  for (int64_t s = 0; s < sequence; ++s) {
    for (int64_t i = 0; i < dim / 2; ++i) {
      const double angle = s * frequencies[i];
      table[s * dim + i] = scaling.attentionFactor * std::cos(angle);
      table[s * dim + dim / 2 + i] = scaling.attentionFactor * std::sin(angle);
    }
  }
  return table;
}

Values rope(const Values &x, const Values &table, int64_t sequence,
            int64_t heads, int64_t dim, bool inverse) {
  std::vector<int> positions(x.size() / (heads * dim));
  for (size_t row = 0; row < positions.size(); ++row) {
    positions[row] = static_cast<int>(row % sequence);
  }
  return rope(x, table, positions, heads, dim, inverse);
}

Values rope(const Values &x, const Values &table,
            const std::vector<int> &positions, int64_t heads, int64_t dim,
            bool inverse) {
  Values y(x.size());
  const int64_t half = dim / 2;
  for (size_t begin = 0; begin < x.size(); begin += dim) {
    const int64_t position = positions[begin / (heads * dim)];
    for (int64_t i = 0; i < half; ++i) {
      const double cos = table[position * dim + i];
      const double sin = table[position * dim + half + i] * (inverse ? -1 : 1);
      y[begin + i] = x[begin + i] * cos - x[begin + half + i] * sin;
      y[begin + half + i] = x[begin + half + i] * cos + x[begin + i] * sin;
    }
  }
  return y;
}

} // namespace mega::reference
