//===- VerifySchedule.cpp - Order, slots, what actions need ---------------===//
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/Verifier.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace mega {
namespace {

std::string actionName(const plan::Plan &plan, size_t number,
                       const plan::Action &action) {
  return fmt::format("action {}, {}(micro-batch {}, slot {})", number,
                     text(plan.programs()->Get(action.program())->name()),
                     action.micro_batch(), action.slot());
}

bool perMicroBatch(plan::ActionKind kind) {
  return kind == plan::ActionKind::Forward ||
         kind == plan::ActionKind::Backward ||
         kind == plan::ActionKind::Transfer;
}

/// 0 prologue, 1 micro-batches, 2 finish.
int phase(plan::ActionKind kind) {
  return kind == plan::ActionKind::Finish     ? 2
         : kind == plan::ActionKind::Prologue ? 0
                                              : 1;
}

/// Executes the actions of one stage over abstract memory.
class StageExecution {
public:
  StageExecution(const VerifierContext &context, const plan::EntryPoint &entry)
      : context(context), plan(context.plan), entry(entry),
        limits(actionLimits(plan)) {}

  Status initialise();
  Status act(size_t number, const plan::Action &action);
  Status complete();

private:
  struct Pending {
    size_t action;
    plan::Action forward;
  };
  using SlotKey = std::pair<uint32_t, uint32_t>; // region, slot

  Status checkSlots();
  Status checkNeeds(const plan::Action &action, const ProgramEffects &effects);
  Status forward(size_t number, const plan::Action &action);
  Status backward(const plan::Action &action);
  Status checkPair(const plan::Action &action, const Pending &pending,
                   uint32_t region);
  Status checkFrames(uint32_t forward, uint32_t backward, uint32_t region);
  std::set<uint32_t> pools(const ProgramEffects &effects) const;

  std::string_view regionName(uint32_t region) const {
    return text(plan.regions()->Get(region)->name());
  }
  bool isPool(uint32_t region) const {
    return partOf(plan, region) == plan::Part::Pool;
  }

  int64_t slotIn(const plan::Action &action, uint32_t region) const {
    return partOf(plan, region) == plan::Part::Boundary ? action.buffer()
                                                        : action.slot();
  }

  const VerifierContext &context;
  const plan::Plan &plan;
  const plan::EntryPoint &entry;
  const std::vector<AddressLimits> limits;
  /// What has been written, by region; not for pools.
  std::map<uint32_t, ByteSet> written;
  /// Programs whose fixed addresses were found written and were added.
  std::set<uint32_t> settled;
  std::map<SlotKey, Pending> pending;
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> pairs;
};

Status StageExecution::initialise() {
  const auto add = [this](const Place &place, int64_t bytes) {
    written[place.region].add(
        Box::interval(place.offset, place.offset + bytes));
  };
  for (const LogicalParameter &parameter : context.parameters) {
    add(parameter.weight, parameter.elements * byteSize(DataType::F32));
  }
  // Allocated as zeros, and only AdamW changes them (V7).
  for (const OptimizerRange &range : context.ranges) {
    add(range.weight, range.bytes);
    add(range.moment, range.stateBytes);
    add(range.variance, range.stateBytes);
  }
  for (uint32_t p = 0; p < context.effects.size(); ++p) {
    if (plan.programs()->Get(p)->kind() != plan::ActionKind::Setup) {
      continue;
    }
    MEGA_RETURN_IF_ERROR(
        checkNeeds(plan::Action(p, 0, 0, 0), context.effects[p]));
    for (const auto &[space, bytes] : context.effects[p].writes) {
      written[space.region].add(bytes);
    }
  }
  for (uint32_t i = 0; i < length(plan.inputs()); ++i) {
    const plan::Buffer &buffer = *plan.inputs()->Get(i)->buffer();
    for (uint32_t m = 0; m < entry.micro_batches(); ++m) {
      add({buffer.region(), buffer.offset() + m * buffer.per_micro_batch()},
          bufferType(buffer).extentBytes());
    }
  }
  return checkSlots();
}

/// Slots of a pool do not overlap, whatever programs share them.
Status StageExecution::checkSlots() {
  std::map<MemorySpace, ByteSet> used;
  std::map<uint32_t, MemorySpace> spaces;
  uint64_t lastSlot = 0;
  for (uint32_t p : programsOf(entry)) {
    lastSlot = std::max(lastSlot, limits[p].slot);
    for (const auto &[space, bytes] : context.effects[p].writes) {
      if (!isPool(space.region) || bytes.empty()) {
        continue;
      }
      if (space.perMicroBatch != 0) {
        return badInput("pool {} is addressed by micro-batch, expected by slot",
                        regionName(space.region));
      }
      if (const auto it = spaces.emplace(space.region, space).first;
          it->second != space) {
        return badInput("slots of pool {} are {} and {} bytes apart",
                        regionName(space.region), it->second.perSlot,
                        space.perSlot);
      }
      used[space].add(bytes);
    }
  }
  for (const auto &[space, bytes] : used) {
    const auto [begin, end] = bytes.hull();
    if (lastSlot == 0 || space.perSlot >= end - begin) {
      continue;
    }
    // Frames of different slots may interleave: look at every distance.
    for (uint64_t d = 1; d <= lastSlot; ++d) {
      const int64_t shift = space.perSlot * static_cast<int64_t>(d);
      if (shift >= end - begin) {
        break;
      }
      if (bytes.overlaps(bytes, shift)) {
        return badInput("slots of pool {} overlap: they are {} bytes apart, "
                        "their frames take {}",
                        regionName(space.region), space.perSlot, end - begin);
      }
    }
  }
  return Status::ok();
}

Status StageExecution::checkNeeds(const plan::Action &action,
                                  const ProgramEffects &effects) {
  const bool known = settled.count(action.program()) != 0;
  for (const NeededBytes &need : effects.reads) {
    const MemorySpace &space = need.space;
    const bool fixed = space.perSlot == 0 && space.perMicroBatch == 0;
    if (isPool(space.region) || (known && fixed)) {
      continue;
    }
    const Box box =
        need.box.shifted(slotIn(action, space.region) * space.perSlot +
                         action.micro_batch() * space.perMicroBatch);
    if (const ByteSet &bytes = written[space.region]; !bytes.covers(box)) {
      return badInput("{}: in run {} it reads byte {} of region {}, which "
                      "nothing wrote before in this step",
                      describe(plan, need.site), need.run,
                      bytes.firstMissing(ByteSet(box)).value_or(box.begin),
                      regionName(space.region));
    }
  }
  return Status::ok();
}

std::set<uint32_t> StageExecution::pools(const ProgramEffects &effects) const {
  std::set<uint32_t> regions;
  for (const auto &[space, bytes] : effects.writes) {
    if (isPool(space.region) && !bytes.empty()) {
      regions.insert(space.region);
    }
  }
  for (const NeededBytes &need : effects.reads) {
    if (isPool(need.space.region)) {
      regions.insert(need.space.region);
    }
  }
  return regions;
}

Status StageExecution::forward(size_t number, const plan::Action &action) {
  const ProgramEffects &effects = context.effects[action.program()];
  for (const NeededBytes &need : effects.reads) {
    if (isPool(need.space.region)) {
      return badInput("{}: in run {} a forward reads byte {} of pool {}, which "
                      "it has not written",
                      describe(plan, need.site), need.run, need.box.begin,
                      regionName(need.space.region));
    }
  }
  for (uint32_t region : pools(effects)) {
    const auto [it, free] = pending.emplace(SlotKey(region, action.slot()),
                                            Pending{number, action});
    if (!free) {
      return badInput("it writes slot {} of pool {}, where {} still waits for "
                      "its backward",
                      action.slot(), regionName(region),
                      actionName(plan, it->second.action, it->second.forward));
    }
  }
  return Status::ok();
}

/// `backward` reads only what `forward` wrote, and something of every frame.
Status StageExecution::checkFrames(uint32_t forward, uint32_t backward,
                                   uint32_t region) {
  const ProgramEffects &source = context.effects[forward];
  const ProgramEffects &sink = context.effects[backward];
  ByteSet read;
  for (const NeededBytes &need : sink.reads) {
    if (need.space.region != region) {
      continue;
    }
    const auto it = source.writes.find(need.space);
    if (it == source.writes.end() || !it->second.covers(need.box)) {
      return badInput(
          "{}: in run {} it reads byte {} of pool {}, which {} has "
          "not saved",
          describe(plan, need.site), need.run,
          it == source.writes.end() ? need.box.begin
                                    : it->second.firstMissing(ByteSet(need.box))
                                          .value_or(need.box.begin),
          regionName(region), text(plan.programs()->Get(forward)->name()));
    }
    read.add(need.box);
  }
  for (const SavedFrame &frame : source.frames) {
    if (frame.space.region == region && !read.overlaps(frame.hull)) {
      return badInput("{}: in run {} it saves a frame at byte {} of pool {} "
                      "that {} does not read",
                      describe(plan, frame.site), frame.run, frame.hull.begin,
                      regionName(region),
                      text(plan.programs()->Get(backward)->name()));
    }
  }
  return Status::ok();
}

Status StageExecution::checkPair(const plan::Action &action,
                                 const Pending &pending, uint32_t region) {
  if (pending.forward.micro_batch() != action.micro_batch()) {
    return badInput("it reads slot {} of pool {}, which holds micro-batch {} "
                    "from {}",
                    action.slot(), regionName(region),
                    pending.forward.micro_batch(),
                    actionName(plan, pending.action, pending.forward));
  }
  const uint32_t forward = pending.forward.program();
  if (pairs.emplace(forward, action.program(), region).second) {
    MEGA_RETURN_IF_ERROR(checkFrames(forward, action.program(), region));
  }
  return Status::ok();
}

Status StageExecution::backward(const plan::Action &action) {
  for (uint32_t region : pools(context.effects[action.program()])) {
    const auto it = pending.find(SlotKey(region, action.slot()));
    if (it == pending.end()) {
      return badInput("it reads slot {} of pool {}, into which no forward has "
                      "saved since the last backward",
                      action.slot(), regionName(region));
    }
    MEGA_RETURN_IF_ERROR(checkPair(action, it->second, region));
    pending.erase(it);
  }
  return Status::ok();
}

Status StageExecution::act(size_t number, const plan::Action &action) {
  const ProgramEffects &effects = context.effects[action.program()];
  const plan::ActionKind kind = plan.programs()->Get(action.program())->kind();
  MEGA_RETURN_IF_ERROR(checkNeeds(action, effects));
  if (kind == plan::ActionKind::Forward) {
    MEGA_RETURN_IF_ERROR(forward(number, action));
  } else if (kind == plan::ActionKind::Backward) {
    MEGA_RETURN_IF_ERROR(backward(action));
  } else if (const auto regions = pools(effects); !regions.empty()) {
    return badInput("it touches pool {}, which only forward and backward may",
                    regionName(*regions.begin()));
  }
  const bool known = !settled.insert(action.program()).second;
  for (const auto &[space, bytes] : effects.writes) {
    const bool fixed = space.perSlot == 0 && space.perMicroBatch == 0;
    if (!isPool(space.region) && !(known && fixed)) {
      written[space.region].add(bytes,
                                slotIn(action, space.region) * space.perSlot +
                                    action.micro_batch() * space.perMicroBatch);
    }
  }
  return Status::ok();
}

Status StageExecution::complete() {
  if (!pending.empty()) {
    const auto &[key, left] = *pending.begin();
    return badInput(
        "{} saves into slot {} of pool {}, and no backward reads it",
        actionName(plan, left.action, left.forward), key.second,
        regionName(key.first));
  }
  return Status::ok();
}

} // namespace

Status verifyOrder(const plan::Plan &plan, const plan::EntryPoint &entry,
                   const plan::Stage &stage) {
  const auto actions = elements(stage.actions());
  std::map<uint32_t, std::vector<bool>> done;
  int current = 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    const plan::Action &action = actions[i];
    const plan::ActionKind kind =
        plan.programs()->Get(action.program())->kind();
    if (phase(kind) < current) {
      return badInput("{}, a {}, comes after a {}", actionName(plan, i, action),
                      plan::EnumNameActionKind(kind),
                      current == 2 ? "Finish"
                                   : "Forward, Backward or Transfer");
    }
    current = phase(kind);
    std::vector<bool> &batches = done[action.program()];
    const size_t expected = perMicroBatch(kind) ? entry.micro_batches() : 1;
    if (batches.empty()) {
      // Each is expected once: a schedule too short for that is wrong.
      if (expected > actions.size()) {
        return badInput(
            "{} actions cannot run {} for {} micro-batches", actions.size(),
            text(plan.programs()->Get(action.program())->name()), expected);
      }
      batches.resize(expected);
    }
    const size_t index = perMicroBatch(kind) ? action.micro_batch() : 0;
    if (batches[index]) {
      return badInput("{} runs a second time", actionName(plan, i, action));
    }
    batches[index] = true;
  }
  size_t forwards = 0;
  size_t backwards = 0;
  for (const auto &[program, batches] : done) {
    const auto missing = std::find(batches.begin(), batches.end(), false);
    if (missing != batches.end()) {
      return badInput("{} does not run for micro-batch {} of {}",
                      text(plan.programs()->Get(program)->name()),
                      missing - batches.begin(), batches.size());
    }
    const plan::ActionKind kind = plan.programs()->Get(program)->kind();
    forwards += kind == plan::ActionKind::Forward;
    backwards += kind == plan::ActionKind::Backward;
  }
  if (forwards == 0 || (backwards != 0 && backwards != forwards)) {
    return badInput("it runs {} forward and {} backward programs per "
                    "micro-batch, expected one backward for each forward",
                    forwards, backwards);
  }
  if ((text(entry.name()) == "train") != (backwards != 0)) {
    return badInput("it runs {} backward programs, expected {}", backwards,
                    backwards == 0 ? "one for each forward to train"
                                   : "none in an entry point but train");
  }
  return Status::ok();
}

Status verifyActions(const VerifierContext &context,
                     const plan::EntryPoint &entry, const plan::Stage &stage) {
  StageExecution execution(context, entry);
  MEGA_RETURN_IF_ERROR(execution.initialise());
  const auto actions = elements(stage.actions());
  for (size_t i = 0; i < actions.size(); ++i) {
    MEGA_RETURN_IF_ERROR_CONTEXT(execution.act(i, actions[i]), "{}",
                                 actionName(context.plan, i, actions[i]));
  }
  return execution.complete();
}

} // namespace mega
