//===- SampleOrder.h - Which sample a row reads -----------------*- C++ -*-===//
//
// Sample i of a dataset is tokens [i*S, i*S + S] of its concatenated documents:
// S inputs and, one further, S labels, so neighbours overlap by one token.
//
//   tokens   0  1  2  3  4  5  6  7  8        S = 4: two samples
//   sample 0 x  x  x  x  y
//   sample 1             x  x  x  x  y
//
// Rows are numbered through the whole run, all from 0: with global batch G and
// dp ranks of micro-batch B,
//
//   row j of rank r in micro-batch m of step s is s*G + m*B*dp + r*B + j
//
// Row g reads sample g % N of epoch g / N, in an order that depends on (seed,
// epoch) only. A step's batch is therefore the same set for every dp and B.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_SAMPLEORDER_H
#define MEGA_RUNTIME_DATA_SAMPLEORDER_H

#include "runtime/data/Permutation.h"

#include <cstdint>

namespace mega {

/// Whole samples in a stream: every one needs a label for its last token.
constexpr int64_t sampleCount(int64_t tokens, int64_t sequenceLength) {
  return tokens < 1 ? 0 : (tokens - 1) / sequenceLength;
}

struct SampleOrder {
  /// At least 1.
  int64_t samples = 1;
  uint64_t seed = 0;
  /// Off: sample g % N.
  bool shuffle = true;

  /// The sample that row g of the run reads; g >= 0.
  int64_t sample(int64_t row) const {
    const int64_t position = row % samples;
    if (!shuffle) {
      return position;
    }
    const auto epoch = static_cast<uint64_t>(row / samples);
    const uint64_t key = mixKey(mixKey(seed, hashName("sample order")), epoch);
    return Permutation(samples, key)(position);
  }
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_SAMPLEORDER_H
