#include "runtime/plan/AttentionWork.h"

#include "runtime/plan/Kernels.h"
#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/RingSteps.h"
#include "runtime/plan/StepTimes.h"

#include <algorithm>
#include <numeric>

namespace mega {
namespace {

/// The launches of one function, each `runs` times.
void add(const plan::Plan &plan, const plan::Function &function, int64_t runs,
         AttentionWork &work) {
  const auto ranks = std::ssize(work.pairs);
  for (const plan::Launch &launch : elements(function.launches())) {
    const auto kernel = static_cast<Kernel>(launch.kernel());
    if (kernel != Kernel::RingAttention && kernel != Kernel::PackedAttention &&
        kernel != Kernel::Attention) {
      continue;
    }
    const KernelSpec &spec = kernelSpec(kernel);
    const auto integers =
        elements(function.integers()).subspan(launch.first_integer());
    const auto buffer = [&](uint32_t operand) -> const plan::Buffer & {
      return elements(function.buffers())[elements(
          function.operands())[launch.first_operand() + operand]];
    };
    const BufferType q = bufferType(buffer(0));
    const Layout layout = layoutOf(plan, buffer(0));
    const bool cut = layout.shardedDim(Axis::Cp) == 1;
    const Ring ring{cut ? ranks : 1, q.dims[1] * (cut ? ranks : 1),
                    cut ? static_cast<SequenceOrder>(plan.sequence_order())
                        : SequenceOrder::Contiguous,
                    integers[integerIndex(spec, "causal")] != 0,
                    integers[integerIndex(spec, "window")]};
    for (int64_t rank = 0; rank < ranks; ++rank) {
      work.pairs[static_cast<size_t>(rank)] +=
          runs * q.dims[0] * q.dims[2] * visiblePairs(ring, cut ? rank : 0);
    }
    if (ranks > 1) {
      work.method = kernel == Kernel::RingAttention ? KeysOfOthers::Ring
                    : cut                           ? KeysOfOthers::Gather
                                                    : KeysOfOthers::AllToAll;
    }
  }
}

} // namespace

std::string_view name(KeysOfOthers method) {
  constexpr std::string_view kNames[] = {"none", "ring", "gather",
                                         "all-to-all"};
  return kNames[static_cast<size_t>(method)];
}

double AttentionWork::imbalance() const {
  const int64_t total = std::accumulate(pairs.begin(), pairs.end(), int64_t{0});
  return total == 0 ? 1
                    : static_cast<double>(*std::ranges::max_element(pairs)) *
                          static_cast<double>(pairs.size()) /
                          static_cast<double>(total);
}

AttentionWork attentionWork(const plan::Plan &plan) {
  AttentionWork work;
  work.pairs.resize(static_cast<size_t>(meshOf(plan).size(Axis::Cp)));
  for (int64_t s = 0; s < stageCount(plan); ++s) {
    const plan::Plan &stage = stagePlan(plan, s);
    for (const plan::Action &action : trainActions(stage)) {
      const plan::Program &program = *stage.programs()->Get(action.program());
      if (program.kind() != plan::ActionKind::Forward) {
        continue;
      }
      for (const plan::Call &call : elements(program.calls())) {
        add(stage, *stage.functions()->Get(call.function()), call.count(),
            work);
      }
    }
  }
  return work;
}

} // namespace mega
