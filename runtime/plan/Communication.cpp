#include "runtime/plan/Communication.h"

#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/RingSteps.h"
#include "runtime/plan/StepExecution.h"
#include "runtime/plan/StepTimes.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>
#include <utility>

namespace mega {

uint64_t CommunicationTotal::sentBytes() const {
  const auto ranks = static_cast<uint64_t>(size);
  const uint64_t once = bytes - bytes / ranks;
  switch (kernel) {
  case Kernel::SendStart:
    return bytes;
  case Kernel::ReceiveStart:
    return 0;
  case Kernel::RingAttention:
  case Kernel::RingAttentionGrad:
    return ringBytes;
  case Kernel::AllReduce:
  case Kernel::SumStages:
    return 2 * once;
  default:
    return once;
  }
}

std::string_view CommunicationTotal::name() const {
  switch (kernel) {
  case Kernel::SendStart:
    return "send";
  case Kernel::ReceiveStart:
    return "receive";
  case Kernel::RingAttention:
    return "ring";
  case Kernel::RingAttentionGrad:
    return "ring_grad";
  default:
    return kernelSpec(kernel).name;
  }
}

std::string CommunicationTotal::phaseName() const {
  std::string text = plan::EnumNameActionKind(phase);
  text[0] =
      static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string axesText(const plan::Group &group) {
  std::string axes;
  for (int i = 0; i < group.count(); ++i) {
    axes += axes.empty() ? "" : " x ";
    axes += groupAxisName(group.axes()->Get(static_cast<uint16_t>(i)));
  }
  return axes;
}

std::string meshText(const plan::Plan &plan) {
  const Mesh sizes = meshOf(plan);
  std::string mesh;
  if (sizes.tp() > 1) {
    mesh = fmt::format("tp = {}", sizes.tp());
  }
  for (const plan::Axis &axis : elements(plan.mesh())) {
    if (!isTp(static_cast<Axis>(axis.name()))) {
      mesh += fmt::format("{}{} = {}", mesh.empty() ? "" : ", ",
                          name(static_cast<Axis>(axis.name())), axis.size());
    }
  }
  if (sizes.size(Axis::TpMajor) > 1) {
    mesh += fmt::format(" ({} = {}, {} = {})", name(Axis::TpMajor),
                        sizes.size(Axis::TpMajor), name(Axis::TpMinor),
                        sizes.size(Axis::TpMinor));
  }
  return mesh;
}

namespace {

/// How often a step runs each program, with transfers told apart by the phase
/// of the run before or after them that touches their buffer.
std::map<std::pair<uint32_t, plan::ActionKind>, uint64_t>
runsByPhase(const plan::Plan &plan, std::span<const plan::Action> actions) {
  std::map<std::pair<uint32_t, plan::ActionKind>, uint64_t> runs;
  std::map<uint32_t, plan::ActionKind> madeBy;
  std::map<uint32_t, uint32_t> receives;
  for (const plan::Action &action : actions) {
    const plan::Program &program = *plan.programs()->Get(action.program());
    if (program.kind() != plan::ActionKind::Transfer) {
      ++runs[{action.program(), program.kind()}];
      if (!isRun(program.kind()) ||
          program.kind() == plan::ActionKind::Weight) {
        continue;
      }
      madeBy[action.buffer()] = program.kind();
      if (const auto it = receives.find(action.buffer());
          it != receives.end()) {
        ++runs[{it->second, program.kind()}];
        receives.erase(it);
      }
      continue;
    }
    const Kernel kernel = transferOf(plan, action.program()).kernel;
    if (kernel == Kernel::ReceiveStart) {
      receives[action.buffer()] = action.program();
    } else if (kernel == Kernel::SendStart) {
      ++runs[{action.program(), madeBy[action.buffer()]}];
    }
  }
  return runs;
}

/// The operands of a launch.
std::vector<BufferType> typesOf(const plan::Function &function,
                                const plan::Launch &launch) {
  std::vector<BufferType> types;
  const size_t count =
      kernelSpec(static_cast<Kernel>(launch.kernel())).operands.size();
  for (const uint16_t operand :
       elements(function.operands()).subspan(launch.first_operand(), count)) {
    types.push_back(bufferType(elements(function.buffers())[operand]));
  }
  return types;
}

/// Bytes of the tensors that a launch moves, and of a ring what is sent.
struct Moved {
  uint64_t bytes = 0;
  uint64_t ring = 0;
};
Moved movedBy(const plan::Function &function, const plan::Launch &launch) {
  const auto kernel = static_cast<Kernel>(launch.kernel());
  const std::vector<BufferType> types = typesOf(function, launch);
  Moved moved;
  if (!isRing(kernel)) {
    for (size_t i = 0; i < std::min<size_t>(2, types.size()); ++i) {
      moved.bytes =
          std::max(moved.bytes, static_cast<uint64_t>(types[i].extentBytes()));
    }
    return moved;
  }
  const bool gradient = kernel == Kernel::RingAttentionGrad;
  const BufferType &k = types[gradient ? 2 : 1];
  const BufferType &places = types[gradient ? 6 : 5];
  const auto integers =
      elements(function.integers()).subspan(launch.first_integer());
  const Ring ring = {places.dims[1] / k.dims[1], places.dims[1],
                     static_cast<SequenceOrder>(integers[1]), integers[2] != 0,
                     integers[3]};
  const int64_t each =
      byteSize(k.type) + (gradient ? byteSize(DataType::F32) : 0);
  moved.bytes = static_cast<uint64_t>(2 * ring.ranks * k.elements() * each);
  moved.ring = mostRingSentBytes(ring, k, gradient);
  return moved;
}

} // namespace

std::vector<CommunicationTotal> communicationOf(const plan::Plan &plan,
                                                const plan::EntryPoint &entry) {
  const Mesh mesh = meshOf(plan);
  // The first of the stage: stages are the slowest axis.
  const int64_t stages = mesh.size(Axis::Pp);
  const int64_t rank =
      mesh.ranks() / stages * std::min<int64_t>(plan.stage(), stages - 1);
  const auto groups = elements(plan.groups());
  std::map<std::tuple<plan::ActionKind, std::string, Kernel>,
           CommunicationTotal>
      totals;
  const auto add = [&](const plan::Program &program, plan::ActionKind phase,
                       uint64_t runs) {
    for (const plan::Call &call : elements(program.calls())) {
      const plan::Function &function = *plan.functions()->Get(call.function());
      for (const plan::Launch &launch : elements(function.launches())) {
        const auto kernel = static_cast<Kernel>(launch.kernel());
        // A wait moves nothing.
        const bool moves = isBetweenStages(kernel) &&
                           kernel != Kernel::SendWait &&
                           kernel != Kernel::ReceiveWait;
        if (!isCollective(kernel) && !isRing(kernel) && !moves) {
          continue;
        }
        const auto group = static_cast<size_t>(
            elements(function.integers())[launch.first_integer()]);
        const Moved moved = movedBy(function, launch);
        CommunicationTotal &total =
            totals[{phase, axesText(groups[group]), kernel}];
        total.phase = phase;
        total.kernel = kernel;
        total.axes = axesText(groups[group]);
        total.size = placeIn(groups[group], mesh, rank).size;
        total.count += runs * call.count();
        total.bytes += runs * call.count() * moved.bytes;
        total.ringBytes += runs * call.count() * moved.ring;
      }
    }
  };
  for (const plan::Stage *stage : *entry.stages()) {
    for (const auto &[run, count] :
         runsByPhase(plan, elements(stage->actions()))) {
      add(*plan.programs()->Get(run.first), run.second, count);
    }
  }
  std::vector<CommunicationTotal> list;
  list.reserve(totals.size());
  for (auto &[key, total] : totals) {
    list.push_back(std::move(total));
  }
  return list;
}

std::vector<StageCommunication> communicationByStage(const plan::Plan &plan,
                                                     uint32_t entryPoint) {
  std::vector<StageCommunication> all;
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    const plan::Plan &stage = stagePlan(plan, s);
    auto totals =
        communicationOf(stage, *stage.entry_points()->Get(entryPoint));
    if (!all.empty() && all.back().totals == totals) {
      all.back().last = s;
    } else {
      all.push_back({s, s, std::move(totals)});
    }
  }
  return all;
}

std::string stagesText(int64_t first, int64_t last) {
  return first == last ? fmt::format("stage {}", first)
                       : fmt::format("stages {}-{}", first, last);
}

} // namespace mega
