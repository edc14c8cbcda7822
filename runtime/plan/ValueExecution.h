//===- ValueExecution.h - A step over values --------------------*- C++ -*-===//
//
// Runs programs of a checked plan over values (Values.h): setup, prologue,
// forward and backward of micro-batch 0, finish. What holds for one micro-batch
// holds for all, because slots and micro-batches only move addresses (V5, V11).
// Of a stack of layers, some stand for all (RunSample.h).
//
// Proved on the way:
// - (V14) what forward and backward read of the state are parameters, their
//   copies, or what setup and prologue wrote; what reads inputs reads exactly
//   one of the declared inputs: that of its micro-batch or, in a prologue,
//   those of all; ids stay inside the table they index, and every kernel
//   ignores the plan's ignore_label;
// - (V15) no two launches of a forward drop out by the same random numbers;
// - (V19, with VerifyLattice.cpp) what is read has the layout it was written
//   with, or a free conversion lies between (ValueLayouts.h), also where it
//   came from another stage.
//
// Of a pipeline this is one stage; StepExecution.h joins them.
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
/// A parameter, or its copy to compute with. The same on all stages that have
/// it.
Value parameterValue(std::string_view name);

/// What goes from one stage to another.
struct StageMessage {
  Value value = 0;
  BufferType type;
  Layout layout;
};
/// What the transfers and sums of one program bring, and take (StepExecution).
struct StageExchange {
  std::vector<StageMessage> sent;
  /// For receive_wait, and for each sum_stages in order.
  std::vector<StageMessage> received;
};

class ValueExecution {
public:
  /// The memory after the setup.
  static StatusOr<ValueExecution> begin(const VerifierContext &context,
                                        const plan::EntryPoint &entry);

  /// Called for every launch that was executed.
  using Observer =
      std::function<Status(const Site &site, const ValueLaunch &launch,
                           const std::vector<Value> &results)>;

  /// What the next program receives from other stages, and the last one sent.
  StageExchange exchange;
  /// What a program of sum_stages puts in, in order.
  StatusOr<std::vector<StageMessage>> contributions(uint32_t program);

  /// Records what it reads and computes on `tape`, if there is one.
  /// At the action's slot and buffer, and micro-batch 0.
  Status run(const plan::Action &action, bool keepDropout, Tape *tape,
             const Observer &observer);

  /// From here on parameters are what AdamW left: ids and labels, which are
  /// told by the tables they index, are not looked at again.
  void beginNextStep() { firstStep = false; }

  /// Rows of the smallest table that each input indexed in a forward.
  const std::map<uint32_t, int64_t> &indexedRows() const { return rowsByInput; }

  /// Every rank has all of what a buffer outside of functions holds (V19).
  Status checkComplete(const plan::Buffer &buffer) {
    MEGA_ASSIGN_OR_RETURN(
        const ReadValue value,
        memory.read(buffer.region(),
                    Box::of(bufferType(buffer), buffer.offset()),
                    bufferType(buffer)));
    return spreads.checkComplete(value);
  }

  /// What a buffer outside of functions, or at `place`, holds.
  StatusOr<Value> valueOf(const plan::Buffer &buffer) {
    return valueAt({buffer.region(), buffer.offset()}, bufferType(buffer));
  }
  StatusOr<Value> valueAt(const Place &place, const BufferType &type);
  /// What is at `place` is laid out as `buffer` is (V19).
  Status checkLayout(const Place &place, const plan::Buffer &buffer) {
    MEGA_ASSIGN_OR_RETURN(const ReadValue value,
                          memory.read(place.region,
                                      Box::of(bufferType(buffer), place.offset),
                                      bufferType(buffer)));
    return spreads.checkRead(buffer, value);
  }

private:
  ValueExecution(const VerifierContext &context, const plan::EntryPoint &entry)
      : plan(context.plan), entry(entry), sample(context.sample),
        parameters(context.parameters), spreads(plan) {}

  void load();
  Status launch(const std::vector<Touch> &touches, const plan::Call &call,
                uint32_t run, plan::ActionKind kind, bool keepDropout,
                Tape *tape, const Observer &observer);
  StatusOr<ReadValue> read(const Touch &touch, const Box &box,
                           plan::ActionKind kind);
  StatusOr<Value> readInput(const Touch &touch, const Box &box,
                            plan::ActionKind kind) const;
  int64_t rowsOfParameter(Value value) const {
    const auto it = rowsOf.find(value);
    return it == rowsOf.end() ? 0 : it->second;
  }
  Status between(const Touch &touch, const ReadValue &read,
                 std::vector<Value> &results);
  Status checkIds(const std::vector<Touch> &touches, const ValueLaunch &launch);
  Status checkAttributes(const Site &site, const ValueLaunch &launch) const;
  Status checkDropout(const Site &site, const ValueLaunch &launch);
  void move(const Touch &target, const Box &box, const BufferType &sourceType,
            const Box &sourceBox, const ReadValue &source);

  const plan::Plan &plan;
  const plan::EntryPoint &entry;
  const RunSample &sample;
  const std::vector<LogicalParameter> &parameters;
  bool firstStep = true;
  /// First dimensions of whole parameters, by value.
  std::map<Value, int64_t> rowsOf;
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
