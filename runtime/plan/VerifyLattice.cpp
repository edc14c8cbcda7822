//===- VerifyLattice.cpp - Layouts, launch by launch ----------------------===//
#include "runtime/plan/KernelSharding.h"
#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/SequenceOrder.h"
#include "runtime/plan/StepExecution.h"
#include "runtime/plan/Verifier.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace mega {
namespace {

/// The launches of one function.
class FunctionLattice {
public:
  FunctionLattice(const plan::Plan &plan, const plan::Function &function,
                  const Mesh &mesh)
      : plan(plan), function(function), mesh(mesh) {
    for (const plan::CoordinateTerm &term : elements(function.terms())) {
      terms[term.integer()].push_back(
          {static_cast<Axis>(term.axis()), term.coefficient()});
    }
  }

  Status verify() {
    const auto launches = elements(function.launches());
    for (size_t i = 0; i < launches.size(); ++i) {
      MEGA_RETURN_IF_ERROR_CONTEXT(
          verifyLaunch(launches[i]), "function {}: launch {}, {} ({})",
          text(function.name()), i,
          kernelSpec(static_cast<Kernel>(launches[i].kernel())).name,
          text(plan.locations()->Get(launches[i].location())));
    }
    for (const auto &[integer, factors] : terms) {
      if (used.count(integer) == 0) {
        return badInput("function {}: integer {} depends on the rank, but no "
                        "launch has it",
                        text(function.name()), integer);
      }
    }
    return Status::ok();
  }

private:
  Status verifyLaunch(const plan::Launch &launch);
  Status verifyConversion(const ShardedLaunch &launch) const;
  Status verifyRing(const ShardedLaunch &launch) const;
  std::vector<Axis> groupAxes(const ShardedLaunch &launch) const;
  Status verifySamples(const ShardedLaunch &launch) const;
  Status verifyIntegers(const ShardedLaunch &launch, uint32_t first);

  const plan::Plan &plan;
  const plan::Function &function;
  const Mesh &mesh;
  std::map<uint32_t, std::vector<CoordinateFactor>> terms;
  std::set<uint32_t> used;
};

Status FunctionLattice::verifyLaunch(const plan::Launch &launch) {
  const auto kernel = static_cast<Kernel>(launch.kernel());
  const KernelSpec &spec = kernelSpec(kernel);
  std::vector<BufferType> types;
  std::vector<Layout> layouts;
  for (const uint16_t operand :
       elements(function.operands())
           .subspan(launch.first_operand(), spec.operands.size())) {
    const plan::Buffer &buffer = elements(function.buffers())[operand];
    types.push_back(bufferType(buffer));
    layouts.push_back(layoutOf(plan, buffer));
  }
  const ShardedLaunch sharded{
      kernel,
      {types,
       elements(function.integers())
           .subspan(launch.first_integer(), spec.integers.size()),
       elements(function.floats())
           .subspan(launch.first_float(), spec.floats.size())},
      layouts};
  MEGA_RETURN_IF_ERROR(checkSharding(sharded, mesh));
  if (isConversion(kernel)) {
    MEGA_RETURN_IF_ERROR(verifyConversion(sharded));
  } else if (isRing(kernel)) {
    MEGA_RETURN_IF_ERROR(verifyRing(sharded));
  }
  MEGA_RETURN_IF_ERROR(verifySamples(sharded));
  return verifyIntegers(sharded, launch.first_integer());
}

/// `{dp, tp}`.
std::string names(const std::vector<Axis> &list) {
  std::vector<std::string_view> texts;
  texts.reserve(list.size());
  for (const Axis axis : list) {
    texts.push_back(name(axis));
  }
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

/// Of the group that the launch's first integer names.
std::vector<Axis>
FunctionLattice::groupAxes(const ShardedLaunch &launch) const {
  const auto number = static_cast<size_t>(launch.signature.integers[0]);
  const plan::Group &group = elements(plan.groups())[number];
  std::vector<Axis> axes;
  axes.reserve(group.count());
  for (uint32_t i = 0; i < group.count(); ++i) {
    axes.push_back(static_cast<Axis>(group.axes()->Get(i)));
  }
  return axes;
}

/// The ranks of the group are those that have the pieces of its keys, in the
/// plan's order.
Status FunctionLattice::verifyRing(const ShardedLaunch &launch) const {
  const size_t k = launch.kernel == Kernel::RingAttention ? 1 : 2;
  const Layout &layout = launch.layouts[k];
  std::vector<Axis> wanted;
  if (layout.rank > 1) {
    const Layout::Dimension &cut = layout.dims[1];
    wanted.assign(cut.axes.begin(), cut.axes.begin() + cut.count);
  }
  // What nobody sees follows from the order of the rows, those of the plan.
  const auto order = static_cast<SequenceOrder>(launch.signature.integers[1]);
  const auto expected = static_cast<SequenceOrder>(plan.sequence_order());
  const bool zigzag = layout.rank > 1 && layout.dims[1].zigzag;
  if (order != expected || zigzag != (order == SequenceOrder::Zigzag)) {
    return badInput(
        "its order is {}, rows are {} and its keys have layout [{}]",
        name(order), name(expected), layout.str());
  }
  const std::vector<Axis> axes = groupAxes(launch);
  return axes == wanted
             ? Status::ok()
             : badInput("its group is over {}, its keys are cut over {}",
                        names(axes), names(wanted));
}

Status FunctionLattice::verifyConversion(const ShardedLaunch &launch) const {
  MEGA_ASSIGN_OR_RETURN(ConversionShape shape, conversionShape(launch, mesh));
  std::vector<Axis> axes = groupAxes(launch);
  const std::string found = names(axes);
  const std::string wanted = names(shape.axes);
  if (shape.dim() < 0) {
    // Of a reduction or of one summand the order does not matter.
    std::sort(axes.begin(), axes.end());
    std::sort(shape.axes.begin(), shape.axes.end());
  }
  if (axes != shape.axes) {
    return badInput("its group is over {}, the layouts differ over {}", found,
                    wanted);
  }
  const auto integers = launch.signature.integers;
  const KernelSpec &spec = kernelSpec(launch.kernel);
  for (const auto &[name, zigzag] :
       {std::pair("zigzag", shape.fromZigzag || shape.toZigzag),
        std::pair("from_zigzag", shape.fromZigzag),
        std::pair("to_zigzag", shape.toZigzag)}) {
    const size_t i = integerIndex(spec, name);
    if (i < integers.size() && integers[i] != static_cast<int64_t>(zigzag)) {
      return badInput("{} is {}, the layouts are {}zigzag", name, integers[i],
                      zigzag ? "" : "not ");
    }
  }
  if (launch.kernel == Kernel::AllToAll) {
    return integers[1] == shape.fromDim && integers[2] == shape.toDim
               ? Status::ok()
               : badInput("it goes from dimension {} to {}, the layouts from "
                          "{} to {}",
                          integers[1], integers[2], shape.fromDim, shape.toDim);
  }
  const int64_t dim = launch.kernel == Kernel::AllReduce ? -1 : integers[1];
  return dim == shape.dim()
             ? Status::ok()
             : badInput("its dimension is {}, the layouts differ in {}", dim,
                        shape.dim());
}

/// Random numbers count the samples of a replica from its place in dp on.
Status FunctionLattice::verifySamples(const ShardedLaunch &launch) const {
  const LaunchSignature &s = launch.signature;
  size_t operand = 0;
  double probability = 0;
  switch (launch.kernel) {
  case Kernel::Dropout:
  case Kernel::DropoutAt:
    probability = s.floats[0];
    break;
  case Kernel::AttentionGrad:
  case Kernel::PackedAttentionGrad:
  case Kernel::RingAttentionGrad:
    operand = 1;
    [[fallthrough]];
  case Kernel::Attention:
  case Kernel::PackedAttention:
  case Kernel::RingAttention:
    probability = s.floats[1];
    break;
  default:
    break;
  }
  const Layout &layout = launch.layouts[operand];
  if (probability == 0 || s.operands[operand].rank < 2) {
    return Status::ok();
  }
  const int64_t replicas = layout.rank == 0 ? 1 : layout.shards(0, mesh);
  const bool samples = layout.rank != 0 && layout.shardedDim(Axis::Dp) == 0;
  return replicas == mesh.size(Axis::Dp) && (replicas == 1 || samples)
             ? Status::ok()
             : badInput("it drops out of samples with layout [{}], expected "
                        "dimension 0 over dp alone",
                        layout.str());
}

Status FunctionLattice::verifyIntegers(const ShardedLaunch &launch,
                                       uint32_t first) {
  const KernelSpec &spec = kernelSpec(launch.kernel);
  for (uint32_t i = 0; i < spec.integers.size(); ++i) {
    MEGA_ASSIGN_OR_RETURN(std::vector<CoordinateFactor> wanted,
                          coordinateFactors(launch, i, mesh));
    const auto it = terms.find(first + i);
    std::vector<CoordinateFactor> found =
        it == terms.end() ? std::vector<CoordinateFactor>() : it->second;
    used.insert(first + i);
    if (isPieceStart(launch.kernel, i) && launch.signature.integers[i] != 0) {
      return badInput("{} is {} on the first rank, expected 0",
                      spec.integers[i], launch.signature.integers[i]);
    }
    const auto text = [](std::vector<CoordinateFactor> &factors) {
      std::ranges::sort(factors, {}, &CoordinateFactor::axis);
      std::string sum;
      for (const CoordinateFactor &factor : factors) {
        sum += fmt::format(" + {} {}", factor.coefficient, name(factor.axis));
      }
      return sum;
    };
    const std::string foundText = text(found);
    const std::string wantedText = text(wanted);
    if (found != wanted) {
      return badInput("{} is {}{}, its operand's piece demands {}{}",
                      spec.integers[i], launch.signature.integers[i], foundText,
                      launch.signature.integers[i], wantedText);
    }
  }
  return Status::ok();
}

/// What is reported is complete.
Status verifyReported(const plan::Plan &plan, ValueExecution &execution) {
  for (uint32_t i = 0; i < length(plan.loss_terms()); ++i) {
    const plan::LossTerm &term = *plan.loss_terms()->Get(i);
    for (const auto &[what, buffer] :
         {std::pair("sum", term.sum()), std::pair("count", term.count())}) {
      MEGA_RETURN_IF_ERROR_CONTEXT(execution.checkComplete(*buffer),
                                   "the {} of loss term {}", what,
                                   text(term.name()));
    }
  }
  if (const plan::Buffer *squares = plan.gradient_square_sum()) {
    MEGA_RETURN_IF_ERROR_CONTEXT(execution.checkComplete(*squares),
                                 "gradient_square_sum");
  }
  return Status::ok();
}

/// Two steps of two micro-batches: what a micro-batch or a step leaves has to
/// be laid out as the next one reads it, and what is reported is complete.
Status verifySteps(const std::vector<VerifierContext> &stages,
                   uint32_t entryPoint) {
  MEGA_ASSIGN_OR_RETURN(StepExecution step,
                        StepExecution::begin(stages, entryPoint));
  StepExecution::Watch watch;
  watch.keepDropout = false;
  for (int i = 0; i < 2; ++i) {
    MEGA_RETURN_IF_ERROR(step.prologue(watch));
    for (uint32_t m = 0; m < std::min(step.entry(0).micro_batches(), 2u); ++m) {
      MEGA_RETURN_IF_ERROR(step.microBatch(watch));
    }
    MEGA_RETURN_IF_ERROR(step.finish(watch));
    for (int64_t s = 0; s < step.stages(); ++s) {
      MEGA_RETURN_IF_ERROR(verifyReported(step.plan(s), step.on(s)));
    }
    step.beginNextStep();
  }
  return Status::ok();
}

/// Parameters and their copies are no sums, and a gradient is cut like its
/// parameter.
Status verifyParameter(const plan::Plan &plan, const plan::Parameter &parameter,
                       const Mesh &mesh) {
  const Layout weight = whole(layoutOf(plan, *parameter.weight()), mesh);
  if (weight.partial != 0) {
    return badInput("its weight has layout [{}], which is a sum", weight.str());
  }
  for (const Layout::Dimension &dimension : weight.dims) {
    if (dimension.zigzag) {
      return badInput(
          "its weight has layout [{}], and only sequences are zigzag",
          weight.str());
    }
  }
  Layout gradient = whole(layoutOf(plan, *parameter.gradient()), mesh);
  gradient.replicated |= gradient.partial;
  gradient.partial = 0;
  for (const auto &[what, layout] :
       {std::pair("gradient", gradient),
        std::pair("compute copy",
                  parameter.compute()
                      ? whole(layoutOf(plan, *parameter.compute()), mesh)
                      : weight)}) {
    if (layout != weight) {
      return badInput("its {} has layout [{}], its weight [{}]", what,
                      layout.str(), weight.str());
    }
  }
  return Status::ok();
}

} // namespace

Status verifyLattice(const plan::Plan &plan) {
  const Mesh mesh = meshOf(plan);
  for (uint32_t i = 0; i < length(plan.parameters()); ++i) {
    const plan::Parameter &parameter = *plan.parameters()->Get(i);
    MEGA_RETURN_IF_ERROR_CONTEXT(verifyParameter(plan, parameter, mesh),
                                 "parameter {}", logicalName(parameter, 0));
  }
  for (uint32_t f = 0; f < length(plan.functions()); ++f) {
    MEGA_RETURN_IF_ERROR(
        FunctionLattice(plan, *plan.functions()->Get(f), mesh).verify());
  }
  return Status::ok();
}

Status verifySpreads(const std::vector<VerifierContext> &stages) {
  const plan::Plan &plan = stages.front().plan;
  for (uint32_t e = 0; e < length(plan.entry_points()); ++e) {
    MEGA_RETURN_IF_ERROR_CONTEXT(verifySteps(stages, e), "{}",
                                 text(plan.entry_points()->Get(e)->name()));
  }
  return Status::ok();
}

} // namespace mega
