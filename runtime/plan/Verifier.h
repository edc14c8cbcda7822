//===- Verifier.h - What a plan computes ------------------------*- C++ -*-===//
//
// Proves, by executing every entry point over abstract memory, that a checked
// plan (PlanCheck.h) computes a training step. Used by megac on what it emits
// and by megart on what it loads; it trusts neither. Memory is sets of bytes
// (ByteSet.h); functions are analysed once per call, programs once, and the
// schedule walks their summaries, so work grows with launches + layers +
// actions.
//
// Calls (CallEffects.h) V1-V3 and actions (ProgramEffects.h) V4-V5 first, then
// the state:
// - (V6) parameters, gradients, optimizer state and counters do not overlap;
//   every parameter lies in the range of one AdamW launch, whose gradient range
//   holds its gradient at the same place and whose decay is its own;
// - (V7) only AdamW writes parameters and touches optimizer state; gradients
//   are zeroed in the prologue, added to by backward, read by the norm and by
//   AdamW, and by nothing else;
// - (V8) a training step zeroes, accumulates, norms and applies every gradient,
//   each exactly once (accumulates: at least once), the norm first; an entry
//   point that does not train leaves them alone;
// - (V13) a parameter with a compute copy is rounded into it by one cast of the
//   setup and by one of the finish, after its AdamW; nothing else writes it,
//   and no other copy of a parameter is made;
// and each entry point and stage:
// - (V9) prologue first, finish last; each forward and each backward program
//   exactly once for every micro-batch, the others once; "train" and only it
//   has a backward;
// - (V10) nothing is read that was not written: by the loader, at
//   initialisation, in the setup, or earlier in this step;
// - (V11) a slot of saved frames is written by one forward, read by the
//   backward of the same micro-batch before it is written again, no frame is
//   left over, and slots do not overlap;
// - (V12) every micro-batch adds once to the sum of every loss term, whose
//   count is computed;
// and then, over values instead of bytes (Values.h):
// - (V14) and (V15): inputs, ids, labels and dropout (ValueExecution.h);
// - (V16) all entry points compute the same loss, dropout apart;
// - (V17) backward leaves the derivative of what forward computed as the
//   gradient of every parameter (KernelValues.h), seeded with the weight of
//   each loss term over the count of the labels that its sum is of;
// - (V18) adamw scales by the clip_scale of the norm of all gradients;
// and over layouts, on which the values above, those of whole tensors, rest:
// - (V19) the layouts of every launch obey its kernel's sharding rule
//   (KernelSharding.h); a conversion is the change between the layouts of its
//   operands, over the axes of its group; the integers that depend on the rank
//   are where its piece begins; what is read is laid out as it was written
//   (ValueLayouts.h), also by the micro-batch and the step before;
// and over the stages of a pipeline together:
// - (V20) transfers meet, no stage waits for ever, nothing is overwritten that
//   is under way, every part runs once for every micro-batch, in order
//   (ScheduleGraph.h); the gradient of a parameter on two stages is summed over
//   them, and no other is. V14 to V19 follow values from stage to stage
//   (StepExecution.h).
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_VERIFIER_H
#define MEGA_RUNTIME_PLAN_VERIFIER_H

#include "runtime/plan/LogicalParameters.h"
#include "runtime/plan/ProgramEffects.h"
#include "runtime/plan/RunSample.h"

#include <string>
#include <vector>

namespace mega {

/// Code::BadInput with a counter-example: entry point, stage, action, program,
/// function, launch, operand, source location, what is wrong.
Status verifyPlan(const plan::Plan &plan);

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// What the parts share about a plan.
struct VerifierContext {
  const plan::Plan &plan;
  /// One per program.
  std::vector<ProgramEffects> effects;
  std::vector<LogicalParameter> parameters;
  std::vector<OptimizerRange> ranges;
  std::vector<CopyRange> copies;
  /// Runs that stand for all in what is proved of values.
  RunSample sample;
};

/// V6 and V7.
Status verifyState(const VerifierContext &context);
/// V13, of the setup and of a training entry point.
Status verifySetupCopies(const VerifierContext &context);
Status verifyStepCopies(const VerifierContext &context,
                        const plan::EntryPoint &entry);
/// V8.
Status verifyUpdates(const VerifierContext &context,
                     const plan::EntryPoint &entry);
/// V9.
Status verifyOrder(const plan::Plan &plan, const plan::EntryPoint &entry,
                   const plan::Stage &stage);
/// V12.
Status verifyLossTerms(const VerifierContext &context,
                       const plan::EntryPoint &entry);
/// V10 and V11.
Status verifyActions(const VerifierContext &context,
                     const plan::EntryPoint &entry, const plan::Stage &stage);

/// V14 to V18, of all stages.
Status verifyValues(const std::vector<VerifierContext> &stages);
/// V20, of all stages: schedules, and gradients that stages share.
Status verifyPipeline(const std::vector<VerifierContext> &stages);
Status verifyTies(const std::vector<VerifierContext> &stages, uint32_t entry);
/// V19: launches, of one stage; what is read and written, of the whole plan.
Status verifyLattice(const plan::Plan &plan);
Status verifySpreads(const std::vector<VerifierContext> &stages);

/// Whether the entry point runs a backward or an optimizer.
bool isTraining(const VerifierContext &context, const plan::EntryPoint &entry);
/// Programs that the entry point runs, each once, in order of first use.
std::vector<uint32_t> programsOf(const plan::EntryPoint &entry);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_VERIFIER_H
