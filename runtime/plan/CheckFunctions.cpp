//===- CheckFunctions.cpp - Functions and their launches ------------------===//
#include "runtime/plan/Kernels.h"
#include "runtime/plan/PlanCheck.h"

namespace mega {
namespace {

bool hasAddress(const plan::Buffer &buffer) {
  return buffer.per_instance() != 0 || buffer.per_slot() != 0 ||
         buffer.per_frame() != 0 || buffer.per_micro_batch() != 0 ||
         buffer.per_piece() != 0;
}

Status checkArgument(const plan::Plan &plan, const plan::Buffer &argument,
                     size_t number) {
  MEGA_RETURN_IF_ERROR(checkBuffer(plan, argument));
  if (argument.space() != static_cast<uint8_t>(plan::Space::Argument) ||
      argument.region() != number) {
    return badInput("it has space {} and number {}, expected {} and {}",
                    argument.space(), argument.region(),
                    static_cast<int>(plan::Space::Argument), number);
  }
  if (hasAddress(argument) || argument.offset() != 0) {
    return badInput("it has an address, which only calls supply");
  }
  return Status::ok();
}

/// A buffer that lies in an argument, wholly or as a slice.
Status checkArgumentUse(const plan::Function &function,
                        const plan::Buffer &buffer) {
  const auto arguments = elements(function.arguments());
  if (buffer.region() >= arguments.size()) {
    return badInput("it is argument {} of {}", buffer.region(),
                    arguments.size());
  }
  if (hasAddress(buffer)) {
    return badInput("a buffer in an argument has no strides");
  }
  const BufferType whole = bufferType(arguments[buffer.region()]);
  const BufferType part = bufferType(buffer);
  if (part.type != whole.type ||
      buffer.offset() + part.extentBytes() > whole.extentBytes()) {
    return badInput("{} at byte {} is not inside argument {}, {}",
                    toString(part), buffer.offset(), buffer.region(),
                    toString(whole));
  }
  return Status::ok();
}

/// `count` elements from `first` of a vector of `size`.
Status checkSlice(std::string_view what, uint64_t first, uint64_t count,
                  uint64_t size) {
  if (count > size || first > size - count) {
    return badInput("{} {} to {} of {}", what, first, first + count, size);
  }
  return Status::ok();
}

Status checkOneLaunch(const plan::Plan &plan, const plan::Function &function,
                      const plan::Launch &launch,
                      const std::vector<int64_t> &largest) {
  if (launch.kernel() >= kKernelCount) {
    return badInput("kernel {} of {}", launch.kernel(), kKernelCount);
  }
  if (launch.reserved() != 0) {
    return badInput("its reserved field is {}, expected 0", launch.reserved());
  }
  if (launch.location() >= length(plan.locations())) {
    return badInput("location {} of {}", launch.location(),
                    length(plan.locations()));
  }
  const auto kernel = static_cast<Kernel>(launch.kernel());
  const KernelSpec &spec = kernelSpec(kernel);
  const auto operands = elements(function.operands());
  const auto integers = elements(function.integers());
  const auto floats = elements(function.floats());
  const auto buffers = elements(function.buffers());
  MEGA_RETURN_IF_ERROR_CONTEXT(checkSlice("operands", launch.first_operand(),
                                          spec.operands.size(),
                                          operands.size()),
                               "{}", spec.name);
  MEGA_RETURN_IF_ERROR_CONTEXT(checkSlice("integers", launch.first_integer(),
                                          spec.integers.size(),
                                          integers.size()),
                               "{}", spec.name);
  MEGA_RETURN_IF_ERROR_CONTEXT(checkSlice("floats", launch.first_float(),
                                          spec.floats.size(), floats.size()),
                               "{}", spec.name);
  std::vector<BufferType> types;
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    const uint16_t index = operands[launch.first_operand() + i];
    if (index >= buffers.size()) {
      return badInput("{}: operand {} is buffer {} of {}", spec.name,
                      spec.operands[i].name, index, buffers.size());
    }
    types.push_back(bufferType(buffers[index]));
  }
  // The rules hold between the first rank's integers and the last one's.
  for (const std::span<const int64_t> all :
       {integers, std::span<const int64_t>(largest)}) {
    const LaunchSignature signature{
        types, all.subspan(launch.first_integer(), spec.integers.size()),
        floats.subspan(launch.first_float(), spec.floats.size())};
    MEGA_RETURN_IF_ERROR(checkLaunch(kernel, signature));
    if (isConversion(kernel)) {
      MEGA_RETURN_IF_ERROR_CONTEXT(
          checkConversionGroup(plan, kernel, signature), "{}", spec.name);
    } else if (isRing(kernel)) {
      MEGA_RETURN_IF_ERROR_CONTEXT(checkRingGroup(plan, kernel, signature),
                                   "{}", spec.name);
    } else if (isBetweenStages(kernel)) {
      MEGA_RETURN_IF_ERROR_CONTEXT(checkStageGroup(plan, kernel, signature),
                                   "{}", spec.name);
    }
  }
  return Status::ok();
}

Status checkFunction(const plan::Plan &plan, const plan::Function &function) {
  const auto arguments = elements(function.arguments());
  for (size_t i = 0; i < arguments.size(); ++i) {
    MEGA_RETURN_IF_ERROR_CONTEXT(checkArgument(plan, arguments[i], i),
                                 "argument {}", i);
  }
  const auto buffers = elements(function.buffers());
  for (size_t i = 0; i < buffers.size(); ++i) {
    MEGA_RETURN_IF_ERROR_CONTEXT(checkBuffer(plan, buffers[i]), "buffer {}", i);
    MEGA_RETURN_IF_ERROR_CONTEXT(
        buffers[i].space() == static_cast<uint8_t>(plan::Space::Argument)
            ? checkArgumentUse(function, buffers[i])
            : checkPlacement(plan, buffers[i], {}),
        "buffer {}", i);
  }
  MEGA_RETURN_IF_ERROR(checkTerms(plan, function));
  const std::vector<int64_t> largest = largestIntegers(plan, function);
  const auto launches = elements(function.launches());
  for (size_t i = 0; i < launches.size(); ++i) {
    MEGA_RETURN_IF_ERROR_CONTEXT(
        checkOneLaunch(plan, function, launches[i], largest), "launch {}", i);
  }
  return Status::ok();
}

} // namespace

Status checkFunctions(const plan::Plan &plan) {
  UniqueNames names("function");
  for (uint32_t i = 0; i < length(plan.functions()); ++i) {
    const plan::Function &function = *plan.functions()->Get(i);
    const std::string_view functionName = text(function.name());
    MEGA_RETURN_IF_ERROR(names.add(i, functionName));
    MEGA_RETURN_IF_ERROR_CONTEXT(checkFunction(plan, function), "function {}",
                                 functionName);
  }
  return Status::ok();
}

} // namespace mega
