//===- CheckSchedule.cpp - Programs, entry points, addresses --------------===//
#include "runtime/plan/Layout.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanLayouts.h"

#include <algorithm>

namespace mega {
namespace {

/// Kernel launches of one program, repetitions included.
constexpr uint64_t kMaxLaunchesPerProgram = uint64_t{1} << 18;
constexpr uint32_t kMaxMicroBatches = 1 << 20;

Status checkProgramArgument(const plan::Plan &plan,
                            const plan::Buffer &buffer) {
  MEGA_RETURN_IF_ERROR(checkPlacedBuffer(plan, &buffer, {}));
  if (buffer.per_instance() != 0 || buffer.per_frame() != 0) {
    return badInput("per_instance is {} and per_frame {}, expected 0: all runs "
                    "of a call have the same arguments",
                    buffer.per_instance(), buffer.per_frame());
  }
  return Status::ok();
}

Status checkCall(const plan::Plan &plan, const plan::Program &program,
                 const plan::Call &call) {
  if (call.function() >= length(plan.functions())) {
    return badInput("function {} of {}", call.function(),
                    length(plan.functions()));
  }
  const plan::Function &function = *plan.functions()->Get(call.function());
  if (call.count() == 0) {
    return badInput("{} runs 0 times", text(function.name()));
  }
  if (call.reverse() > 1) {
    return badInput("reverse is {}, expected 0 or 1", call.reverse());
  }
  const auto expected = elements(function.arguments());
  const auto arguments = elements(program.arguments());
  if (call.first_argument() > arguments.size() ||
      expected.size() > arguments.size() - call.first_argument()) {
    return badInput("{} takes {} arguments, the program has {} from number {}",
                    text(function.name()), expected.size(), arguments.size(),
                    call.first_argument());
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const BufferType want = bufferType(expected[i]);
    const BufferType given = bufferType(arguments[call.first_argument() + i]);
    if (want != given) {
      return badInput("argument {} of {} is {}, expected {}", i,
                      text(function.name()), toString(given), toString(want));
    }
  }
  return Status::ok();
}

Status checkProgram(const plan::Plan &plan, const plan::Program &program) {
  if (program.kind() > plan::ActionKind::MAX) {
    return badInput("kind {}, expected 0 to {}",
                    static_cast<int>(program.kind()),
                    static_cast<int>(plan::ActionKind::MAX));
  }
  const auto arguments = elements(program.arguments());
  for (size_t i = 0; i < arguments.size(); ++i) {
    MEGA_RETURN_IF_ERROR_CONTEXT(checkProgramArgument(plan, arguments[i]),
                                 "argument {}", i);
  }
  uint64_t runs = 0;
  uint64_t launches = 0;
  const auto calls = elements(program.calls());
  for (size_t i = 0; i < calls.size(); ++i) {
    MEGA_RETURN_IF_ERROR_CONTEXT(checkCall(plan, program, calls[i]), "call {}",
                                 i);
    runs += calls[i].count();
    launches += uint64_t{calls[i].count()} *
                length(plan.functions()->Get(calls[i].function())->launches());
    if (runs > kMaxRunsPerProgram || launches > kMaxLaunchesPerProgram) {
      return badInput("calls 0 to {} run {} functions with {} launches, at "
                      "most {} and {} are possible",
                      i, runs, launches, kMaxRunsPerProgram,
                      kMaxLaunchesPerProgram);
    }
  }
  return Status::ok();
}

uint64_t replicasOf(const plan::Plan &plan) {
  for (const plan::Axis &axis : elements(plan.mesh())) {
    if (axis.name() == static_cast<uint8_t>(plan::AxisName::dp)) {
      return axis.size();
    }
  }
  return 1;
}

Status checkAction(const plan::Plan &plan, const plan::EntryPoint &entry,
                   const plan::Action &action) {
  if (action.program() >= length(plan.programs())) {
    return badInput("program {} of {}", action.program(),
                    length(plan.programs()));
  }
  const plan::Program &program = *plan.programs()->Get(action.program());
  if (program.kind() == plan::ActionKind::Setup) {
    return badInput("{} is a setup, which runs once and in no step",
                    text(program.name()));
  }
  if (action.micro_batch() >= entry.micro_batches()) {
    return badInput("{} of micro-batch {} of {}", text(program.name()),
                    action.micro_batch(), entry.micro_batches());
  }
  const bool between = meshOf(plan).size(Axis::Pp) > 1 &&
                       isPerMicroBatch(program.kind()) &&
                       program.kind() != plan::ActionKind::Weight;
  if (action.buffer() != 0 && !between) {
    return badInput("its buffer is {}, but it is not between stages: expected "
                    "0",
                    action.buffer());
  }
  return Status::ok();
}

Status checkEntryPoint(const plan::Plan &plan, const plan::EntryPoint &entry) {
  if (entry.micro_batches() == 0 || entry.micro_batches() > kMaxMicroBatches) {
    return badInput("it has {} micro-batches, expected 1 to {}",
                    entry.micro_batches(), kMaxMicroBatches);
  }
  const uint64_t batch = uint64_t{entry.micro_batches()} *
                         plan.micro_batch_size() * replicasOf(plan);
  if (text(entry.name()) == "train" && batch != plan.global_batch_size()) {
    return badInput("{} micro-batches of {} on {} replicas are a batch of {}, "
                    "not {}",
                    entry.micro_batches(), plan.micro_batch_size(),
                    replicasOf(plan), batch, plan.global_batch_size());
  }
  // A plan of several stages has a plan for each (Plan.stages).
  if (length(entry.stages()) != 1) {
    return badInput("it has {} stages, expected 1", length(entry.stages()));
  }
  for (uint32_t stage = 0; stage < length(entry.stages()); ++stage) {
    const auto actions = elements(entry.stages()->Get(stage)->actions());
    for (size_t i = 0; i < actions.size(); ++i) {
      MEGA_RETURN_IF_ERROR_CONTEXT(checkAction(plan, entry, actions[i]),
                                   "stage {}: action {}", stage, i);
    }
  }
  return Status::ok();
}

template <typename Visit>
void forEachAction(const plan::Plan &plan, Visit visit) {
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(e);
    for (uint32_t s = 0; s < length(entry.stages()); ++s) {
      for (const plan::Action &action :
           elements(entry.stages()->Get(s)->actions())) {
        visit(action);
      }
    }
  }
}

Status checkProgramAddresses(const plan::Plan &plan,
                             const plan::Program &program,
                             const AddressLimits &limits) {
  const auto arguments = elements(program.arguments());
  for (size_t i = 0; i < arguments.size(); ++i) {
    MEGA_RETURN_IF_ERROR_CONTEXT(checkPlacement(plan, arguments[i], limits),
                                 "argument {}", i);
  }
  const auto calls = elements(program.calls());
  for (size_t i = 0; i < calls.size(); ++i) {
    const plan::Call &call = calls[i];
    const plan::Function &function = *plan.functions()->Get(call.function());
    AddressLimits last = limits;
    last.instance = uint64_t{call.first_instance()} + call.count() - 1;
    last.frame = uint64_t{call.first_frame()} + call.count() - 1;
    const auto buffers = elements(function.buffers());
    for (size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].space() == static_cast<uint8_t>(plan::Space::Region)) {
        MEGA_RETURN_IF_ERROR_CONTEXT(checkPlacement(plan, buffers[b], last),
                                     "call {} of {}: buffer {}", i,
                                     text(function.name()), b);
      }
    }
  }
  return Status::ok();
}

} // namespace

std::vector<AddressLimits> actionLimits(const plan::Plan &plan) {
  std::vector<AddressLimits> limits(length(plan.programs()));
  forEachAction(plan, [&](const plan::Action &action) {
    AddressLimits &l = limits[action.program()];
    l.slot = std::max<uint64_t>(l.slot, action.slot());
    l.buffer = std::max<uint64_t>(l.buffer, action.buffer());
    l.microBatch = std::max<uint64_t>(l.microBatch, action.micro_batch());
  });
  return limits;
}

uint32_t maxMicroBatches(const plan::Plan &plan) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < length(plan.entry_points()); ++i) {
    most = std::max(most, plan.entry_points()->Get(i)->micro_batches());
  }
  return most;
}

Status checkPrograms(const plan::Plan &plan) {
  UniqueNames names("program");
  for (uint32_t i = 0; i < length(plan.programs()); ++i) {
    const plan::Program &program = *plan.programs()->Get(i);
    const std::string_view programName = text(program.name());
    MEGA_RETURN_IF_ERROR(names.add(i, programName));
    MEGA_RETURN_IF_ERROR_CONTEXT(checkProgram(plan, program), "program {}",
                                 programName);
  }
  return Status::ok();
}

Status checkEntryPoints(const plan::Plan &plan) {
  if (length(plan.entry_points()) == 0) {
    return badInput("the plan has no entry point");
  }
  UniqueNames names("entry point");
  for (uint32_t i = 0; i < length(plan.entry_points()); ++i) {
    const plan::EntryPoint &entry = *plan.entry_points()->Get(i);
    const std::string_view entryName = text(entry.name());
    MEGA_RETURN_IF_ERROR(names.add(i, entryName));
    MEGA_RETURN_IF_ERROR_CONTEXT(checkEntryPoint(plan, entry), "entry point {}",
                                 entryName);
  }
  return Status::ok();
}

Status checkAddresses(const plan::Plan &plan) {
  const std::vector<AddressLimits> limits = actionLimits(plan);
  for (uint32_t i = 0; i < length(plan.programs()); ++i) {
    const plan::Program &program = *plan.programs()->Get(i);
    MEGA_RETURN_IF_ERROR_CONTEXT(
        checkProgramAddresses(plan, program, limits[i]), "program {}",
        text(program.name()));
  }
  return Status::ok();
}

} // namespace mega
