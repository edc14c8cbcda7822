//===- ProgramEffects.cpp - What one action does to memory ----------------===//
#include "runtime/plan/ProgramEffects.h"

#include <algorithm>

namespace mega {
namespace {

Status checkSpaces(const plan::Plan &plan, const ProgramEffects &effects) {
  std::map<uint32_t, MemorySpace> written;
  for (const CallEffects &call : effects.calls) {
    for (const Touch &touch : call.writes) {
      written.emplace(touch.space.region, touch.space);
    }
  }
  for (const CallEffects &call : effects.calls) {
    for (const auto *touches : {&call.reads, &call.writes}) {
      for (const Touch &touch : *touches) {
        const auto it = written.find(touch.space.region);
        if (it == written.end()) {
          continue;
        }
        const plan::Region &region = *plan.regions()->Get(touch.space.region);
        if (region.part() == plan::Part::Input) {
          return badInput("{} is in a program that writes input region {}",
                          describe(plan, touch.site), text(region.name()));
        }
        if (it->second != touch.space) {
          return badInput(
              "{} has strides {} per slot and {} per micro-batch in "
              "region {}, another buffer of the program {} and {}",
              describe(plan, touch.site), touch.space.perSlot,
              touch.space.perMicroBatch, text(region.name()),
              it->second.perSlot, it->second.perMicroBatch);
        }
      }
    }
  }
  return Status::ok();
}

class Execution {
public:
  Execution(const plan::Plan &plan, ProgramEffects &effects)
      : plan(plan), effects(effects) {}

  /// One run of one call: what it needs, then what it leaves.
  Status run(const CallEffects &call, uint32_t number) {
    for (const Touch &touch : call.reads) {
      MEGA_RETURN_IF_ERROR(
          need(touch, touch.box.shifted(touch.perRun * number), number));
    }
    for (const Touch &touch : call.writes) {
      const Box box = touch.box.shifted(touch.perRun * number);
      effects.writes[touch.space].add(box);
      if (partOf(plan, touch.space.region) == plan::Part::Pool) {
        save(touch, box, number);
      }
    }
    lastFrames.clear();
    return Status::ok();
  }

private:
  Status need(const Touch &touch, const Box &box, uint32_t number) {
    const ByteSet &written = effects.writes[touch.space];
    if (written.covers(box)) {
      return Status::ok();
    }
    if (partOf(plan, touch.space.region) == plan::Part::Carry) {
      return badInput("{}: in run {} it reads byte {} of region {}, which "
                      "nothing wrote before in this action",
                      describe(plan, touch.site), number,
                      written.firstMissing(ByteSet(box)).value_or(box.begin),
                      text(plan.regions()->Get(touch.space.region)->name()));
    }
    if (!written.overlaps(box)) {
      effects.reads.push_back({touch.space, box, touch.site, number});
      return Status::ok();
    }
    ByteSet rest(box);
    rest.subtract(written);
    for (const Box &part : rest.boxes()) {
      effects.reads.push_back({touch.space, part, touch.site, number});
    }
    return Status::ok();
  }

  /// Widens the frame of this run and space.
  void save(const Touch &touch, const Box &box, uint32_t number) {
    const auto [it, fresh] =
        lastFrames.emplace(touch.space, effects.frames.size());
    if (fresh) {
      effects.frames.push_back({touch.space,
                                Box::interval(box.begin, box.end()), touch.site,
                                number});
      return;
    }
    Box &hull = effects.frames[it->second].hull;
    hull = Box::interval(std::min(hull.begin, box.begin),
                         std::max(hull.end(), box.end()));
  }

  const plan::Plan &plan;
  ProgramEffects &effects;
  std::map<MemorySpace, size_t> lastFrames;
};

} // namespace

StatusOr<ProgramEffects> analyseProgram(const plan::Plan &plan,
                                        uint32_t program,
                                        const RunSample &sample) {
  ProgramEffects effects;
  const plan::Program &own = *plan.programs()->Get(program);
  const auto calls = elements(own.calls());
  for (uint32_t c = 0; c < calls.size(); ++c) {
    MEGA_ASSIGN_OR_RETURN(CallEffects call, analyseCall(plan, program, c));
    effects.calls.push_back(std::move(call));
    effects.runs.push_back(sample.runsOf(calls[c], own.kind()));
  }
  MEGA_RETURN_IF_ERROR(checkSpaces(plan, effects));
  Execution execution(plan, effects);
  for (uint32_t c = 0; c < calls.size(); ++c) {
    for (const uint32_t run : effects.runs[c]) {
      MEGA_RETURN_IF_ERROR(execution.run(effects.calls[c], run));
    }
  }
  return effects;
}

} // namespace mega
