//===- Executor.cpp - Executes a plan on one rank -------------------------===//
#include "runtime/core/Executor.h"

#include "runtime/core/ThreadPool.h"
#include "runtime/plan/InitialValues.h"

#include <algorithm>
#include <cstring>

namespace mega {
namespace {

/// Elements one task initialises; independent of the number of threads.
constexpr int64_t kInitialChunk = int64_t{1} << 16;

InitialValue initialValue(const LogicalParameter &parameter) {
  switch (parameter.initializer) {
  case plan::Initializer::Zeros:
    return InitialValue::zeros();
  case plan::Initializer::Ones:
    return InitialValue::ones();
  case plan::Initializer::Normal:
    return InitialValue::normal(parameter.value);
  case plan::Initializer::Constant:
    return InitialValue::constant(parameter.value);
  }
  return InitialValue::zeros();
}

BufferType logicalType(const LogicalParameter &parameter) {
  BufferType type;
  type.rank = static_cast<int>(parameter.shape.size());
  std::copy(parameter.shape.begin(), parameter.shape.end(), type.dims.begin());
  type.rowStride = type.rowSize();
  return type;
}

} // namespace

Executor::Executor(const plan::Plan &plan, Memory memory, ThreadPool &pool)
    : plan_(plan), memory_(std::move(memory)), pool(pool) {
  samplesPerMicroBatch = plan.micro_batch_size();
  for (const plan::Axis &axis : elements(plan.mesh())) {
    if (axis.name() == static_cast<uint8_t>(plan::AxisName::dp)) {
      samplesPerMicroBatch *= axis.size();
    }
  }
}

StatusOr<std::unique_ptr<Executor>>
Executor::create(const LoadedPlan &plan, KernelLookup kernels, ThreadPool &pool,
                 std::optional<uint64_t> available) {
  MEGA_ASSIGN_OR_RETURN(Memory memory,
                        Memory::allocate(plan.root(), available));
  std::unique_ptr<Executor> executor(
      new Executor(plan.root(), std::move(memory), pool));
  MEGA_RETURN_IF_ERROR(executor->resolve(kernels));
  executor->resolveState();
  return executor;
}

Executor::Operand Executor::resolveOperand(const plan::Program &program,
                                           const plan::Call &call,
                                           const plan::Buffer &buffer) const {
  const bool argument =
      buffer.space() == static_cast<uint8_t>(plan::Space::Argument);
  const plan::Buffer &address =
      argument
          ? elements(
                program.arguments())[call.first_argument() + buffer.region()]
          : buffer;
  const Place place = placeOf(program, call, buffer, 0);
  const plan::Region &region = *plan_.regions()->Get(place.region);
  Operand operand;
  operand.type = bufferType(buffer);
  operand.base = memory_.region(place.region) + place.offset;
  operand.perRun = argument ? 0 : buffer.per_instance() + buffer.per_frame();
  operand.perSlot = address.per_slot();
  operand.perMicroBatch = address.per_micro_batch();
  operand.perCopy = memory_.copyStride(place.region);
  operand.copies = region.copies();
  return operand;
}

Status Executor::resolveCall(const plan::Program &program,
                             const plan::Call &call, KernelLookup kernels) {
  const plan::Function &function = *plan_.functions()->Get(call.function());
  const auto buffers = elements(function.buffers());
  const auto indices = elements(function.operands());
  calls.push_back({static_cast<uint32_t>(launches.size()),
                   length(function.launches()), call.count(),
                   call.first_application(), call.reverse() != 0});
  for (const plan::Launch &launch : elements(function.launches())) {
    const auto kernel = static_cast<Kernel>(launch.kernel());
    const KernelSpec &spec = kernelSpec(kernel);
    const KernelFunction implementation = kernels(kernel);
    if (!implementation) {
      return makeError(Code::Internal, "this device has no kernel {}",
                       spec.name);
    }
    launches.push_back(
        {implementation, static_cast<uint32_t>(operands.size()),
         static_cast<uint32_t>(spec.operands.size()),
         elements(function.integers())
             .subspan(launch.first_integer(), spec.integers.size()),
         elements(function.floats())
             .subspan(launch.first_float(), spec.floats.size())});
    for (size_t i = 0; i < spec.operands.size(); ++i) {
      operands.push_back(resolveOperand(
          program, call, buffers[indices[launch.first_operand() + i]]));
    }
    if (views.size() < spec.operands.size()) {
      views.resize(spec.operands.size());
    }
  }
  return Status::ok();
}

Status Executor::resolve(KernelLookup kernels) {
  for (uint32_t p = 0; p < length(plan_.programs()); ++p) {
    const plan::Program &program = *plan_.programs()->Get(p);
    programs.push_back(
        {static_cast<uint32_t>(calls.size()), length(program.calls())});
    for (const plan::Call &call : elements(program.calls())) {
      MEGA_RETURN_IF_ERROR(resolveCall(program, call, kernels));
    }
  }
  return Status::ok();
}

View Executor::viewAt(const plan::Buffer *buffer) const {
  return View(bufferType(*buffer),
              memory_.region(buffer->region()) + buffer->offset());
}

void Executor::resolveState() {
  for (uint32_t i = 0; i < length(plan_.loss_terms()); ++i) {
    const plan::LossTerm &term = *plan_.loss_terms()->Get(i);
    lossSums.push_back(viewAt(term.sum()));
    lossCounts.push_back(viewAt(term.count()));
  }
  if (plan_.gradient_square_sum()) {
    squareSum = viewAt(plan_.gradient_square_sum());
  }
  for (uint32_t i = 0; i < length(plan_.inputs()); ++i) {
    const uint32_t copies =
        plan_.regions()
            ->Get(plan_.inputs()->Get(i)->buffer()->region())
            ->copies();
    inputCopies_ = i == 0 ? copies : std::min(inputCopies_, copies);
  }
  for (LogicalParameter &info : logicalParameters(plan_)) {
    const BufferType type = logicalType(info);
    const auto view = [&](const std::optional<Place> &place) {
      return place ? View(type, memory_.region(place->region) + place->offset)
                   : View(type, nullptr);
    };
    ParameterState state;
    state.weight = view(info.weight);
    state.gradient = view(info.gradient);
    state.moment = view(info.moment);
    state.variance = view(info.variance);
    state.info = std::move(info);
    parameters_.push_back(std::move(state));
  }
}

void Executor::initializeWeights(uint64_t seed) {
  for (const ParameterState &parameter : parameters_) {
    const int64_t count = parameter.info.elements;
    const InitialValue value = initialValue(parameter.info);
    pool.parallelFor(
        (count + kInitialChunk - 1) / kInitialChunk,
        [&](int64_t task, std::span<std::byte>) {
          const int64_t first = task * kInitialChunk;
          const auto some =
              static_cast<size_t>(std::min(kInitialChunk, count - first));
          fillInitialValues({parameter.weight.as<float>() + first, some}, value,
                            seed, parameter.info.name, first);
          for (const View *state : {&parameter.moment, &parameter.variance}) {
            if (state->data) {
              std::memset(state->as<float>() + first, 0, some * sizeof(float));
            }
          }
        });
  }
}

void Executor::runLaunch(const Launch &launch, uint32_t run, uint32_t slot,
                         uint32_t microBatch, const KernelContext &context) {
  for (uint32_t i = 0; i < launch.operandCount; ++i) {
    const Operand &operand = operands[launch.firstOperand + i];
    std::byte *data = operand.base + run * operand.perRun +
                      slot * operand.perSlot +
                      microBatch * operand.perMicroBatch;
    if (operand.copies > 1) {
      data += static_cast<int64_t>(steps % operand.copies) * operand.perCopy;
    }
    views[i] = View(operand.type, data);
  }
  launch.function(context, {std::span(views).first(launch.operandCount),
                            launch.integers, launch.floats});
}

void Executor::runProgram(uint32_t program, uint32_t slot, uint32_t microBatch,
                          KernelContext &context) {
  for (uint32_t c = 0; c < programs[program].callCount; ++c) {
    const Call &call = calls[programs[program].firstCall + c];
    for (uint32_t i = 0; i < call.count; ++i) {
      const uint32_t run = call.reverse ? call.count - 1 - i : i;
      context.application = int64_t{call.firstApplication} + run;
      for (uint32_t l = 0; l < call.launchCount; ++l) {
        runLaunch(launches[call.firstLaunch + l], run, slot, microBatch,
                  context);
      }
    }
  }
}

void Executor::runSetup(const StepScalars &scalars) {
  KernelContext context{pool, scalars};
  for (uint32_t p = 0; p < programs.size(); ++p) {
    if (plan_.programs()->Get(p)->kind() == plan::ActionKind::Setup) {
      runProgram(p, 0, 0, context);
    }
  }
}

std::optional<uint32_t> Executor::findEntryPoint(std::string_view name) const {
  for (uint32_t i = 0; i < length(plan_.entry_points()); ++i) {
    if (text(plan_.entry_points()->Get(i)->name()) == name) {
      return i;
    }
  }
  return std::nullopt;
}

void Executor::runStep(uint32_t entryPoint, const StepScalars &scalars,
                       int64_t firstSample) {
  const plan::EntryPoint &entry = *plan_.entry_points()->Get(entryPoint);
  KernelContext context{pool, scalars};
  for (const plan::Action &action :
       elements(entry.stages()->Get(0)->actions())) {
    context.firstSample =
        firstSample + action.micro_batch() * samplesPerMicroBatch;
    runProgram(action.program(), action.slot(), action.micro_batch(), context);
  }
  ++steps;
}

std::optional<uint32_t> Executor::findInput(std::string_view name) const {
  for (uint32_t i = 0; i < length(plan_.inputs()); ++i) {
    if (text(plan_.inputs()->Get(i)->name()) == name) {
      return i;
    }
  }
  return std::nullopt;
}

View Executor::inputOf(uint32_t input, uint32_t microBatch,
                       uint64_t step) const {
  const plan::Buffer &buffer = *plan_.inputs()->Get(input)->buffer();
  const uint32_t copies = plan_.regions()->Get(buffer.region())->copies();
  return View(
      bufferType(buffer),
      memory_.region(buffer.region(), static_cast<uint32_t>(step % copies)) +
          buffer.offset() + microBatch * buffer.per_micro_batch());
}

double Executor::loss() const {
  double loss = 0;
  for (uint32_t i = 0; i < lossSums.size(); ++i) {
    if (const int64_t count = lossCount(i); count > 0) {
      loss += plan_.loss_terms()->Get(i)->weight() * lossSum(i) /
              static_cast<double>(count);
    }
  }
  return loss;
}

double Executor::gradientSquareSum() const {
  return squareSum.data ? *squareSum.as<double>() : 0;
}

} // namespace mega
