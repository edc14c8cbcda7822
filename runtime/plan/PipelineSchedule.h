//===- PipelineSchedule.h - What each stage runs, when ----------*- C++ -*-===//
//
// A pipeline of P stages holds P*V parts of the model, V chunks per stage, and
// takes M micro-batches through them. Part p of micro-batch m is run forward
// (F) after part p - 1, backward (B) after part p + 1, and has its weight
// gradient (W) accumulated after its B, where the schedule splits that off.
//
//   looped, P = 2, V = 2            V shape, P = 2, V = 2
//     chunk      0  1                 chunk      0  1
//     stage 0    0  2                 stage 0    0  3
//     stage 1    1  3                 stage 1    1  2
//
// `orderOf` solves for the order of the runs of every stage, `makeSchedule`
// adds what they need: slots for what backward reads, boundary buffers, and
// the transfers between stages. Every (source, destination, activation or
// gradient) is a communicator of its own. Linear in the number of runs, except
// for the search for free slots and buffers, which is logarithmic in them.
//
// Nothing here is trusted by ScheduleGraph.h, which proves what comes out.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_PIPELINESCHEDULE_H
#define MEGA_RUNTIME_PLAN_PIPELINESCHEDULE_H

#include "runtime/plan/Status.h"

#include <array>
#include <cstdint>
#include <vector>

namespace mega {

enum class ScheduleKind : uint8_t {
  /// All forwards, then all backwards, both in ascending order (V = 1).
  GPipe,
  /// PipeDream-flush (Narayanan et al. 2021): P - r micro-batches in flight on
  /// stage r (V = 1).
  OneForwardOneBackward,
  /// The interleaved 1F1B of Megatron-LM (V >= 2).
  Interleaved,
  /// Backward split into B and W (Qi et al. 2024): ZB-H1 (V = 1) and ZB-V
  /// (V = 2, V shape). See ZeroBubble.h.
  ZeroBubble
};

/// Backward is the gradient of the inputs, and of the weights too unless the
/// schedule has Weight runs.
enum class Work : uint8_t { Forward, Backward, Weight };

struct PipelineRequest {
  ScheduleKind kind;
  int64_t stages;
  int64_t chunks = 1;
  int64_t microBatches;
  /// Interleaved: micro-batches that a chunk takes before the next chunk does;
  /// 0: as many as stages.
  int64_t groupSize = 0;
  /// false: forwards only (evaluation).
  bool train = true;
  /// ZB-V: what runs of a part take, in any unit, by Work.
  std::array<int64_t, 3> costs = {1, 1, 1};
};

inline int64_t costOf(const PipelineRequest &request, Work work) {
  return request.costs[static_cast<size_t>(work)];
}

inline int64_t partCount(const PipelineRequest &request) {
  return request.stages * request.chunks;
}
/// The parts of one stage, and where a part is.
int64_t partOf(const PipelineRequest &request, int64_t stage, int64_t chunk);
int64_t stageOf(const PipelineRequest &request, int64_t part);
int64_t chunkOf(const PipelineRequest &request, int64_t part);
/// Whether its backwards leave the weight gradients to Weight runs.
inline bool splitsWeight(const PipelineRequest &request) {
  return request.train && request.kind == ScheduleKind::ZeroBubble;
}

/// One run of a chunk.
struct Step {
  Work work;
  int32_t chunk;
  int32_t microBatch;
};

/// Code::Usage if the numbers do not fit each other. An interleaved schedule
/// that trains needs P <= N <= M for its groups of N micro-batches, and a last
/// group that is whole or has at least P.
Status checkRequest(const PipelineRequest &request);

/// What each stage runs. Micro-batches ascend for every chunk and work.
StatusOr<std::vector<std::vector<Step>>> orderOf(const PipelineRequest &);

enum class ScheduleOp : uint8_t { Run, Receive, WaitReceive, Send, WaitSend };

/// Of a Run: what runs, its slot and its buffer (-1: none). Of a transfer:
/// `work` is Forward for an activation and Backward for a gradient, `chunk` and
/// `microBatch` are those of the run of this stage that needs or made it, and
/// `slot` is -1.
struct ScheduleAction {
  ScheduleOp op;
  Work work;
  int32_t chunk;
  int32_t microBatch;
  int32_t slot;
  int32_t buffer;
};

struct PipelineSchedule {
  std::vector<std::vector<ScheduleAction>> stages;
  /// Per stage: frames (of a whole chunk) alive at one time, at most.
  std::vector<int32_t> slots;
  /// Per stage: boundary buffers alive at one time, at most.
  std::vector<int32_t> buffers;
};

/// `orderOf` with slots, buffers and transfers.
///
/// Slots: one pool per stage. A forward takes the lowest free slot, its
/// backward (its weight run, if there is one) frees it. Forwards of an
/// evaluation all use slot 0.
///
/// Buffers: a run reads its operand from, and leaves its result in, one buffer.
/// It is taken when the Receive is posted, or at the run if nothing is
/// received, and freed after the send. Where the next part is on the same
/// stage, as at the turn of the V, the buffer is handed over.
///
/// Transfers: a Receive is posted before the run that precedes the one that
/// needs it, its wait comes right before the latter. A Send follows its run,
/// and its wait the run after that, or a later one if the receiver only posts
/// its Receive after something that this stage has yet to run: then waiting
/// would stall, or deadlock as at the turn of the V. Until then the sender
/// keeps the value: interleaved, the first stage is up to P / 2 gradients ahead
/// of the last, more with longer groups.
StatusOr<PipelineSchedule> makeSchedule(const PipelineRequest &request);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_PIPELINESCHEDULE_H
