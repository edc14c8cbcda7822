//===- KernelValues.h - What kernels compute, as values ---------*- C++ -*-===//
//
// The meaning of a kernel for the verifier (Values.h): which values a launch
// leaves, and how the derivative of a launch is computed by other kernels.
// Fused kernels have the values of what they fuse, so that a forward and its
// fused twin agree.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_KERNELVALUES_H
#define MEGA_RUNTIME_PLAN_KERNELVALUES_H

#include "runtime/plan/Kernels.h"
#include "runtime/plan/Values.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace mega {

/// One launch of one run.
struct ValueLaunch {
  Kernel kernel = Kernel::Zero;
  std::vector<BufferType> types;
  std::vector<int64_t> integers;
  std::vector<double> floats;
  /// Of the block, which seeds dropout.
  int64_t application = 0;
  /// By operand: what it held before. Ignored where the kernel only writes.
  std::vector<Value> before;

  /// The integer called `name`, which the kernel has.
  int64_t integer(std::string_view name) const {
    return integers[integerIndex(kernelSpec(kernel), name)];
  }
};

/// The probability with which the launch drops elements out.
double dropoutOf(const ValueLaunch &launch);
/// The launch as if nothing were dropped out.
ValueLaunch withoutDropout(ValueLaunch launch);

/// By operand: what the launch writes there; where it adds, what it adds. 0 for
/// operands that are only read; scratch gets a value of its own.
std::vector<Value> resultsOf(const ValueLaunch &launch);

/// What a forward computed, in order, and its derivatives.
class Tape {
public:
  void record(const ValueLaunch &launch, const std::vector<Value> &results);
  /// The slices and the concatenation that a read consists of.
  void record(const ReadValue &read);

  /// Adds `gradient` to the derivative by `value`.
  void seed(Value value, Value gradient) { add(value, gradient); }
  /// Goes backwards over everything recorded; Code::BadInput if a launch that
  /// has a derivative is of a kernel that has none.
  Status differentiate();
  /// The derivative by `value`, once differentiated; 0 if there is none.
  Value derivative(Value value) const;
  /// Whether the value occurs in the forward or in its derivative.
  bool knows(Value value) const { return known.count(value) != 0; }

  /// The launch of `kernel` that wrote `value`.
  const ValueLaunch *find(Kernel kernel, Value value) const;

private:
  struct Step {
    ValueLaunch launch;
    std::vector<Value> results;
  };
  struct View {
    Value value;
    std::vector<ReadValue::Part> parts;
  };
  struct Slice {
    Value value;
    Value source;
    Coordinates block;
  };
  struct Gradient {
    Value whole = 0;
    std::map<Coordinates, Value> blocks;
  };

  void add(Value value, Value gradient);
  Status differentiate(const Step &step);
  std::vector<Value> apply(const Step &step, Kernel kernel,
                           const std::vector<int> &operands,
                           const std::vector<Value> &values,
                           std::vector<int64_t> integers,
                           std::vector<double> floats);

  std::vector<std::variant<Step, View, Slice>> steps;
  std::unordered_set<Value> defined;
  std::unordered_set<Value> known;
  std::unordered_map<Value, Gradient> gradients;
};

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_KERNELVALUES_H
