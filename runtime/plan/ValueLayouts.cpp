#include "runtime/plan/ValueLayouts.h"

#include "runtime/plan/KernelSharding.h"
#include "runtime/plan/PlanLayouts.h"

#include <algorithm>

namespace mega {
namespace {

const plan::Function &functionOf(const plan::Plan &plan, const Site &site) {
  const plan::Program &program = *plan.programs()->Get(site.program);
  return *plan.functions()->Get(
      elements(program.calls())[site.call].function());
}

/// The axes of a dimension, major to minor.
std::span<const Axis> axesOf(const Layout &layout, int dim) {
  const Layout::Dimension &cut = layout.dims[static_cast<size_t>(dim)];
  return std::span(cut.axes).first(cut.count);
}

unsigned maskOf(std::span<const Axis> axes) {
  unsigned mask = 0;
  for (const Axis axis : axes) {
    mask |= bit(axis);
  }
  return mask;
}

/// Elements before dimension `dim` counts up: what makes a cut the same in a
/// buffer of another shape.
int64_t outerExtent(const BufferType &type, int dim) {
  int64_t extent = 1;
  for (int i = 0; i < dim; ++i) {
    extent *= type.dims[static_cast<size_t>(i)];
  }
  return extent;
}

} // namespace

const plan::Buffer &bufferOf(const plan::Plan &plan, const Site &site) {
  const plan::Function &function = functionOf(plan, site);
  const plan::Launch &launch = elements(function.launches())[site.launch];
  return elements(function.buffers())[elements(
      function.operands())[launch.first_operand() + site.operand]];
}

std::vector<Layout> layoutsOf(const plan::Plan &plan, const Site &site) {
  const plan::Launch &launch =
      elements(functionOf(plan, site).launches())[site.launch];
  const size_t count =
      kernelSpec(static_cast<Kernel>(launch.kernel())).operands.size();
  std::vector<Layout> layouts;
  layouts.reserve(count);
  Site operand = site;
  for (operand.operand = 0; operand.operand < count; ++operand.operand) {
    layouts.push_back(layoutOf(plan, bufferOf(plan, operand)));
  }
  return layouts;
}

Spreads::Spreads(const plan::Plan &plan) : mesh(meshOf(plan)) {
  for (const plan::Layout &layout : elements(plan.layouts())) {
    layouts.push_back(whole(layoutOf(layout), mesh));
  }
  if (layouts.empty()) {
    layouts.push_back(whole(Layout(), mesh));
  }
}

Status Spreads::agree(const Spread &written, const Spread &read,
                      unsigned sliced) const {
  const Layout &from = layouts[written.layout];
  const Layout &to = layouts[read.layout];
  if (from == to && written.type.dims == read.type.dims) {
    return Status::ok();
  }
  const auto differ = [&](Axis axis, std::string_view how) {
    return badInput("{} was written as {} with layout [{}] and is read as {} "
                    "with layout [{}]: over {} {}",
                    "it", toString(written.type), from.str(),
                    toString(read.type), to.str(), name(axis), how);
  };
  for (int i = 0; i < kAxisCount; ++i) {
    const auto axis = static_cast<Axis>(i);
    const State before = from.state(axis);
    const State after = to.state(axis);
    if ((sliced & bit(axis)) && before == State::Replicated &&
        after == State::Shard) {
      continue;
    }
    if (before != after) {
      return differ(axis, fmt::format("{} does not become {} without a launch",
                                      name(before), name(after)));
    }
    if (before == State::Partial && from.reduction != to.reduction) {
      return differ(axis, "the reductions differ");
    }
    // A bucket is a vector, whatever is in it.
    if (before != State::Shard || written.type.rank < 2 || read.type.rank < 2) {
      continue;
    }
    const int dim = from.shardedDim(axis);
    const int other = to.shardedDim(axis);
    const bool padded = written.type.rank == read.type.rank &&
                        from.dims[static_cast<size_t>(dim)].padded !=
                            to.dims[static_cast<size_t>(other)].padded;
    if (padded ||
        outerExtent(written.type, dim) != outerExtent(read.type, other) ||
        from.dims[static_cast<size_t>(dim)].zigzag !=
            to.dims[static_cast<size_t>(other)].zigzag ||
        !std::ranges::equal(axesOf(from, dim), axesOf(to, other))) {
      return differ(axis, "other pieces are meant");
    }
  }
  return Status::ok();
}

Status Spreads::checkRead(const plan::Buffer &buffer,
                          const ReadValue &value) const {
  const Spread read{buffer.layout(), bufferType(buffer)};
  const unsigned sliced = buffer.per_piece() == 0 ? 0u : buffer.axes();
  for (const ReadValue::Part &part : value.parts) {
    if (part.written && part.source != 0) {
      MEGA_RETURN_IF_ERROR(agree(part.spread, read, sliced));
    }
  }
  return Status::ok();
}

Status Spreads::checkComplete(const ReadValue &value) const {
  for (const ReadValue::Part &part : value.parts) {
    const Layout &layout = layouts[part.spread.layout];
    if (part.written && part.source != 0 &&
        (layout.partial != 0 || layout.rank != 0)) {
      return badInput(
          "it ends up with layout [{}], expected all of it on every "
          "rank",
          layout.str());
    }
  }
  return Status::ok();
}

Status Spreads::checkInput(const plan::Buffer &buffer,
                           const plan::Buffer &input) const {
  const Layout &wanted = layouts[input.layout()];
  const Layout &found = layouts[buffer.layout()];
  return found == wanted ? Status::ok()
                         : badInput("an input has layout [{}], expected [{}]",
                                    found.str(), wanted.str());
}

//===----------------------------------------------------------------------===//
// Vocabulary shards
//===----------------------------------------------------------------------===//

Status VocabularyShards::check(const ValueLaunch &launch,
                               std::span<const Layout> layouts) const {
  const KernelSpec &spec = kernelSpec(launch.kernel);
  const bool rescales = launch.kernel == Kernel::HeadRescale;
  for (size_t i = 0; i < launch.before.size(); ++i) {
    if (spec.operands[i].access == Access::Read &&
        maxima.count(launch.before[i]) && launch.kernel != Kernel::Copy &&
        !(rescales && i == 0)) {
      return badInput("operand {} holds sums that are relative to the maxima "
                      "of their shards of the vocabulary: rescale them first",
                      spec.operands[i].name);
    }
  }
  // The operand that is a shard's own maximum.
  size_t local = 0;
  if (rescales || launch.kernel == Kernel::HeadRescaleGrad) {
    local = 1;
    if (launch.before[1] != launch.before[2]) {
      return badInput("max_local and max_global are maxima of other logits");
    }
    const auto sum = maxima.find(launch.before[0]);
    if (rescales && sum != maxima.end() && sum->second != launch.before[1]) {
      return badInput("the sum is relative to another maximum than max_local");
    }
  } else if (launch.kernel == Kernel::HeadStatsGrad) {
    local = 3;
  } else {
    return Status::ok();
  }
  const auto it = axes.find(launch.before[local]);
  if (it == axes.end()) {
    return badInput("operand {} is no maximum of head_stats",
                    spec.operands[local].name);
  }
  const Layout &found = layouts[local];
  if (found.partial != it->second ||
      (found.partial != 0 && found.reduction != Reduction::Max)) {
    return badInput("operand {} has layout [{}], expected the maximum of the "
                    "rank's own shard of the vocabulary",
                    spec.operands[local].name, found.str());
  }
  return Status::ok();
}

void VocabularyShards::record(const ValueLaunch &launch,
                              std::span<const Value> results,
                              std::span<const Layout> layouts) {
  if (launch.kernel != Kernel::HeadStats) {
    return;
  }
  const unsigned cut =
      layouts[1].rank == 0 ? 0u : maskOf(axesOf(layouts[1], 0));
  axes[results[3]] = cut;
  if (cut != 0) {
    maxima[results[4]] = results[3];
  }
}

} // namespace mega
