//===- TranspositionCases.h - Kernels with their transposes -----*- C++ -*-===//
//
// For every kernel that a gradient flows through: operands, what it computes
// according to the reference, and the launches that are its transpose.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TEST_RUNTIME_CPU_TRANSPOSITIONCASES_H
#define MEGA_TEST_RUNTIME_CPU_TRANSPOSITIONCASES_H

#include "test/runtime/cpu/ShardedTensors.h"

#include <functional>
#include <ostream>

namespace mega::test {

/// One use of a kernel: what it read and wrote, and their gradients.
struct Use {
  std::vector<Sharded> operands, results;
  /// Of the results, in their dual layouts; empty where none flows.
  std::vector<Sharded> gradResults;
  /// For the backward to fill, zeros in the dual layouts.
  std::vector<Sharded> gradOperands;
  /// What else the forward leaves to the backward.
  std::vector<Sharded> kept;
};

struct Case {
  struct Operand {
    BufferType type;
    /// Instead of random numbers: ids, tables. No gradient flows to them.
    Values fixed = {};
    /// A dimension that is padded where it does not divide.
    int padded = -1;
  };
  using Wholes = std::vector<Values>;

  std::string name;
  Kernel kernel;
  /// That the kernel reads, and that it writes, in its order.
  std::vector<Operand> operands;
  std::vector<BufferType> results;
  /// The results in double precision.
  std::function<Wholes(const Wholes &)> reference;
  /// Launches the transpose.
  std::function<Status(Ranks &, Use &)> backward;
  std::vector<int64_t> integers = {};
  std::vector<double> floats = {};
  /// Results that a gradient flows from.
  std::vector<size_t> active = {0};
  /// Of a result, and of an element of a gradient (expectClose).
  double roundings = 32, gradRoundings = 128;
  /// Layouts that the rule allows and these shapes, or the kernel's integers,
  /// do not.
  int refused = 0;
  /// Layouts with a summand that the backward would have to read.
  int forwardOnly = 0;
  /// Instead of one launch: fills the results, their layouts too.
  std::function<Status(Ranks &, Use &)> forward = {};
};

/// What every case runs with.
StepScalars caseScalars();
inline constexpr int64_t kCaseApplication = 3, kCaseFirstSample = 17;

std::vector<Case> transpositionCases();
/// Grouped query heads, with the mask of two documents in a row unless the
/// kernel has no places.
Case attentionCase(int64_t heads, int64_t kvHeads,
                   Kernel kernel = Kernel::Attention);

inline void PrintTo(const Case &c, std::ostream *out) { *out << c.name; }

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_CPU_TRANSPOSITIONCASES_H
