//===- ExecutorCreate.cpp - What is settled before the first step ---------===//
//
// Memory, the launches of every call with their operands' addresses on this
// rank, what the rank has of the parameters, and initial values.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Executor.h"
#include "runtime/core/ThreadPool.h"
#include "runtime/plan/InitialValues.h"
#include "runtime/plan/PlanLayouts.h"

#include <algorithm>
#include <cstring>

namespace mega {
namespace {

/// Elements one task initialises; independent of the number of threads.
constexpr int64_t kInitialChunk = int64_t{1} << 16;

/// Room for transfers between stages at the beginning; a schedule has a few.
constexpr size_t kMaxStartedTransfers = 64;

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

} // namespace

Executor::Executor(const plan::Plan &plan, Memory memory, ThreadPool &pool,
                   RankContext rank)
    : plan_(plan), memory_(std::move(memory)), pool(pool), mesh_(meshOf(plan)),
      rank_(rank.rank), stage(mesh_.coordinate(rank_, Axis::Pp)),
      groups{rank.members, Status::ok(), {}} {
  const int64_t rows = plan.micro_batch_size();
  samplesPerMicroBatch = rows * mesh_.size(Axis::Dp);
  samplesBefore = rows * mesh_.coordinate(rank_, Axis::Dp);
}

StatusOr<std::unique_ptr<Executor>>
Executor::create(const LoadedPlan &loaded, KernelLookup kernels,
                 ThreadPool &pool, RankContext rank,
                 std::optional<uint64_t> available) {
  const plan::Plan &plan = stagePlan(
      loaded.root(), meshOf(loaded.root()).coordinate(rank.rank, Axis::Pp));
  MEGA_ASSIGN_OR_RETURN(Memory memory, Memory::allocate(plan, available));
  std::unique_ptr<Executor> executor(
      new Executor(plan, std::move(memory), pool, rank));
  MEGA_RETURN_IF_ERROR(executor->resolve(kernels));
  executor->resolveState();
  executor->groups.started.reserve(kMaxStartedTransfers);
  return executor;
}

Executor::Operand Executor::resolveOperand(const plan::Program &program,
                                           const plan::Call &call,
                                           const plan::Buffer &buffer) const {
  const bool argument =
      buffer.space() == static_cast<uint8_t>(plan::Space::Argument);
  const plan::Buffer &address = addressOf(program, call, buffer);
  const Place place = placeOf(program, call, buffer, 0);
  const plan::Region &region = *plan_.regions()->Get(place.region);
  Operand operand;
  operand.type = bufferType(buffer);
  operand.base =
      memory_.region(place.region) + place.offset + offsetOnRank(address);
  operand.perRun = argument ? 0 : buffer.per_instance() + buffer.per_frame();
  const bool between = region.part() == plan::Part::Boundary;
  operand.perSlot = between ? 0 : address.per_slot();
  operand.perBuffer = between ? address.per_slot() : 0;
  operand.perMicroBatch = address.per_micro_batch();
  operand.perCopy = memory_.copyStride(place.region);
  operand.copies = region.copies();
  return operand;
}

int64_t Executor::offsetOnRank(const plan::Buffer &buffer) const {
  return buffer.per_piece() * mesh_.place(rank_, pieceAxes(plan_, buffer));
}

std::span<const int64_t> Executor::integersOf(uint32_t index) {
  const plan::Function &function = *plan_.functions()->Get(index);
  const auto terms = elements(function.terms());
  if (terms.empty()) {
    return elements(function.integers());
  }
  std::vector<int64_t> &own = integers[index];
  if (own.empty()) {
    const auto common = elements(function.integers());
    own.assign(common.begin(), common.end());
    for (const plan::CoordinateTerm &term : terms) {
      own[term.integer()] +=
          term.coefficient() *
          mesh_.coordinate(rank_, static_cast<Axis>(term.axis()));
    }
  }
  return own;
}

Status Executor::resolveCall(const plan::Program &program,
                             const plan::Call &call, KernelLookup kernels) {
  const plan::Function &function = *plan_.functions()->Get(call.function());
  const auto buffers = elements(function.buffers());
  const auto indices = elements(function.operands());
  const std::span<const int64_t> functionIntegers = integersOf(call.function());
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
         functionIntegers.subspan(launch.first_integer(), spec.integers.size()),
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
  integers.resize(length(plan_.functions()));
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
  const std::vector<OptimizerRange> ranges = optimizerRanges(plan_);
  for (LogicalParameter &info : logicalParameters(plan_)) {
    parameters_.push_back(resolveParameter(std::move(info), ranges));
  }
}

ParameterState
Executor::resolveParameter(LogicalParameter info,
                           const std::vector<OptimizerRange> &ranges) const {
  const auto at = [&](const Place &place, int64_t bytes) {
    return memory_.region(place.region) + place.offset + bytes;
  };
  const auto vector = [](int64_t size, std::byte *data) {
    return View(BufferType(DataType::F32, {size}), data);
  };
  constexpr int64_t kElement = byteSize(DataType::F32);
  ParameterState state;
  state.piece = TensorPiece(info.shape, info.layout, mesh_, rank_);
  BufferType type;
  const auto shape = state.piece.localShape();
  type.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), type.dims.begin());
  type.rowStride = type.rowSize();
  state.weight = View(type, at(info.weight, 0));
  state.owned = {0, info.elements};
  if (info.range) {
    const OptimizerRange &range = ranges[*info.range];
    const int64_t place = mesh_.place(rank_, range.axes);
    state.owned = ownedElements(info, range, place);
    // From the beginning of the vector, or of the piece if that is all there
    // is.
    const int64_t first =
        info.inRange + state.owned.begin * kElement -
        (range.stateBytes == range.bytes ? 0 : place * range.pieceBytes);
    state.moment = vector(state.owned.size(), at(range.moment, first));
    state.variance = vector(state.owned.size(), at(range.variance, first));
  }
  state.gradient = vector(state.owned.size(),
                          at(info.gradient, state.owned.begin * kElement));
  state.info = std::move(info);
  return state;
}

void Executor::initializeWeights(uint64_t seed) {
  for (const ParameterState &parameter : parameters_) {
    const int64_t count = parameter.info.elements;
    const InitialValue value = initialValue(parameter.info);
    pool.parallelFor((count + kInitialChunk - 1) / kInitialChunk,
                     [&](int64_t task, std::span<std::byte>) {
                       const int64_t first = task * kInitialChunk;
                       parameter.piece.forEachRun(
                           {first, std::min(first + kInitialChunk, count)},
                           [&](int64_t local, int64_t whole, int64_t size) {
                             const std::span run(parameter.weight.as<float>() +
                                                     local,
                                                 static_cast<size_t>(size));
                             if (whole < 0) {
                               std::ranges::fill(run, 0.0f);
                             } else {
                               fillInitialValues(run, value, seed,
                                                 parameter.info.name, whole);
                             }
                           });
                     });
    for (const View *state : {&parameter.moment, &parameter.variance}) {
      if (state->data) {
        std::memset(state->data, 0, static_cast<size_t>(state->extentBytes()));
      }
    }
  }
}

} // namespace mega
