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
#include "runtime/plan/RunSample.h"

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
  /// By call: the runs that are looked at, in order.
  std::vector<std::vector<uint32_t>> runs;
  std::vector<NeededBytes> reads;
  std::map<MemorySpace, ByteSet> writes;
  std::vector<SavedFrame> frames;
};

StatusOr<ProgramEffects> analyseProgram(const plan::Plan &plan,
                                        uint32_t program,
                                        const RunSample &sample);

/// visit(touch, box, run) for every touch, moved to the runs that are looked
/// at, in order of execution; `member` selects CallEffects::reads or writes.
template <typename Visit>
Status forEachTouch(const ProgramEffects &effects,
                    std::vector<Touch> CallEffects::*member, Visit visit) {
  for (size_t c = 0; c < effects.calls.size(); ++c) {
    for (const uint32_t run : effects.runs[c]) {
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
