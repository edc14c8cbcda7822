//===- CheckState.cpp - Parameters, inputs, loss terms --------------------===//
#include "runtime/plan/DataInputs.h"
#include "runtime/plan/LogicalParameters.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/TensorPiece.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace mega {
namespace {

Status checkInitializer(const plan::Parameter &parameter) {
  if (parameter.initializer() > plan::Initializer::MAX) {
    return badInput("initializer {}, expected 0 to {}",
                    static_cast<int>(parameter.initializer()),
                    static_cast<int>(plan::Initializer::MAX));
  }
  const bool normal = parameter.initializer() == plan::Initializer::Normal;
  if (!std::isfinite(parameter.value()) || (normal && parameter.value() < 0)) {
    return badInput("initial value {}, expected a finite {}", parameter.value(),
                    normal ? "standard deviation" : "number");
  }
  return Status::ok();
}

Status checkParameterCounts(const plan::Parameter &parameter) {
  const bool single = text(parameter.prefix()).empty();
  if (single ? parameter.count() != 1 : parameter.count() == 0) {
    return badInput("it has count {}, expected {}", parameter.count(),
                    single ? "1 without a prefix" : "at least 1");
  }
  if (!single) {
    MEGA_RETURN_IF_ERROR(checkName("its prefix", text(parameter.prefix())));
  }
  if (parameter.count() > 1 && parameter.index_step() == 0) {
    return badInput("index_step is 0, so {} parameters have one name",
                    parameter.count());
  }
  const __int128 last =
      static_cast<__int128>(parameter.count()) * parameter.index_step() +
      parameter.first_index();
  if (last > UINT32_MAX) {
    return badInput("its last index exceeds {}", UINT32_MAX);
  }
  return Status::ok();
}

/// `buffer` has what a rank has of the parameter by the buffer's layout.
Status checkStateBuffer(const plan::Plan &plan, const plan::Buffer *buffer,
                        const plan::Parameter &parameter,
                        DataType element = DataType::F32) {
  AddressLimits limits;
  limits.instance =
      uint64_t{parameter.first_instance()} + parameter.count() - 1;
  MEGA_RETURN_IF_ERROR(checkPlacedBuffer(plan, buffer, limits));
  const BufferType type = bufferType(*buffer);
  if (type.type != element || !type.isContiguous()) {
    return badInput("it is {}, expected contiguous {}", toString(type),
                    name(element));
  }
  const auto shape = elements(parameter.shape());
  const std::vector<int64_t> whole(shape.begin(), shape.end());
  const Layout layout = layoutOf(plan, *buffer);
  const Mesh mesh = meshOf(plan);
  MEGA_RETURN_IF_ERROR_CONTEXT(layout.verify(mesh, whole), "its layout");
  const TensorPiece piece(whole, layout, mesh, 0);
  const auto local = piece.localShape();
  if (static_cast<size_t>(type.rank) != local.size() ||
      !std::equal(local.begin(), local.end(), type.dims.begin())) {
    return badInput("it is {}, a rank has {} of the parameter's shape {}",
                    toString(type), fmt::join(local, "x"),
                    fmt::join(shape, "x"));
  }
  if (buffer->per_slot() != 0 || buffer->per_frame() != 0 ||
      buffer->per_micro_batch() != 0) {
    return badInput("it has strides per slot {}, per frame {} and per "
                    "micro-batch {}, expected 0",
                    buffer->per_slot(), buffer->per_frame(),
                    buffer->per_micro_batch());
  }
  const plan::Region &region = *plan.regions()->Get(buffer->region());
  if (region.part() != plan::Part::State) {
    return badInput("it lies in region {} of part {}, expected part {}",
                    text(region.name()), plan::EnumNamePart(region.part()),
                    plan::EnumNamePart(plan::Part::State));
  }
  return Status::ok();
}

Status checkParameter(const plan::Plan &plan,
                      const plan::Parameter &parameter) {
  MEGA_RETURN_IF_ERROR(checkName("its name", text(parameter.name())));
  MEGA_RETURN_IF_ERROR(checkParameterCounts(parameter));
  MEGA_RETURN_IF_ERROR(checkInitializer(parameter));
  const auto shape = elements(parameter.shape());
  if (shape.size() > BufferType::kMaxRank) {
    return badInput("it has {} dimensions, at most {} are possible",
                    shape.size(), BufferType::kMaxRank);
  }
  uint64_t numbers = 1;
  for (uint64_t extent : shape) {
    if (extent == 0 || extent > kMaxPlanBytes / numbers) {
      return badInput("extent {} of its shape is not possible", extent);
    }
    numbers *= extent;
  }
  MEGA_RETURN_IF_ERROR_CONTEXT(
      checkStateBuffer(plan, parameter.weight(), parameter), "weight");
  MEGA_RETURN_IF_ERROR_CONTEXT(
      checkStateBuffer(plan, parameter.gradient(), parameter), "gradient");
  if (parameter.compute()) {
    MEGA_RETURN_IF_ERROR_CONTEXT(
        checkStateBuffer(plan, parameter.compute(), parameter, DataType::BF16),
        "compute copy");
  }
  return Status::ok();
}

Status checkScalar(const plan::Plan &plan, const plan::Buffer *buffer,
                   DataType type) {
  MEGA_RETURN_IF_ERROR(checkPlacedBuffer(plan, buffer, {}));
  const BufferType found = bufferType(*buffer);
  if (found.type != type || found.elements() != 1) {
    return badInput("it is {}, expected one {}", toString(found), name(type));
  }
  if (buffer->per_instance() != 0 || buffer->per_slot() != 0 ||
      buffer->per_frame() != 0 || buffer->per_micro_batch() != 0) {
    return badInput("it has strides, expected one place");
  }
  return Status::ok();
}

} // namespace

Status checkParameters(const plan::Plan &plan) {
  uint64_t expanded = 0;
  __int128 numbers = 0;
  for (uint32_t i = 0; i < length(plan.parameters()); ++i) {
    const plan::Parameter &parameter = *plan.parameters()->Get(i);
    MEGA_RETURN_IF_ERROR_CONTEXT(checkParameter(plan, parameter),
                                 "parameter {}", i);
    expanded += parameter.count();
    if (expanded > kMaxParameters) {
      return badInput("the plan has more than {} parameters", kMaxParameters);
    }
    __int128 whole = parameter.count();
    for (uint64_t extent : elements(parameter.shape())) {
      whole *= extent;
    }
    numbers += whole;
  }
  if (numbers != plan.parameter_count()) {
    return badInput("parameter_count is {}, the parameters have {} elements",
                    plan.parameter_count(), static_cast<int64_t>(numbers));
  }
  const std::array tables = {&plan};
  const auto repeated = repeatedNames(tables);
  return repeated.empty() ? Status::ok()
                          : badInput("two parameters are called {}",
                                     repeated.begin()->first);
}

Status checkInputs(const plan::Plan &plan) {
  AddressLimits limits;
  limits.microBatch = maxMicroBatches(plan) - 1;
  UniqueNames names("input");
  for (uint32_t i = 0; i < length(plan.inputs()); ++i) {
    const plan::Input &input = *plan.inputs()->Get(i);
    const std::string_view inputName = text(input.name());
    MEGA_RETURN_IF_ERROR(names.add(i, inputName));
    MEGA_RETURN_IF_ERROR_CONTEXT(
        checkPlacedBuffer(plan, input.buffer(), limits), "input {}", inputName);
    const BufferType type = bufferType(*input.buffer());
    const Layout wanted = inputLayout(plan, inputName);
    const Layout found = layoutOf(plan, *input.buffer());
    if (found != wanted) {
      return badInput("input {} has layout [{}], expected [{}]", inputName,
                      found.str(), wanted.str());
    }
    const int64_t sequence[] = {1, plan.sequence_length()};
    Layout columns = wanted;
    columns.dims[0] = {};
    columns.rank = columns.dims[1].count == 0 ? 0 : 2;
    MEGA_RETURN_IF_ERROR_CONTEXT(columns.verify(meshOf(plan), sequence),
                                 "input {}", inputName);
    const int64_t extent =
        wanted.localExtent(1, plan.sequence_length(), meshOf(plan));
    if (type.type != DataType::I32 || type.rank != 2 || !type.isContiguous() ||
        type.dims[0] != plan.micro_batch_size() || type.dims[1] != extent) {
      return badInput("input {} is {}, expected {}x{}xi32", inputName,
                      toString(type), plan.micro_batch_size(), extent);
    }
    const plan::Region &region = *plan.regions()->Get(input.buffer()->region());
    if (region.part() != plan::Part::Input) {
      return badInput("input {} lies in region {} of part {}, expected part {}",
                      inputName, text(region.name()),
                      plan::EnumNamePart(region.part()),
                      plan::EnumNamePart(plan::Part::Input));
    }
    const int64_t most =
        isTokenInput(inputName) ? int64_t{plan.vocabulary()} : kNoLimit;
    if (input.limit() == 0 || input.limit() > static_cast<uint64_t>(most)) {
      return badInput("ids of input {} are below {}, expected 1 to {}",
                      inputName, input.limit(), most);
    }
  }
  return Status::ok();
}

Status checkLossTerms(const plan::Plan &plan) {
  if (length(plan.loss_terms()) == 0) {
    return badInput("the plan has no loss term");
  }
  UniqueNames names("loss term");
  for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
    const plan::LossTerm &term = *plan.loss_terms()->Get(i);
    const std::string_view termName = text(term.name());
    MEGA_RETURN_IF_ERROR(names.add(i, termName));
    if (!std::isfinite(term.weight())) {
      return badInput("loss term {} has weight {}", termName, term.weight());
    }
    MEGA_RETURN_IF_ERROR_CONTEXT(checkScalar(plan, term.sum(), DataType::F64),
                                 "sum of loss term {}", termName);
    MEGA_RETURN_IF_ERROR_CONTEXT(checkScalar(plan, term.count(), DataType::I64),
                                 "count of loss term {}", termName);
  }
  // Eval-only plans compute no gradient.
  if (plan.gradient_square_sum()) {
    MEGA_RETURN_IF_ERROR_CONTEXT(
        checkScalar(plan, plan.gradient_square_sum(), DataType::F64),
        "gradient_square_sum");
  }
  return Status::ok();
}

} // namespace mega
