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
  /// What is in a slot: the action that took it, and the programs that have
  /// saved into it.
  struct Pending {
    size_t action;
    plan::Action first;
    std::vector<uint32_t> savers;
  };
  using SlotKey = std::pair<uint32_t, uint32_t>; // region, slot

  Status checkSlots();
  Status checkNeeds(const plan::Action &action);
  Status checkTaken(const ProgramEffects &effects, uint32_t region) const;
  Status runPart(size_t number, const plan::Action &action,
                 plan::ActionKind kind);
  Status checkReads(const plan::Action &action, const Pending &pending,
                    uint32_t region) const;
  Status checkRead(const Pending &pending, uint32_t reader, uint32_t region);
  Status checkNeed(const plan::Action &action, const NeededBytes &need);
  std::set<uint32_t> poolsOf(const ProgramEffects &effects) const;
  static bool isFixed(const MemorySpace &space) {
    return space.perSlot == 0 && space.perMicroBatch == 0;
  }

  plan::ActionKind lastReader(uint32_t part, uint32_t region) const {
    return untilWeight.contains({part, region}) ? plan::ActionKind::Weight
                                                : plan::ActionKind::Backward;
  }
  uint32_t partOf(const Pending &pending) const {
    return plan.programs()->Get(pending.first.program())->part();
  }
  static std::string_view nameOf(plan::ActionKind reader) {
    return reader == plan::ActionKind::Weight ? "weight" : "backward";
  }
  std::string_view regionName(uint32_t region) const {
    return text(plan.regions()->Get(region)->name());
  }
  bool isPool(uint32_t region) const {
    return mega::partOf(plan, region) == plan::Part::Pool;
  }

  int64_t slotIn(const plan::Action &action, uint32_t region) const {
    return mega::partOf(plan, region) == plan::Part::Boundary ? action.buffer()
                                                              : action.slot();
  }

  const VerifierContext &context;
  const plan::Plan &plan;
  const plan::EntryPoint &entry;
  const std::vector<AddressLimits> limits;
  /// By program: the pools that it touches, and what it needs outside of them,
  /// at addresses that do not move and at others.
  std::map<uint32_t, std::set<uint32_t>> pools;
  std::map<uint32_t, std::vector<const NeededBytes *>> fixedNeeds;
  std::map<uint32_t, std::vector<const NeededBytes *>> movingNeeds;
  /// What has been written, by region; not for pools.
  std::map<uint32_t, ByteSet> written;
  /// Programs whose fixed addresses were found written and were added.
  std::set<uint32_t> settled;
  std::map<SlotKey, Pending> pending;
  /// Savers, reader and region that were found to fit.
  std::set<std::tuple<std::vector<uint32_t>, uint32_t, uint32_t>> known;
  /// Part and pool of the frames that live until a weight.
  std::set<std::pair<uint32_t, uint32_t>> untilWeight;
};

Status StageExecution::initialise() {
  for (uint32_t p = 0; p < context.effects.size(); ++p) {
    pools[p] = poolsOf(context.effects[p]);
    for (const NeededBytes &need : context.effects[p].reads) {
      if (!isPool(need.space.region)) {
        (isFixed(need.space) ? fixedNeeds : movingNeeds)[p].push_back(&need);
      }
    }
  }
  for (const uint32_t p : programsOf(entry)) {
    if (plan.programs()->Get(p)->kind() == plan::ActionKind::Weight) {
      for (const uint32_t region : pools[p]) {
        untilWeight.emplace(plan.programs()->Get(p)->part(), region);
      }
    }
  }
  const auto add = [this](const Place &place, int64_t bytes) {
    written[place.region].add(
        Box::interval(place.offset, place.offset + bytes));
  };
  for (uint32_t i = 0; i < length(plan.parameters()); ++i) {
    const plan::Parameter &parameter = *plan.parameters()->Get(i);
    const plan::Buffer &weight = *parameter.weight();
    const int64_t stride = weight.per_instance();
    // Those of all layers: rows of a box, if they are apart.
    const Box one =
        Box::of(bufferType(weight),
                weight.offset() + int64_t{parameter.first_instance()} * stride);
    if (one.isInterval() && stride >= one.width) {
      written[weight.region()].add(
          {one.begin, one.width, stride, int64_t{parameter.count()}});
      continue;
    }
    for (uint32_t k = 0; k < parameter.count(); ++k) {
      written[weight.region()].add(one.shifted(k * stride));
    }
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
    MEGA_RETURN_IF_ERROR(checkNeeds(plan::Action(p, 0, 0, 0)));
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

Status StageExecution::checkNeeds(const plan::Action &action) {
  const uint32_t p = action.program();
  if (settled.count(p) == 0) {
    for (const NeededBytes *need : fixedNeeds[p]) {
      MEGA_RETURN_IF_ERROR(checkNeed(action, *need));
    }
  }
  for (const NeededBytes *need : movingNeeds[p]) {
    MEGA_RETURN_IF_ERROR(checkNeed(action, *need));
  }
  return Status::ok();
}

Status StageExecution::checkNeed(const plan::Action &action,
                                 const NeededBytes &need) {
  const MemorySpace &space = need.space;
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
  return Status::ok();
}

std::set<uint32_t>
StageExecution::poolsOf(const ProgramEffects &effects) const {
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

/// What takes a free slot has written all that it reads there.
Status StageExecution::checkTaken(const ProgramEffects &effects,
                                  uint32_t region) const {
  for (const NeededBytes &need : effects.reads) {
    if (need.space.region == region) {
      return badInput("{}: in run {} it reads byte {} of pool {}, into which "
                      "nothing has saved since the slot was free",
                      describe(plan, need.site), need.run, need.box.begin,
                      regionName(region));
    }
  }
  return Status::ok();
}

/// A forward, or a backward that leaves something to its weight, takes a free
/// slot; what reads a slot last frees it.
Status StageExecution::runPart(size_t number, const plan::Action &action,
                               plan::ActionKind kind) {
  const ProgramEffects &effects = context.effects[action.program()];
  const uint32_t part = plan.programs()->Get(action.program())->part();
  for (uint32_t region : pools[action.program()]) {
    const bool last = kind == lastReader(part, region);
    const SlotKey key(region, action.slot());
    auto it = pending.find(key);
    if (it == pending.end()) {
      MEGA_RETURN_IF_ERROR(checkTaken(effects, region));
      if (last) {
        return badInput("it writes slot {} of pool {}, which nothing reads",
                        action.slot(), regionName(region));
      }
      pending.emplace(key, Pending{number, action, {action.program()}});
      continue;
    }
    if (kind == plan::ActionKind::Forward) {
      return badInput("it writes slot {} of pool {}, where {} still waits for "
                      "its {}",
                      action.slot(), regionName(region),
                      actionName(plan, it->second.action, it->second.first),
                      nameOf(lastReader(partOf(it->second), region)));
    }
    if (it->second.first.micro_batch() != action.micro_batch()) {
      return badInput("it reads slot {} of pool {}, which holds micro-batch {} "
                      "from {}",
                      action.slot(), regionName(region),
                      it->second.first.micro_batch(),
                      actionName(plan, it->second.action, it->second.first));
    }
    if (known.emplace(it->second.savers, action.program(), region).second) {
      MEGA_RETURN_IF_ERROR(checkReads(action, it->second, region));
      MEGA_RETURN_IF_ERROR(last
                               ? checkRead(it->second, action.program(), region)
                               : Status::ok());
    }
    if (last) {
      pending.erase(it);
    } else {
      it->second.savers.push_back(action.program());
    }
  }
  return Status::ok();
}

/// `action` reads only what was saved.
Status StageExecution::checkReads(const plan::Action &action,
                                  const Pending &pending,
                                  uint32_t region) const {
  for (const NeededBytes &need : context.effects[action.program()].reads) {
    if (need.space.region != region) {
      continue;
    }
    ByteSet saved;
    for (uint32_t saver : pending.savers) {
      const auto &writes = context.effects[saver].writes;
      if (const auto it = writes.find(need.space); it != writes.end()) {
        saved.add(it->second);
      }
    }
    if (!saved.covers(need.box)) {
      return badInput(
          "{}: in run {} it reads byte {} of pool {}, which {} has not saved",
          describe(plan, need.site), need.run,
          saved.firstMissing(ByteSet(need.box)).value_or(need.box.begin),
          regionName(region),
          text(plan.programs()->Get(pending.first.program())->name()));
    }
  }
  return Status::ok();
}

/// Something of every frame is read, by `reader` or by a saver before it.
Status StageExecution::checkRead(const Pending &pending, uint32_t reader,
                                 uint32_t region) {
  std::vector<uint32_t> readers = pending.savers;
  readers.push_back(reader);
  for (size_t s = 0; s < pending.savers.size(); ++s) {
    ByteSet read;
    for (size_t r = s + 1; r < readers.size(); ++r) {
      for (const NeededBytes &need : context.effects[readers[r]].reads) {
        if (need.space.region == region) {
          read.add(need.box);
        }
      }
    }
    for (const SavedFrame &frame : context.effects[pending.savers[s]].frames) {
      if (frame.space.region == region && !read.overlaps(frame.hull)) {
        return badInput("{}: in run {} it saves a frame at byte {} of pool {} "
                        "that {} does not read",
                        describe(plan, frame.site), frame.run, frame.hull.begin,
                        regionName(region),
                        text(plan.programs()->Get(reader)->name()));
      }
    }
  }
  return Status::ok();
}

Status StageExecution::act(size_t number, const plan::Action &action) {
  const ProgramEffects &effects = context.effects[action.program()];
  const plan::ActionKind kind = plan.programs()->Get(action.program())->kind();
  MEGA_RETURN_IF_ERROR(checkNeeds(action));
  if (isRun(kind)) {
    MEGA_RETURN_IF_ERROR(runPart(number, action, kind));
  } else if (const auto &regions = pools[action.program()]; !regions.empty()) {
    return badInput("it touches pool {}, which only runs of a part may",
                    regionName(*regions.begin()));
  }
  const bool seen = !settled.insert(action.program()).second;
  for (const auto &[space, bytes] : effects.writes) {
    const bool fixed = space.perSlot == 0 && space.perMicroBatch == 0;
    if (!isPool(space.region) && !(seen && fixed)) {
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
    return badInput("{} saves into slot {} of pool {}, and no {} reads it",
                    actionName(plan, left.action, left.first), key.second,
                    regionName(key.first),
                    nameOf(lastReader(partOf(left), key.first)));
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
                                   : "run or transfer of a micro-batch");
    }
    current = phase(kind);
    std::vector<bool> &batches = done[action.program()];
    const size_t expected = isPerMicroBatch(kind) ? entry.micro_batches() : 1;
    if (batches.empty()) {
      // Each is expected once: a schedule too short for that is wrong.
      if (expected > actions.size()) {
        return badInput(
            "{} actions cannot run {} for {} micro-batches", actions.size(),
            text(plan.programs()->Get(action.program())->name()), expected);
      }
      batches.resize(expected);
    }
    const size_t index = isPerMicroBatch(kind) ? action.micro_batch() : 0;
    if (batches[index]) {
      return badInput("{} runs a second time", actionName(plan, i, action));
    }
    batches[index] = true;
  }
  size_t forwards = 0;
  size_t backwards = 0;
  size_t weights = 0;
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
    weights += kind == plan::ActionKind::Weight;
  }
  if (forwards == 0 || (backwards != 0 && backwards != forwards)) {
    return badInput("it runs {} forward and {} backward programs per "
                    "micro-batch, expected one backward for each forward",
                    forwards, backwards);
  }
  if (weights != 0 && weights != backwards) {
    return badInput("it runs {} weight programs per micro-batch, expected none "
                    "or one for each of {} backwards",
                    weights, backwards);
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
