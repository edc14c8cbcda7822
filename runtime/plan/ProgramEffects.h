//===- ProgramEffects.h - What one action does to memory --------*- C++ -*-===//
//
// The middle level of the verifier: the calls of a program, run by run, at slot
// and micro-batch 0. Another slot or micro-batch only moves the spaces.
//
// Proved here:
// - (V4) nothing reads from the carry what this action did not write;
// - (V5) inputs are not written, and a region that a program writes is
// addressed
//   with one stride per slot and per micro-batch, so that its buffers keep
//   their distances.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_PROGRAMEFFECTS_H
#define MEGA_RUNTIME_PLAN_PROGRAMEFFECTS_H

#include "runtime/plan/CallEffects.h"

#include <map>
#include <span>
#include <vector>

namespace mega {

/// Bytes an action needs from before it.
struct NeededBytes {
  MemorySpace space;
  Box box;
  Site site;
  uint32_t run = 0;
};

/// A saved frame: what one run writes into a pool.
struct SavedFrame {
  MemorySpace space;
  Box hull;
  Site site;
  uint32_t run = 0;
};

struct ProgramEffects {
  std::vector<CallEffects> calls;
  std::vector<NeededBytes> reads;
  std::map<MemorySpace, ByteSet> writes;
  std::vector<SavedFrame> frames;
};

StatusOr<ProgramEffects> analyseProgram(const plan::Plan &plan,
                                        uint32_t program);

/// visit(touch, box, run) for every touch, moved to every run, in order of
/// execution; `member` selects CallEffects::reads or writes.
template <typename Visit>
Status forEachTouch(const plan::Plan &plan, const ProgramEffects &effects,
                    uint32_t program, std::vector<Touch> CallEffects::*member,
                    Visit visit) {
  const auto calls = elements(plan.programs()->Get(program)->calls());
  for (size_t c = 0; c < calls.size(); ++c) {
    for (uint32_t i = 0; i < calls[c].count(); ++i) {
      const uint32_t run = calls[c].reverse() ? calls[c].count() - 1 - i : i;
      for (const Touch &touch : effects.calls[c].*member) {
        MEGA_RETURN_IF_ERROR(
            visit(touch, touch.box.shifted(touch.perRun * run), run));
      }
    }
  }
  return Status::ok();
}

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_PROGRAMEFFECTS_H
