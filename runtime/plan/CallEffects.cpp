//===- CallEffects.cpp - What one call does to memory ---------------------===//
#include "runtime/plan/CallEffects.h"

#include "runtime/plan/LogicalParameters.h"
#include "runtime/plan/PlanLayouts.h"

#include <algorithm>

namespace mega {
namespace {

/// Buffers that move together from run to run: their distance is constant.
bool moveTogether(const Touch &a, const Touch &b) {
  return a.space == b.space && a.perRun == b.perRun;
}

/// Whether the boxes meet in any of `count` runs. Exact when they move
/// together, else for their hulls.
bool meet(const Touch &a, const Touch &b, uint32_t count) {
  if (a.space.region != b.space.region) {
    return false;
  }
  if (a.perRun == b.perRun) {
    return overlap(a.box, b.box);
  }
  const int64_t lengthA = a.box.end() - a.box.begin;
  const int64_t lengthB = b.box.end() - b.box.begin;
  const int64_t slope = b.perRun - a.perRun;
  const int64_t start = b.box.begin - a.box.begin;
  const int64_t last = start + slope * (static_cast<int64_t>(count) - 1);
  const auto at = [&](int64_t distance) {
    return -lengthB < distance && distance < lengthA;
  };
  if (at(start) || at(last)) {
    return true;
  }
  if ((start < 0) == (last < 0)) {
    return false;
  }
  // b passes a: look at the runs on both sides of the crossing.
  const int64_t crossing = -start / slope;
  return at(start + slope * crossing) || at(start + slope * (crossing + 1));
}

bool samePlace(const Touch &a, const Touch &b) {
  return moveTogether(a, b) && a.box == b.box && a.type.type == b.type.type &&
         a.type.rows() == b.type.rows() && a.type.rowSize() == b.type.rowSize();
}

class Analysis {
public:
  Analysis(const plan::Plan &plan, uint32_t program, uint32_t call)
      : plan(plan), programIndex(program), callIndex(call),
        program(*plan.programs()->Get(program)),
        call(elements(this->program.calls())[call]),
        function(*plan.functions()->Get(this->call.function())) {}

  StatusOr<CallEffects> run() {
    const auto launches = elements(function.launches());
    for (uint32_t i = 0; i < launches.size(); ++i) {
      const std::vector<Touch> touches =
          touchesOf(plan, programIndex, callIndex, i);
      MEGA_RETURN_IF_ERROR(checkOverlaps(touches));
      for (const Touch &touch : touches) {
        if (touch.isRead()) {
          MEGA_RETURN_IF_ERROR(read(touch));
        }
      }
      for (const Touch &touch : touches) {
        if (touch.isWritten()) {
          MEGA_RETURN_IF_ERROR(write(touch));
        }
      }
    }
    for (const Written &w : log) {
      if (!isScratch(partOf(plan, w.touch.space.region))) {
        effects.writes.push_back(w.touch);
      }
    }
    return std::move(effects);
  }

private:
  struct Written {
    Touch touch;
    bool wasRead = false;
    bool lost = false;

    bool isUndefined() const { return touch.access == Access::Scratch; }
    /// Changes a value rather than making a new one.
    bool isUpdate() const {
      return touch.access == Access::ReadWrite || touch.inPlace;
    }
  };

  Status checkOverlaps(const std::vector<Touch> &touches) const;
  Status read(const Touch &touch);
  Status write(const Touch &touch);
  Status checkLost(const Written &lost, const Touch &by) const;

  std::string at(const Touch &touch) const {
    return describe(plan, touch.site);
  }
  std::string launchOf(const Touch &touch) const {
    return fmt::format("launch {}, {}", touch.site.launch,
                       kernelSpec(touch.kernel).name);
  }

  const plan::Plan &plan;
  const uint32_t programIndex;
  const uint32_t callIndex;
  const plan::Program &program;
  const plan::Call &call;
  const plan::Function &function;
  std::vector<Written> log;
  CallEffects effects;
};

Status Analysis::checkOverlaps(const std::vector<Touch> &touches) const {
  const KernelSpec &spec = kernelSpec(touches.front().kernel);
  for (size_t i = 0; i < touches.size(); ++i) {
    for (size_t j = 0; j < touches.size(); ++j) {
      const Touch &a = touches[i];
      const Touch &b = touches[j];
      if (i == j || !a.isWritten() || (b.isWritten() && j < i) ||
          !meet(a, b, call.count())) {
        continue;
      }
      if (b.isWritten()) {
        return badInput("{} overlaps operand {}, which the kernel writes too",
                        at(a), spec.operands[j].name);
      }
      if (!a.mayReplace(static_cast<int>(j))) {
        const auto index = static_cast<int>(j);
        const bool zigzag = spec.operands[i].inPlaceOf == index ||
                            spec.operands[i].alsoInPlaceOf == index;
        return badInput("{} overlaps operand {}, which the kernel reads: {} "
                        "does not work in place of it{}",
                        at(a), spec.operands[j].name, spec.name,
                        zigzag ? " in zigzag, whose pieces are two runs each"
                               : "");
      }
      if (!samePlace(a, b)) {
        return badInput("{} overlaps operand {} at another address or shape: "
                        "in place means the same bytes",
                        at(a), spec.operands[j].name);
      }
    }
  }
  return Status::ok();
}

Status Analysis::read(const Touch &touch) {
  const plan::Region &region = *plan.regions()->Get(touch.space.region);
  ByteSet rest(touch.box);
  std::vector<const Written *> writers;
  for (size_t i = log.size(); i-- > 0 && !rest.empty();) {
    Written &w = log[i];
    if (!moveTogether(w.touch, touch) || !rest.overlaps(w.touch.box)) {
      continue;
    }
    w.wasRead = true;
    if (w.isUndefined()) {
      return badInput("{} reads what {} left undefined in region {}", at(touch),
                      launchOf(w.touch), text(region.name()));
    }
    if (w.touch.type.type != touch.type.type &&
        w.touch.kernel != Kernel::Zero) {
      return badInput("{} reads as {} what {} wrote as {}", at(touch),
                      toString(touch.type), launchOf(w.touch),
                      toString(w.touch.type));
    }
    for (const Written *later : writers) {
      if (!later->isUpdate() && w.touch.kernel != Kernel::Zero &&
          overlap(later->touch.box, w.touch.box)) {
        return badInput("{} reads the result of {}, of which {} has "
                        "overwritten a part: the two buffers overlap while "
                        "both are alive",
                        at(touch), launchOf(w.touch), launchOf(later->touch));
      }
    }
    writers.push_back(&w);
    rest.subtract(w.touch.box);
  }
  if (rest.overflowed()) {
    return badInput("{} overlaps rows of other buffers in too many pieces to "
                    "be checked",
                    at(touch));
  }
  if (rest.empty()) {
    return Status::ok();
  }
  if (isScratch(region.part())) {
    return badInput("{} reads byte {} of region {}, which no launch of this "
                    "call wrote before",
                    at(touch), rest.hull().first, text(region.name()));
  }
  for (const Box &box : rest.boxes()) {
    Touch part = touch;
    part.box = box;
    effects.reads.push_back(part);
  }
  return Status::ok();
}

Status Analysis::checkLost(const Written &lost, const Touch &by) const {
  for (const Written &w : log) {
    if (w.touch.site.launch == lost.touch.site.launch && !w.isUndefined() &&
        !w.lost) {
      return Status::ok();
    }
  }
  return badInput("{} overwrites the result of {} before any launch read it: "
                  "the two buffers overlap while both are alive",
                  at(by), launchOf(lost.touch));
}

Status Analysis::write(const Touch &touch) {
  const plan::Region &region = *plan.regions()->Get(touch.space.region);
  if (isScratch(region.part()) &&
      (touch.perRun != 0 || touch.space.perSlot != 0 ||
       touch.space.perMicroBatch != 0)) {
    return badInput("{} lies in scratch region {} and has strides, which "
                    "scratch has not",
                    at(touch), text(region.name()));
  }
  const bool update = touch.access == Access::ReadWrite || touch.inPlace;
  // A scratch operand is no result: what it runs over may be dead.
  const bool result = touch.access != Access::Scratch;
  const bool saving = region.part() == plan::Part::Pool &&
                      program.kind() == plan::ActionKind::Forward;
  for (Written &w : log) {
    if (update || w.touch.site.launch == touch.site.launch ||
        !moveTogether(w.touch, touch)) {
      continue;
    }
    if (saving && overlap(touch.box, w.touch.box)) {
      return badInput("{} overwrites what {} saved in pool {}: the two buffers "
                      "overlap, and both live until the backward",
                      at(touch), launchOf(w.touch), text(region.name()));
    }
    if (!result || w.wasRead || w.lost || w.isUndefined() ||
        w.touch.kernel == Kernel::Zero || !contains(touch.box, w.touch.box)) {
      continue;
    }
    w.lost = true;
    MEGA_RETURN_IF_ERROR(checkLost(w, touch));
  }
  log.push_back({touch});
  return Status::ok();
}

} // namespace

static std::string describeSite(const plan::Plan &plan, const Site &site,
                                bool withOperand) {
  const plan::Program &program = *plan.programs()->Get(site.program);
  const plan::Function &function =
      *plan.functions()->Get(elements(program.calls())[site.call].function());
  const plan::Launch &launch = elements(function.launches())[site.launch];
  const KernelSpec &spec = kernelSpec(static_cast<Kernel>(launch.kernel()));
  return fmt::format("program {}: call {} of {}: launch {}, {}{}{} ({})",
                     text(program.name()), site.call, text(function.name()),
                     site.launch, spec.name, withOperand ? ": operand " : "",
                     withOperand ? spec.operands[site.operand].name : "",
                     text(plan.locations()->Get(launch.location())));
}

std::string describe(const plan::Plan &plan, const Site &site) {
  return describeSite(plan, site, true);
}
std::string describeLaunch(const plan::Plan &plan, const Site &site) {
  return describeSite(plan, site, false);
}

std::vector<Touch> touchesOf(const plan::Plan &plan, uint32_t programIndex,
                             uint32_t callIndex, uint32_t number) {
  const plan::Program &program = *plan.programs()->Get(programIndex);
  const plan::Call &call = elements(program.calls())[callIndex];
  const plan::Function &function = *plan.functions()->Get(call.function());
  const plan::Launch &launch = elements(function.launches())[number];
  const auto kernel = static_cast<Kernel>(launch.kernel());
  const KernelSpec &spec = kernelSpec(kernel);
  const auto integers =
      elements(function.integers())
          .subspan(launch.first_integer(), spec.integers.size());
  const bool inPlace = worksInPlace(spec, integers);
  std::vector<Touch> touches;
  for (uint32_t i = 0; i < spec.operands.size(); ++i) {
    const plan::Buffer &buffer = elements(function.buffers())[elements(
        function.operands())[launch.first_operand() + i]];
    const bool argument =
        buffer.space() == static_cast<uint8_t>(plan::Space::Argument);
    const plan::Buffer &base =
        argument
            ? elements(
                  program.arguments())[call.first_argument() + buffer.region()]
            : buffer;
    const Place place = placeOf(program, call, buffer, 0);
    Touch touch;
    touch.space = {place.region, base.per_slot(), base.per_micro_batch()};
    touch.perRun = argument || call.count() == 1
                       ? 0
                       : buffer.per_instance() + buffer.per_frame();
    touch.type = wholeType(plan, buffer);
    touch.box = Box::of(touch.type, place.offset);
    touch.access = resolvedAccess(spec, static_cast<int>(i), integers);
    touch.kernel = kernel;
    touch.site = {programIndex, callIndex, number, i};
    if (inPlace) {
      touch.replaces = {spec.operands[i].inPlaceOf,
                        spec.operands[i].alsoInPlaceOf};
    }
    touches.push_back(touch);
  }
  for (Touch &touch : touches) {
    for (const int source : touch.replaces) {
      touch.inPlace |=
          source >= 0 && samePlace(touch, touches[static_cast<size_t>(source)]);
    }
  }
  return touches;
}

StatusOr<CallEffects> analyseCall(const plan::Plan &plan, uint32_t program,
                                  uint32_t call) {
  return Analysis(plan, program, call).run();
}

} // namespace mega
