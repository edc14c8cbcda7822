//===- ShardingRule.h - Which layouts an op may have ------------*- C++ -*-===//
//
// What an op says about layouts, in the notation of index sums:
//
//   linear     *bsi, *oi -> bso        layer_norm  bsF, F, F -> bsF
//   add_bias   +bso, +o -> bso         embedding   =bs, *vh -> bsh
//
// A letter is a factor: the dimensions that carry it are cut together. A factor
// that is in no result is contracted: cut, it leaves a sum to be done. A
// capital must stay whole (the features a norm needs, the sequence of an
// attention).
//
//   *x   the op is linear in x when all else is fixed
//   +x   it is linear in all marked operands together (sums)
//   =x   x is inactive: no gradient flows to it, so invariant and replicated
//        are one state
//   ~x   x may be in any state (a local maximum)
//   x^   a result whose contracted factors leave a maximum instead of a sum
//
// Factors may nest: `... | h in k` says that k counts groups of h (key/value
// heads and the query heads they serve). An axis that cuts h cuts k too, or, if
// a rank has no more than one k left, leaves k replicated.
//
// The rules, per mesh axis (docs/layouts.md):
//
//   mapped     the axis cuts one factor: whatever carries it is cut there,
//   every
//              other operand is replicated, every other result partial;
//   unmapped   all operands invariant -> results invariant; all replicated ->
//              replicated; one partial in which the op is linear and the others
//              replicated, or all of a sum partial -> partial.
//
// They hold for an op and for its transpose alike, which is how a gradient
// comes to be partial exactly where it has to be reduced.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_SHARDINGRULE_H
#define MEGA_RUNTIME_PLAN_SHARDINGRULE_H

#include "runtime/plan/Layout.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mega {

struct ShardingRule {
  enum class Role : uint8_t { Plain, Linear, Additive, Inactive, Any };
  struct Tensor {
    /// A letter per dimension.
    std::string factors;
    Role role = Role::Plain;
    /// Of a result: a contracted factor leaves this.
    Reduction reduction = Reduction::Sum;
  };
  std::vector<Tensor> operands;
  std::vector<Tensor> results;
  /// The letters of a nested factor and of what it is in; 0 if there is none.
  char inner = 0;
  char outer = 0;

  /// The rule of an axis that cuts both: one letter for both.
  ShardingRule joined() const;
  /// What holds on an axis: joined() if it cuts the outer factor anywhere.
  ShardingRule on(Axis axis, std::span<const Layout> operands,
                  std::span<const Layout> results) const;

  /// Reads the notation, which is written by the compiler's authors: a mistake
  /// in it is an assertion.
  static ShardingRule parse(std::string_view notation);
  /// Whether no axis may cut this factor.
  static bool isWhole(char factor) { return factor >= 'A' && factor <= 'Z'; }
};

/// Whether layouts obey the rule on every axis. The message names the axis, the
/// tensors by number, and what would be legal.
Status checkSharding(const ShardingRule &rule, std::span<const Layout> operands,
                     std::span<const Layout> results);

/// The layouts of the results, of an op whose mapped factors show in its
/// operands; the reason if the operands obey no rule. Padding goes with the
/// factor.
StatusOr<std::vector<Layout>> inferSharding(const ShardingRule &rule,
                                            std::span<const Layout> operands);

/// Of a rule with nested factors: no rank has more than one of the outer factor
/// where an axis cuts the inner one alone. `extents` has what a rank has of the
/// outer factor, by operand; 0 for operands without it.
Status checkNesting(const ShardingRule &rule, std::span<const Layout> operands,
                    std::span<const int64_t> extents);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_SHARDINGRULE_H
