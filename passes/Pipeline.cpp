#include "passes/Pipeline.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace mega {

int64_t stageOf(ModuleOp module) {
  auto stage = module->getAttrOfType<IntegerAttr>(kStageAttrName);
  return stage ? stage.getInt() : 0;
}

double timeOf(Block &body) {
  constexpr double kFlopsPerByte = 64;
  double time = 0;
  for (Operation &op : body) {
    if (auto known = dyn_cast<tfm::Cost>(op)) {
      const tfm::OpCost own = known.getCost();
      time += std::max(own.flops, own.bytes * kFlopsPerByte);
    }
  }
  return time;
}

StatusOr<PipelineRequest> pipelineRequest(ModuleOp module, int64_t pp,
                                          int64_t vpp, StringRef schedule,
                                          int64_t microBatches) {
  PipelineRequest request{};
  if (auto costs = module->getAttrOfType<DenseI64ArrayAttr>(kCostsAttrName);
      costs && costs.size() == 3) {
    llvm::copy(costs.asArrayRef(), request.costs.begin());
  }
  request.stages = pp;
  request.chunks = vpp;
  request.microBatches = microBatches;
  if (schedule.empty()) {
    request.kind = vpp > 1 ? ScheduleKind::Interleaved
                           : ScheduleKind::OneForwardOneBackward;
  } else if (schedule == "1f1b") {
    request.kind = ScheduleKind::OneForwardOneBackward;
  } else if (schedule == "gpipe") {
    request.kind = ScheduleKind::GPipe;
  } else if (schedule == "interleaved") {
    request.kind = ScheduleKind::Interleaved;
  } else if (schedule == "zero-bubble") {
    request.kind = ScheduleKind::ZeroBubble;
  } else {
    return makeError(Code::Failed,
                     "--schedule {} is none of 1f1b, gpipe, interleaved and "
                     "zero-bubble",
                     std::string_view(schedule.data(), schedule.size()));
  }
  return request;
}

std::string programName(const PipelineRequest &pipeline,
                        const ScheduleAction &action) {
  const char *const work =
      action.work == Work::Forward ? "activation." : "gradient.";
  std::string name;
  switch (action.op) {
  case ScheduleOp::Run:
    name = action.work == Work::Forward    ? "step.forward"
           : action.work == Work::Backward ? "step.backward"
                                           : "step.weight";
    name += pipeline.train ? "" : ".eval";
    break;
  case ScheduleOp::Send:
    name = std::string(work) + "send";
    break;
  case ScheduleOp::WaitSend:
    name = std::string(work) + "sent";
    break;
  case ScheduleOp::Receive:
    name = std::string(work) + "receive";
    break;
  case ScheduleOp::WaitReceive:
    name = std::string(work) + "received";
    break;
  }
  return pipeline.chunks == 1 ? name
                              : name + "." + std::to_string(action.chunk);
}

} // namespace mega
