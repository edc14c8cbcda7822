//===- VerifySchedule.cpp - Proves schedules written by hand --------------===//
#include "dialects/pipe/Pipe.h"
#include "passes/Passes.h"
#include "runtime/plan/ScheduleGraph.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

using Kind = ScheduleEvent::Kind;

Work workOf(pipe::Work work) {
  switch (work) {
  case pipe::Work::Forward:
    return Work::Forward;
  case pipe::Work::Backward:
    return Work::Backward;
  case pipe::Work::Weight:
    break;
  }
  return Work::Weight;
}

template <typename Transfer> ScheduleEvent eventOf(Transfer op, Kind kind) {
  ScheduleEvent event{kind, workOf(op.getWork()), op.getPart(),
                      op.getMicroBatch()};
  event.buffer = op.getBuffer();
  event.peer = op.getPeer();
  event.communicator = op.getCommunicator();
  event.queue = op.getQueue().value_or(-1);
  event.bytes = op.getBytes().value_or(0);
  return event;
}

/// The events of one stage.
std::vector<ScheduleEvent> eventsOf(pipe::StageOp stage) {
  Block &body = stage.getBody().front();
  // A wait may stand before what it waits for: that is for the proof to refuse.
  llvm::DenseMap<StringAttr, int32_t> named;
  for (auto [index, op] : llvm::enumerate(body)) {
    if (auto symbol = dyn_cast<SymbolOpInterface>(op)) {
      named[symbol.getNameAttr()] = static_cast<int32_t>(index);
    }
  }
  std::vector<ScheduleEvent> events;
  for (Operation &op : body) {
    events.push_back(
        llvm::TypeSwitch<Operation *, ScheduleEvent>(&op)
            .Case([](pipe::RunOp run) -> ScheduleEvent {
              return {Kind::Run,
                      workOf(run.getWork()),
                      run.getPart(),
                      run.getMicroBatch(),
                      run.getSlot().value_or(-1),
                      run.getBuffer().value_or(-1)};
            })
            .Case([](pipe::SendOp send) { return eventOf(send, Kind::Send); })
            .Case([](pipe::ReceiveOp receive) {
              return eventOf(receive, Kind::Receive);
            })
            .Case([](pipe::CollectiveOp collective) {
              ScheduleEvent event{Kind::Collective};
              event.communicator = collective.getCommunicator();
              event.queue = collective.getQueue().value_or(-1);
              return event;
            })
            .Case([&](pipe::WaitOp wait) {
              ScheduleEvent event{Kind::Wait};
              event.event = named.at(wait.getTargetAttr().getAttr());
              return event;
            }));
  }
  return events;
}

ScheduleGraphInput graphOf(pipe::PipelineOp pipeline) {
  const ArrayRef<int32_t> parts = pipeline.getParts();
  ScheduleGraphInput input{0,
                           static_cast<int32_t>(parts.size()),
                           pipeline.getMicroBatches(),
                           pipeline.getTrain(),
                           pipeline.getSplitsWeight(),
                           parts.vec(),
                           {}};
  for (auto stage : pipeline.getBody().getOps<pipe::StageOp>()) {
    input.events.push_back(eventsOf(stage));
  }
  input.stages = static_cast<int32_t>(input.events.size());
  return input;
}

struct VerifySchedulePass : mega::impl::VerifyScheduleBase<VerifySchedulePass> {
  void runOnOperation() override {
    getOperation().walk([&](pipe::PipelineOp pipeline) {
      const Status status = verifySchedule(graphOf(pipeline));
      if (!status.isOk()) {
        pipeline.emitError() << status.message();
        signalPassFailure();
      }
    });
    markAllAnalysesPreserved();
  }
};

} // namespace
