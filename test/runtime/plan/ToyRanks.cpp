#include "test/runtime/plan/ToyRanks.h"

#include "runtime/plan/Kernels.h"
#include "runtime/plan/Layout.h"

namespace mega {
namespace {

// Regions of toy.json, and what is where in them.
enum Region : uint32_t {
  kParameters = 0,
  kGradients = 1,
  kMoments = 2,
  kVariances = 3,
  kCounters = 4,
  kScratch = 8,
  kInput = 9,
};
constexpr int64_t kLossSum = 0, kCount = 8, kSquareSum = 24;
constexpr int64_t kElements = 120;

plan::Buffer inRegion(Region region, const BufferType &type, int64_t offset) {
  return makeBuffer(plan::Space::Region, region, type, offset);
}
const BufferType kF64(DataType::F64, {}), kI64(DataType::I64, {});
BufferType vectorOf(int64_t size) { return {DataType::F32, {size}}; }

/// Puts a launch on `buffers` before launch `at` of a function.
void insertLaunch(plan::FunctionT &function, size_t at, Kernel kernel,
                  const std::vector<plan::Buffer> &buffers,
                  const std::vector<int64_t> &integers) {
  const plan::Launch launch(static_cast<uint16_t>(kernel), 0, /*location=*/7,
                            static_cast<uint32_t>(function.operands.size()),
                            static_cast<uint32_t>(function.integers.size()), 0);
  function.launches.insert(
      function.launches.begin() + static_cast<std::ptrdiff_t>(at), launch);
  for (const plan::Buffer &buffer : buffers) {
    function.operands.push_back(static_cast<uint16_t>(function.buffers.size()));
    function.buffers.push_back(buffer);
  }
  function.integers.insert(function.integers.end(), integers.begin(),
                           integers.end());
}

/// Gives a launch another buffer; other launches keep the one it had.
void replaceOperand(plan::FunctionT &function, size_t launch, size_t operand,
                    const plan::Buffer &buffer) {
  function.operands.at(function.launches.at(launch).first_operand() + operand) =
      static_cast<uint16_t>(function.buffers.size());
  function.buffers.push_back(buffer);
}

void sumInPlace(plan::FunctionT &function, size_t at,
                const plan::Buffer &buffer) {
  insertLaunch(function, at, Kernel::AllReduce, {buffer, buffer},
               {/*group=*/0, static_cast<int64_t>(Reduction::Sum)});
}

/// A mesh of one axis, which is also the only group.
void setMesh(plan::PlanT &plan, Axis axis, uint32_t size) {
  plan.mesh = {plan::Axis(static_cast<uint8_t>(axis), size)};
  plan::Group group(1);
  group.mutable_axes()->Mutate(0, static_cast<uint8_t>(axis));
  plan.groups = {group};
}

/// Adds a layout that cuts dimension `dim` of `rank` over `axis`; its number.
uint8_t addCut(plan::PlanT &plan, uint8_t rank, uint32_t dim, Axis axis) {
  if (plan.layouts.empty()) {
    plan.layouts.emplace_back();
  }
  plan::LayoutDimension dimension(0, 1);
  dimension.mutable_axes()->Mutate(0, static_cast<uint8_t>(axis));
  plan::Layout layout(rank, 0, 0, 0, 0);
  *layout.mutable_dims()->GetMutablePointer(dim) = dimension;
  plan.layouts.push_back(layout);
  return static_cast<uint8_t>(plan.layouts.size() - 1);
}

/// Loss sums are of all replicas at the end of a step.
void sumLosses(plan::PlanT &plan) {
  const plan::Buffer sum = inRegion(kCounters, kF64, kLossSum);
  plan::FunctionT &end = functionNamed(plan, "step.end");
  sumInPlace(end, end.launches.size(), sum);
  auto function = std::make_unique<plan::FunctionT>();
  function->name = "step.end.eval";
  sumInPlace(*function, 0, sum);
  auto program = std::make_unique<plan::ProgramT>();
  program->name = "end.eval";
  program->kind = plan::ActionKind::Finish;
  program->calls = {plan::Call(static_cast<uint32_t>(plan.functions.size()), 1,
                               0, 0, 0, 0, 0)};
  actionsOf(plan, "eval")
      .emplace_back(static_cast<uint32_t>(plan.programs.size()), 0, 0, 0);
  plan.functions.push_back(std::move(function));
  plan.programs.push_back(std::move(program));
}

/// ZeRO-1: this rank's piece of the bucket, from reduce_scatter to all_gather.
void shardState(plan::PlanT &plan, int64_t replicas) {
  const int64_t piece = kElements / replicas;
  const uint8_t cut = addCut(plan, 1, 0, Axis::Dp);
  const auto pieceOf = [&](Region region, bool whole) {
    plan::Buffer buffer = inRegion(region, vectorOf(piece), 0);
    buffer.mutate_layout(cut);
    if (whole) {
      buffer.mutate_axes(bit(Axis::Dp));
      buffer.mutate_per_piece(piece * 4);
    }
    return buffer;
  };
  for (const char *name : {"moments", "variances"}) {
    regionNamed(plan, name).bytes = static_cast<uint64_t>(piece) * 4;
  }
  plan::FunctionT &end = functionNamed(plan, "step.end");
  // sum_squares, clip_scale, adamw.
  const plan::Buffer weight = pieceOf(kParameters, true),
                     gradient = pieceOf(kGradients, true);
  operandOf(end, 0, 0) = gradient;
  operandOf(end, 2, 0) = weight;
  operandOf(end, 2, 1) = gradient;
  operandOf(end, 2, 2) = pieceOf(kMoments, false);
  operandOf(end, 2, 3) = pieceOf(kVariances, false);
  const plan::Buffer scratch = inRegion(kScratch, vectorOf(1), 0);
  insertLaunch(end, 3, Kernel::AllGather,
               {weight, inRegion(kParameters, vectorOf(kElements), 0), scratch},
               {0, 0, /*zigzag=*/0});
  sumInPlace(end, 1, inRegion(kCounters, kF64, kSquareSum));
  insertLaunch(
      end, 0, Kernel::ReduceScatter,
      {inRegion(kGradients, vectorOf(kElements), 0), gradient, scratch},
      {0, 0, /*zigzag=*/0});
}

} // namespace

std::unique_ptr<plan::PlanT> toyWithMicroBatches(uint32_t microBatches) {
  std::unique_ptr<plan::PlanT> plan = toyPlan();
  const int64_t labels = int64_t{24} * microBatches;
  const auto move = [&](plan::Buffer &buffer) {
    if (buffer.region() == kInput && buffer.offset() != 0) {
      buffer.mutate_offset(labels);
    }
    // The labels of a whole step.
    if (buffer.dims()->Get(0) == 4 && buffer.rank() == 2) {
      buffer.mutable_dims()->Mutate(0, 2 * microBatches);
    }
  };
  for (auto &program : plan->programs) {
    std::for_each(program->arguments.begin(), program->arguments.end(), move);
  }
  for (auto &function : plan->functions) {
    std::for_each(function->arguments.begin(), function->arguments.end(), move);
    std::for_each(function->buffers.begin(), function->buffers.end(), move);
  }
  for (auto &input : plan->inputs) {
    move(*input->buffer);
  }
  regionNamed(*plan, "input").bytes = static_cast<uint64_t>(2 * labels);
  plan->global_batch_size = 2 * microBatches;
  for (auto &entry : plan->entry_points) {
    entry->micro_batches = microBatches;
    std::vector<plan::Action> &actions = entry->stages[0]->actions;
    const bool train = entry->name == "train";
    const uint32_t begin = actions.front().program();
    const uint32_t end = actions.back().program();
    actions = {plan::Action(begin, 0, 0, 0)};
    for (uint32_t m = 0; m < microBatches; ++m) {
      actions.emplace_back(begin + 1, m, 0, 0);
      if (train) {
        actions.emplace_back(begin + 2, m, 0, 0);
      }
    }
    if (train) {
      actions.emplace_back(end, 0, 0, 0);
    }
  }
  return plan;
}

std::unique_ptr<plan::PlanT> dataParallelToy(uint32_t dp, bool sharded) {
  std::unique_ptr<plan::PlanT> plan = toyPlan();
  setMesh(*plan, Axis::Dp, dp);
  plan->global_batch_size = 4 * dp;
  const uint8_t samples = addCut(*plan, 2, 0, Axis::Dp);
  for (auto &input : plan->inputs) {
    input->buffer->mutate_layout(samples);
  }
  const plan::Buffer count = inRegion(kCounters, kI64, kCount);
  for (const char *name : {"step.begin", "step.begin.eval"}) {
    plan::FunctionT &begin = functionNamed(*plan, name);
    size_t at = 0;
    while (begin.launches[at].kernel() !=
           static_cast<uint16_t>(Kernel::CountValid)) {
      ++at;
    }
    sumInPlace(begin, at + 1, count);
  }
  if (sharded) {
    shardState(*plan, dp);
  } else {
    sumInPlace(functionNamed(*plan, "step.end"), 0,
               inRegion(kGradients, vectorOf(kElements), 0));
  }
  sumLosses(*plan);
  return plan;
}

std::unique_ptr<plan::PlanT> tensorParallelToy() {
  constexpr int64_t kRanks = 5, kRows = 7;
  std::unique_ptr<plan::PlanT> plan = toyPlan();
  setMesh(*plan, Axis::Tp, kRanks);
  const uint8_t columns = addCut(*plan, 2, 1, Axis::Tp);
  const uint8_t features = addCut(*plan, 3, 2, Axis::Tp);
  const auto cut = [&](plan::Buffer buffer) {
    buffer.mutable_dims()->Mutate(1, 1);
    buffer.mutate_row_stride(1);
    buffer.mutate_layout(columns);
    return buffer;
  };
  plan::ParameterT &table = *plan->parameters.at(0);
  *table.weight = cut(*table.weight);
  *table.gradient = cut(*table.gradient);
  plan::Buffer column =
      inRegion(kScratch, BufferType(DataType::F32, {2, 3, 1}), 0);
  column.mutate_layout(features);
  const plan::Buffer scratch = inRegion(kScratch, vectorOf(30), 128);

  // embedding(ids, table) -> y
  plan::FunctionT &forward = functionNamed(*plan, "embed.forward");
  const plan::Buffer all = operandOf(forward, 0, 2);
  replaceOperand(forward, 0, 2, column);
  replaceOperand(forward, 0, 1, cut(operandOf(forward, 0, 1)));
  insertLaunch(forward, 1, Kernel::AllGather, {column, all, scratch},
               {0, 2, /*zigzag=*/0});

  // embedding_grad(ids, grad) -> grad_table
  plan::FunctionT &backward = functionNamed(*plan, "embed.backward");
  const plan::Buffer whole = operandOf(backward, 0, 1);
  replaceOperand(backward, 0, 1, column);
  replaceOperand(backward, 0, 2, cut(operandOf(backward, 0, 2)));
  insertLaunch(backward, 0, Kernel::Slice, {whole, column},
               {0, 2, /*zigzag=*/0});

  // The norm: squares of the columns summed over the ranks, then the rest.
  plan::FunctionT &end = functionNamed(*plan, "step.end");
  const plan::Buffer total = operandOf(end, 0, 1);
  replaceOperand(end, 0, 0, inRegion(kGradients, vectorOf(kRows), 0));
  constexpr int64_t kTable = kRows * kRanks;
  insertLaunch(
      end, 1, Kernel::SumSquares,
      {inRegion(kGradients, vectorOf(kElements - kTable), kTable * 4), total},
      {/*accumulate=*/1});
  sumInPlace(end, 1, total);
  return plan;
}

} // namespace mega
