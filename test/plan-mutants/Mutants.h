//===- Mutants.h - Ways to spoil a plan -------------------------*- C++ -*-===//
//
// Systematic changes of a valid plan, each of which makes another computation
// of it: kinds of change times the places where they apply. What would leave
// the computation as it is (reordering what is independent, moving a buffer
// nobody else knows) is not generated, nor what makes a valid plan of another
// model (an epsilon changed everywhere): docs/testing.md lists these.
//
// A mutant changes the unpacked plan, so that packing it again gives a file
// with a correct hash.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TEST_PLAN_MUTANTS_MUTANTS_H
#define MEGA_TEST_PLAN_MUTANTS_MUTANTS_H

#include "runtime/plan/ByteSet.h"
#include "runtime/plan/Kernels.h"
#include "runtime/plan/Plan.h"

#include <functional>
#include <string>
#include <vector>

namespace mega {

struct Mutant {
  /// `drop-launch`, ...
  std::string kind;
  /// `layer.forward launch 3, gemm`, ...
  std::string site;
  std::function<void(plan::PlanT &)> apply;

  std::string name() const { return kind + ": " + site; }
};

/// Collects mutants; of each kind in one function or table at most
/// kMaxSites, evenly spread, in order.
class MutantList {
public:
  static constexpr size_t kMaxSites = 24;

  void add(std::string kind, std::string site,
           std::function<void(plan::PlanT &)> apply) {
    pending.push_back({std::move(kind), std::move(site), std::move(apply)});
  }
  /// Ends the sites of one function or table.
  void flush();
  std::vector<Mutant> take() {
    flush();
    return std::move(all);
  }

private:
  std::vector<Mutant> pending;
  std::vector<Mutant> all;
};

/// All mutants of `plan`, a valid plan of one stage. Names are unique.
std::vector<Mutant> mutantsOf(const plan::PlanT &plan);

// The parts.
void addLaunchMutants(const plan::PlanT &plan, MutantList &list);
void addBufferMutants(const plan::PlanT &plan, MutantList &list);
void addLayoutMutants(const plan::PlanT &plan, MutantList &list);
void addProgramMutants(const plan::PlanT &plan, MutantList &list);
void addScheduleMutants(const plan::PlanT &plan, MutantList &list);
void addStateMutants(const plan::PlanT &plan, MutantList &list);

//===----------------------------------------------------------------------===//
// What the parts want to know about a plan
//===----------------------------------------------------------------------===//

/// A launch with what its kernel says.
struct LaunchView {
  const plan::FunctionT *function;
  const plan::Launch *launch;
  const KernelSpec *spec;

  LaunchView(const plan::FunctionT &function, size_t index);
  size_t operands() const { return spec->operands.size(); }
  size_t indexOf(size_t operand) const {
    return function->operands[launch->first_operand() + operand];
  }
  const plan::Buffer &buffer(size_t operand) const {
    return function->buffers[indexOf(operand)];
  }
  int64_t integer(std::string_view name) const;
  Access access(size_t operand) const;
  bool reads(size_t operand) const;
  bool writes(size_t operand) const;
  /// Written where it is also read, added to or in place.
  bool updates() const;
  std::string text(size_t index) const;
};

/// Whether the addresses, in run 0, share a byte.
bool sharesBytes(const plan::Buffer &a, const plan::Buffer &b);
bool sameBuffer(const plan::Buffer &a, const plan::Buffer &b);
bool sameType(const plan::Buffer &a, const plan::Buffer &b);
plan::Part partOf(const plan::PlanT &plan, const plan::Buffer &buffer);
/// Some call of the function has runs with different instances or frames.
bool repeats(const plan::PlanT &plan, size_t function);
/// Whether it is one of the attentions, or a gradient of one.
bool isAttention(Kernel kernel);
/// Drops anything out.
bool dropsOut(const plan::FunctionT &function);
/// One past the last byte of the region that anything addresses.
int64_t usedEnd(const plan::PlanT &plan, uint32_t region);
/// One past the last byte of the region, rounded up to any element's size.
inline int64_t regionEnd(const plan::PlanT &plan, uint32_t region) {
  return static_cast<int64_t>((plan.regions[region]->bytes + 7) / 8 * 8);
}

} // namespace mega

#endif // MEGA_TEST_PLAN_MUTANTS_MUTANTS_H
