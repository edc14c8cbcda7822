//===- Trial.h - A kernel and its transpose on ranks ------------*- C++ -*-===//
//
// Runs a case (TranspositionCases.h) on the ranks of a mesh in one layout of
// its operands, and expects that
//
// - the results, put together, are those of the reference;
// - from gradients of the results in the dual layouts the ranks compute, in the
//   dual layouts of the operands, the transpose of the derivative:
//   <grad_y, J dx> = <J' grad_y, dx>.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TEST_RUNTIME_CPU_TRIAL_H
#define MEGA_TEST_RUNTIME_CPU_TRIAL_H

#include "test/runtime/cpu/TranspositionCases.h"

namespace mega::test {

double dot(const Values &a, const Values &b);

class Trial {
public:
  enum class Outcome {
    Checked,
    /// The kernel does not run with these pieces.
    Refused,
    /// Only the forward's results were checked: its transpose would read a
    /// summand.
    ForwardOnly
  };

  Trial(const Case &c, const Mesh &mesh);

  /// Of layouts that the kernel's rule allows.
  Outcome check(const std::vector<Layout> &layouts);

  const std::set<Kernel> &launched() const { return ranks.launched; }
  /// Why it was not checked.
  const std::string &reason() const { return reason_; }

private:
  Status forward();
  void compareResults();
  Outcome checkTranspose();
  void checkAdjoint(size_t operand, const std::vector<Values> &gradients);
  Case::Wholes differentiate(size_t operand, const Values &direction) const;

  const Case &c;
  Ranks ranks;
  Use use;
  /// Of the operands.
  Case::Wholes wholes;
  std::string reason_;
};

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_CPU_TRIAL_H
