//===- Reference.h - Every kernel in double precision -----------*- C++ -*-===//
//
// The kernels of runtime/plan/Kernels.h as plain loops over dense row-major
// arrays of double: what the devices are compared with. Gradients are written
// by hand as the kernels define them, and ReferenceTest checks each against
// central differences of its forward function.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TEST_RUNTIME_REFERENCE_REFERENCE_H
#define MEGA_TEST_RUNTIME_REFERENCE_REFERENCE_H

#include "runtime/core/Kernel.h"
#include "runtime/plan/Philox.h"
#include "runtime/plan/RopeFrequencies.h"

#include <cstdint>
#include <vector>

namespace mega::reference {

using Values = std::vector<double>;

// Linear.cpp
struct GemmShape {
  int64_t m, n, k;
  bool transposeA, transposeB;
};
Values gemm(const GemmShape &shape, const Values &a, const Values &b);
/// Rows of `table` [?, hidden], the piece from `firstRow` on; else 0.
Values embedding(const std::vector<int> &ids, const Values &table,
                 int64_t hidden, int64_t firstRow = 0);
Values embeddingGrad(const std::vector<int> &ids, const Values &gradOut,
                     int64_t tableRows, int64_t hidden, int64_t firstRow = 0);
/// x [rows, n] + bias, and the sums of the columns of x.
Values addBias(const Values &x, const Values &bias);
Values columnSums(const Values &x, int64_t columns);
/// x [B, S, hidden] + table[first + s].
Values addPositions(const Values &x, const Values &table, int64_t sequence,
                    int64_t hidden, int64_t first = 0);
Values positionsGrad(const Values &gradOut, int64_t sequence, int64_t hidden,
                     int64_t tableRows, int64_t first = 0);

// Norms.cpp: over groups of gamma.size() elements.
struct Norm {
  Values y, mean, rstd;
};
struct NormGrad {
  Values x, gamma, beta;
};
Norm layerNorm(const Values &x, const Values &gamma, const Values &beta,
               double epsilon);
NormGrad layerNormGrad(const Values &gradY, const Values &x,
                       const Values &gamma, double epsilon);
Norm rmsNorm(const Values &x, const Values &gamma, double epsilon,
             double offset);
NormGrad rmsNormGrad(const Values &gradY, const Values &x, const Values &gamma,
                     double epsilon, double offset);

// Activations.cpp: one element.
double gelu(GeluKind kind, double x);
double geluGrad(GeluKind kind, double x);
double silu(double x);
double siluGrad(double x);
double gate(GateKind kind, double x);
double gateGrad(GateKind kind, double x);
/// Whether dropout keeps the element.
bool keepsActivation(uint64_t key, double p, int64_t sample, int64_t position,
                     int64_t feature);
bool keepsAttention(uint64_t key, double p, int64_t sample, int64_t head,
                    int64_t query, int64_t keyIndex);

// Attention.cpp
/// Of the rows of all samples; empty: a row is its position, all are of one
/// segment.
struct AttentionPlaces {
  std::vector<int> positions, segments;
};
struct AttentionShape {
  int64_t batch, sequence, heads, kvHeads, dim;
  bool causal;
  int64_t window;
  double scale;
  double dropout = 0;
  double softcap = 0;
  uint64_t dropoutKey = 0;
  int64_t firstSample = 0;
  int64_t firstHead = 0;
  /// 0: as many as queries.
  int64_t keys = 0;
  AttentionPlaces queryPlaces = {}, keyPlaces = {};

  int64_t keyRows() const { return keys == 0 ? sequence : keys; }
  bool isPacked() const { return !keyPlaces.positions.empty(); }
  bool sees(int64_t b, int64_t query, int64_t key) const {
    if (isPacked()) {
      const size_t i = b * sequence + query, j = b * keyRows() + key;
      if (queryPlaces.segments[i] != keyPlaces.segments[j]) {
        return false;
      }
      query = queryPlaces.positions[i];
      key = keyPlaces.positions[j];
    }
    return (!causal || key <= query) && (window == 0 || query - window < key);
  }
  /// What dropout counts: places in the row.
  int64_t queryPlace(int64_t b, int64_t query) const {
    const size_t i = b * sequence + query;
    return isPacked()
               ? int64_t{queryPlaces.positions[i]} + queryPlaces.segments[i]
               : query;
  }
  int64_t keyPlace(int64_t b, int64_t key) const {
    const size_t j = b * keyRows() + key;
    return isPacked() ? int64_t{keyPlaces.positions[j]} + keyPlaces.segments[j]
                      : key;
  }
};
struct Attention {
  Values out, lse;
};
struct AttentionGrad {
  Values q, k, v;
};
Attention attention(const AttentionShape &shape, const Values &q,
                    const Values &k, const Values &v);
/// `out` is that of the forward, possibly rounded: the kernel reads it.
AttentionGrad attentionGrad(const AttentionShape &shape, const Values &gradOut,
                            const Values &q, const Values &k, const Values &v,
                            const Values &out);
/// [sequence, dim]: cosines, then sines, times the attention factor.
Values ropeTable(int64_t sequence, int64_t dim, double base,
                 const RopeScaling &scaling = {});
Values rope(const Values &x, const Values &table, int64_t sequence,
            int64_t heads, int64_t dim, bool inverse);
/// With the position of each row.
Values rope(const Values &x, const Values &table,
            const std::vector<int> &positions, int64_t heads, int64_t dim,
            bool inverse);

// Head.cpp
struct HeadShape {
  int64_t tokens, hidden, vocabulary;
  int ignore;
  int64_t firstRow;
  double softcap = 0;
  /// Of the whole: what `vocabulary` rows from firstRow on go beyond is
  /// padding. 0: nothing does.
  int64_t rows = 0;

  int64_t wholeRows() const { return rows == 0 ? firstRow + vocabulary : rows; }
  bool isPadding(int64_t row) const { return firstRow + row >= wholeRows(); }
};
struct HeadStats {
  Values max, sum, target;
};
HeadStats headStats(const HeadShape &shape, const Values &x, const Values &w,
                    const std::vector<int> &labels);
/// The sum of the cross entropies of the labels other than `ignore`.
double headLoss(const HeadShape &shape, const HeadStats &stats,
                const std::vector<int> &labels);
struct HeadGrad {
  Values x, w;
};
/// Of gradSum * sum + gradTarget * target, with max held constant: the loss
/// does not depend on it.
HeadGrad headStatsGrad(const HeadShape &shape, const Values &x, const Values &w,
                       const std::vector<int> &labels, const Values &max,
                       const Values &gradSum, const Values &gradTarget);

// Optimizer.cpp
struct AdamWState {
  double weight, moment, variance;
};
AdamWState adamW(AdamWState state, double grad, double scale, bool decay,
                 const StepScalars &scalars);

} // namespace mega::reference

#endif // MEGA_TEST_RUNTIME_REFERENCE_REFERENCE_H
