#include "runtime/plan/Communication.h"

#include "runtime/plan/PlanLayouts.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace mega {

uint64_t CommunicationTotal::sentBytes() const {
  const auto ranks = static_cast<uint64_t>(size);
  const uint64_t once = bytes - bytes / ranks;
  return kernel == Kernel::AllReduce ? 2 * once : once;
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

std::vector<CommunicationTotal> communicationOf(const plan::Plan &plan,
                                                const plan::EntryPoint &entry) {
  const Mesh mesh = meshOf(plan);
  const auto groups = elements(plan.groups());
  std::map<std::tuple<plan::ActionKind, std::string, Kernel>,
           CommunicationTotal>
      totals;
  const auto add = [&](const plan::Program &program, uint64_t runs) {
    for (const plan::Call &call : elements(program.calls())) {
      const plan::Function &function = *plan.functions()->Get(call.function());
      for (const plan::Launch &launch : elements(function.launches())) {
        const auto kernel = static_cast<Kernel>(launch.kernel());
        if (!isCollective(kernel)) {
          continue;
        }
        const auto group = static_cast<size_t>(
            elements(function.integers())[launch.first_integer()]);
        uint64_t bytes = 0;
        for (uint32_t operand : {0u, 1u}) {
          const plan::Buffer &buffer = elements(function.buffers())[elements(
              function.operands())[launch.first_operand() + operand]];
          bytes = std::max(
              bytes, static_cast<uint64_t>(bufferType(buffer).extentBytes()));
        }
        CommunicationTotal &total =
            totals[{program.kind(), axesText(groups[group]), kernel}];
        total.phase = program.kind();
        total.kernel = kernel;
        total.axes = axesText(groups[group]);
        total.size = placeIn(groups[group], mesh, 0).size;
        total.count += runs * call.count();
        total.bytes += runs * call.count() * bytes;
      }
    }
  };
  std::map<uint32_t, uint64_t> runs;
  for (const plan::Stage *stage : *entry.stages()) {
    for (const plan::Action &action : elements(stage->actions())) {
      ++runs[action.program()];
    }
  }
  for (const auto &[program, count] : runs) {
    add(*plan.programs()->Get(program), count);
  }
  std::vector<CommunicationTotal> list;
  list.reserve(totals.size());
  for (auto &[key, total] : totals) {
    list.push_back(std::move(total));
  }
  return list;
}

} // namespace mega
