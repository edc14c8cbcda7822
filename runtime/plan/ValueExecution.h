//===- ValueExecution.h - A step over values --------------------*- C++ -*-===//
//
// Runs programs of a checked plan over values (Values.h): setup, prologue,
// forward and backward of micro-batch 0, finish. What holds for one micro-batch
// holds for all, because slots and micro-batches only move addresses (V5, V11).
//
// Proved on the way:
// - (V14) what forward and backward read of the state are parameters, their
//   copies, or what setup and prologue wrote; what reads inputs reads exactly
//   one of the declared inputs: that of its micro-batch or, in a prologue,
//   those of all; ids stay inside the table they index, and every kernel
//   ignores the plan's ignore_label;
// - (V15) no two launches of a forward drop out by the same random numbers;
// - (V19, with VerifyLattice.cpp) what is read has the layout it was written
//   with, or a free conversion lies between (ValueLayouts.h).
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_VALUEEXECUTION_H
#define MEGA_RUNTIME_PLAN_VALUEEXECUTION_H

#include "runtime/plan/KernelValues.h"
#include "runtime/plan/ValueLayouts.h"
#include "runtime/plan/Verifier.h"

#include <functional>
#include <optional>
#include <set>

namespace mega {

/// Input `input` of this micro-batch, or of all.
Value inputValue(uint32_t input, bool allMicroBatches);
/// The `k`-th of the parameters that entry `parameter` of the table stands for,
/// or of its copy to compute with.
Value parameterValue(uint32_t parameter, uint32_t k);

class ValueExecution {
public:
  /// The memory after the setup.
  static StatusOr<ValueExecution> begin(const plan::Plan &plan,
                                        const plan::EntryPoint &entry);

  /// Called for every launch that was executed.
  using Observer =
      std::function<Status(const Site &site, const ValueLaunch &launch,
                           const std::vector<Value> &results)>;

  /// Records what it reads and computes on `tape`, if there is one.
  Status run(uint32_t program, bool keepDropout, Tape *tape,
             const Observer &observer);

  /// From here on parameters are what AdamW left: ids and labels, which are
  /// told by the tables they index, are not looked at again.
  void beginNextStep() { firstStep = false; }

  /// Once a forward ran: the limit of every input is that of its tables.
  Status checkLimits() const;

  /// What a buffer outside of functions, or at `place`, holds.
  StatusOr<Value> valueOf(const plan::Buffer &buffer) {
    return valueAt({buffer.region(), buffer.offset()}, bufferType(buffer));
  }
  StatusOr<Value> valueAt(const Place &place, const BufferType &type);

private:
  ValueExecution(const plan::Plan &plan, const plan::EntryPoint &entry)
      : plan(plan), entry(entry), spreads(plan) {}

  void load();
  Status launch(const std::vector<Touch> &touches, const plan::Call &call,
                uint32_t run, plan::ActionKind kind, bool keepDropout,
                Tape *tape, const Observer &observer);
  StatusOr<ReadValue> read(const Touch &touch, const Box &box,
                           plan::ActionKind kind);
  StatusOr<Value> readInput(const Touch &touch, const Box &box,
                            plan::ActionKind kind) const;
  int64_t rowsOfParameter(Value value) const;
  Status checkIds(const Touch &touch, const ValueLaunch &launch, size_t table);
  Status checkAttributes(const Site &site, const ValueLaunch &launch) const;
  Status checkDropout(const Site &site, const ValueLaunch &launch);
  void move(const Touch &target, const Box &box, const BufferType &sourceType,
            const Box &sourceBox, const ReadValue &source);

  const plan::Plan &plan;
  const plan::EntryPoint &entry;
  bool firstStep = true;
  ValueMemory memory;
  Spreads spreads;
  VocabularyShards shards;
  /// Of the smallest table that an input indexes.
  std::map<uint32_t, int64_t> rowsByInput;
  /// Key and application of every dropout of the forward.
  std::set<std::pair<int64_t, int64_t>> drops;
};

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_VALUEEXECUTION_H
