//===- PlanCheck.h - The meaning of a plan's fields -------------*- C++ -*-===//
//
// The third check of loading: every number in range, every enumerator known,
// every index inside its vector, every name usable and unique, every address a
// call or an action can form inside its region and aligned, every launch
// accepted by its kernel. Work and memory grow with the size of the file only,
// whatever it says; nothing recurses.
//
// Afterwards a plan can be executed and inspected without bound checks. What
// it computes is the business of Verifier.h.
//
// The parts below are in files of their own (Check*.cpp) and rely on those
// before them.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_PLANCHECK_H
#define MEGA_RUNTIME_PLAN_PLANCHECK_H

#include "runtime/plan/Kernels.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/Status.h"

#include <string_view>
#include <unordered_set>
#include <vector>

namespace mega {

/// No region, extent, offset or stride exceeds this.
inline constexpr int64_t kMaxPlanBytes = int64_t{1} << 48;
/// Functions one program runs, repetitions included.
inline constexpr uint64_t kMaxRunsPerProgram = uint64_t{1} << 16;
/// Logical parameters, repetitions included.
inline constexpr uint64_t kMaxParameters = uint64_t{1} << 20;

/// Code::BadInput at the first violation, with the place, the value and what
/// was expected.
Status checkPlan(const plan::Plan &plan);

/// The largest values of the numbers an address is formed from.
struct AddressLimits {
  uint64_t instance = 0;
  uint64_t slot = 0;
  /// In place of the slot, in regions between stages.
  uint64_t buffer = 0;
  uint64_t frame = 0;
  uint64_t microBatch = 0;
};

/// low <= value <= high.
Status checkRange(std::string_view what, int64_t value, int64_t low,
                  int64_t high);
/// No control characters but tabs and ends of lines.
Status checkText(std::string_view what, std::string_view text);
/// 1 to 512 printable characters, no space.
Status checkName(std::string_view what, std::string_view name);
/// Names of the things of one kind in a plan, which has to outlive it: each
/// passes checkName, and none occurs twice.
class UniqueNames {
public:
  explicit UniqueNames(std::string_view kind) : kind(kind) {}
  Status add(uint32_t number, std::string_view name);

private:
  std::string_view kind;
  std::unordered_set<std::string_view> names;
};
/// Layouts and groups of the plan.
Status checkLayouts(const plan::Plan &plan);
/// The layout and what of the address depends on the rank.
Status checkBufferLayout(const plan::Plan &plan, const plan::Buffer &buffer);
/// The integers of a function that depend on the rank.
Status checkTerms(const plan::Plan &plan, const plan::Function &function);
/// What they are on the rank with the largest coordinates, where all of them
/// are largest.
std::vector<int64_t> largestIntegers(const plan::Plan &plan,
                                     const plan::Function &function);
/// The group of a conversion, and as many pieces as it has ranks.
Status checkConversionGroup(const plan::Plan &plan, Kernel kernel,
                            const LaunchSignature &signature);
/// The group of a ring, and as many pieces of keys as it has ranks.
Status checkRingGroup(const plan::Plan &plan, Kernel kernel,
                      const LaunchSignature &signature);
/// The group of a kernel between stages.
Status checkStageGroup(const plan::Plan &plan, Kernel kernel,
                       const LaunchSignature &signature);
/// Type, shape, row stride, layout and non-negative aligned address fields.
Status checkBuffer(const plan::Plan &plan, const plan::Buffer &buffer);
/// The addresses of a buffer with space Region stay inside it.
Status checkPlacement(const plan::Plan &plan, const plan::Buffer &buffer,
                      const AddressLimits &limits);
/// checkBuffer and checkPlacement of a buffer outside of functions.
Status checkPlacedBuffer(const plan::Plan &plan, const plan::Buffer *buffer,
                         const AddressLimits &limits);

/// The plans of the stages belong together, and the whole has nothing beside
/// them.
Status checkStages(const plan::Plan &plan);
/// Entry points, loss terms and inputs of checked stages are the same.
Status checkSameStages(const plan::Plan &plan);
Status checkFunctions(const plan::Plan &plan);
Status checkPrograms(const plan::Plan &plan);
Status checkEntryPoints(const plan::Plan &plan);
Status checkAddresses(const plan::Plan &plan);
Status checkParameters(const plan::Plan &plan);
Status checkInputs(const plan::Plan &plan);
Status checkLossTerms(const plan::Plan &plan);

/// Per program, the largest slot, buffer and micro-batch of any action that
/// runs it.
std::vector<AddressLimits> actionLimits(const plan::Plan &plan);
/// Micro-batches of the longest entry point.
uint32_t maxMicroBatches(const plan::Plan &plan);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_PLANCHECK_H
