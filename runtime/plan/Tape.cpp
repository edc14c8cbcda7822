//===- Tape.cpp - The derivative of a forward, as values ------------------===//
#include "runtime/plan/KernelValues.h"

#include <algorithm>

namespace mega {

void Tape::record(const ValueLaunch &launch,
                  const std::vector<Value> &results) {
  const KernelSpec &spec = kernelSpec(launch.kernel);
  bool fresh = false;
  for (size_t i = 0; i < results.size(); ++i) {
    if (spec.operands[i].access != Access::Read) {
      known.insert(results[i]);
      fresh |= defined.count(results[i]) == 0;
    }
  }
  // Computed twice, or not changed at all (plus zero): one value.
  if (!fresh) {
    return;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (spec.operands[i].access != Access::Read) {
      defined.insert(results[i]);
    } else {
      // A leaf is defined by its first use.
      defined.insert(launch.before[i]);
    }
  }
  steps.emplace_back(Step{launch, results});
}

void Tape::record(const ReadValue &read) {
  for (const ReadValue::Part &part : read.parts) {
    defined.insert(part.source);
    if (!part.whole && defined.insert(part.value).second) {
      known.insert(part.value);
      steps.emplace_back(Slice{part.value, part.source, part.block});
    }
  }
  if (read.parts.size() > 1 && defined.insert(read.value).second) {
    known.insert(read.value);
    steps.emplace_back(View{read.value, read.parts});
  }
}

const ValueLaunch *Tape::find(Kernel kernel, Value value) const {
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    const Step *step = std::get_if<Step>(&*it);
    if (step && step->launch.kernel == kernel &&
        std::find(step->results.begin(), step->results.end(), value) !=
            step->results.end()) {
      return &step->launch;
    }
  }
  return nullptr;
}

void Tape::add(Value value, Value gradient) {
  Value &whole = gradients[value].whole;
  whole = sum(whole, gradient);
  known.insert(gradient);
  known.insert(whole);
}

Value Tape::derivative(Value value) const {
  const auto it = gradients.find(value);
  if (it == gradients.end()) {
    return 0;
  }
  const Gradient &gradient = it->second;
  if (gradient.blocks.empty()) {
    return gradient.whole;
  }
  std::vector<std::pair<Coordinates, Value>> blocks;
  blocks.reserve(gradient.blocks.size());
  for (const auto &[block, part] : gradient.blocks) {
    blocks.emplace_back(block, sum(part, sliceOf(gradient.whole, block)));
  }
  return concatenationOf(blocks);
}

Status Tape::differentiate() {
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    if (const auto *step = std::get_if<Step>(&*it)) {
      MEGA_RETURN_IF_ERROR(differentiate(*step));
    } else if (const auto *slice = std::get_if<Slice>(&*it)) {
      if (const Value g = derivative(slice->value)) {
        Value &block = gradients[slice->source].blocks[slice->block];
        block = sum(block, g);
        known.insert(derivative(slice->source));
      }
    } else if (const auto *view = std::get_if<View>(&*it)) {
      if (const Value g = derivative(view->value)) {
        for (const ReadValue::Part &part : view->parts) {
          add(part.value, sliceOf(g, part.place));
        }
      }
    }
  }
  return Status::ok();
}

/// The results of `kernel` on `values`, which have the types of the step's
/// `operands`; one per operand of `kernel`.
std::vector<Value> Tape::apply(const Step &step, Kernel kernel,
                               const std::vector<int> &operands,
                               const std::vector<Value> &values,
                               std::vector<int64_t> integers,
                               std::vector<double> floats) {
  ValueLaunch launch;
  launch.kernel = kernel;
  launch.application = step.launch.application;
  launch.integers = std::move(integers);
  launch.floats = std::move(floats);
  for (int operand : operands) {
    launch.types.push_back(step.launch.types[static_cast<size_t>(operand)]);
  }
  launch.before = values;
  const size_t count = kernelSpec(kernel).operands.size();
  // Of what is written only whether it is there matters.
  launch.types.resize(count);
  launch.before.resize(count);
  std::vector<Value> results = resultsOf(launch);
  known.insert(results.begin(), results.end());
  return results;
}

Status Tape::differentiate(const Step &step) {
  const ValueLaunch &l = step.launch;
  const std::vector<Value> &x = l.before;
  const std::vector<Value> &y = step.results;
  const KernelSpec &spec = kernelSpec(l.kernel);
  std::vector<Value> g(y.size());
  bool any = false;
  for (size_t i = 0; i < y.size(); ++i) {
    if (spec.operands[i].access != Access::Read) {
      g[i] = derivative(y[i]);
      any |= g[i] != 0;
    }
  }
  if (!any) {
    return Status::ok();
  }
  switch (l.kernel) {
  case Kernel::Gemm: {
    if (l.integers[0] != 0 || l.integers[1] != 1) {
      return badInput("the derivative of a gemm with transpose_a {} and "
                      "transpose_b {} is not known, only of 0 and 1",
                      l.integers[0], l.integers[1]);
    }
    add(x[0],
        apply(step, Kernel::Gemm, {2, 1}, {g[2], x[1]}, {0, 0, 0}, {})[2]);
    add(x[1],
        apply(step, Kernel::Gemm, {2, 0}, {g[2], x[0]}, {1, 0, 1}, {})[2]);
    return Status::ok();
  }
  case Kernel::Embedding:
    add(x[1], apply(step, Kernel::EmbeddingGrad, {0, 2}, {x[0], g[2]},
                    l.integers, {})[2]);
    return Status::ok();
  case Kernel::AddPositions:
    add(x[0], g[2]);
    add(x[1],
        apply(step, Kernel::PositionsGrad, {2}, {g[2]}, l.integers, {})[1]);
    return Status::ok();
  case Kernel::AddPositionsAt:
    add(x[0], g[3]);
    add(x[1],
        apply(step, Kernel::PositionsGradAt, {2, 3}, {x[2], g[3]}, {}, {})[2]);
    return Status::ok();
  case Kernel::AddLayerNorm:
  case Kernel::LayerNorm: {
    const bool fused = l.kernel == Kernel::AddLayerNorm;
    // The operands of the norm itself.
    const int in = fused ? 4 : 0;
    const int gamma = fused ? 2 : 1;
    const int beta = fused ? 3 : 2;
    const int out = fused ? 5 : 3;
    const Value input = fused ? y[4] : x[0];
    if (g[out] != 0) {
      const auto r =
          apply(step, Kernel::LayerNormGrad, {out, in, gamma, out + 1, out + 2},
                {g[out], input, x[gamma], y[out + 1], y[out + 2]}, {1}, {});
      add(input, r[5]);
      add(x[gamma], r[6]);
      add(x[beta], r[7]);
    }
    if (fused) {
      const Value total = derivative(input);
      add(x[0], total);
      add(x[1], total);
    }
    return Status::ok();
  }
  case Kernel::AddRmsNorm:
  case Kernel::RmsNorm: {
    const bool fused = l.kernel == Kernel::AddRmsNorm;
    const int in = fused ? 3 : 0;
    const int gamma = fused ? 2 : 1;
    const int out = fused ? 4 : 2;
    const Value input = fused ? y[3] : x[0];
    if (g[out] != 0) {
      const auto r =
          apply(step, Kernel::RmsNormGrad, {out, in, gamma, out + 1},
                {g[out], input, x[gamma], y[out + 1]}, {1}, {l.floats[1]});
      add(input, r[4]);
      add(x[gamma], r[5]);
    }
    if (fused) {
      const Value total = derivative(input);
      add(x[0], total);
      add(x[1], total);
    }
    return Status::ok();
  }
  case Kernel::AddBias:
    add(x[0], g[2]);
    add(x[1], apply(step, Kernel::BiasGrad, {2}, {g[2]}, {}, {})[1]);
    return Status::ok();
  case Kernel::BiasGelu: {
    if (g[3] != 0) {
      add(y[2], apply(step, Kernel::GeluGrad, {3, 2}, {g[3], y[2]}, l.integers,
                      {})[2]);
    }
    const Value total = derivative(y[2]);
    add(x[0], total);
    add(x[1], apply(step, Kernel::BiasGrad, {2}, {total}, {}, {})[1]);
    return Status::ok();
  }
  case Kernel::Gelu:
    add(x[0],
        apply(step, Kernel::GeluGrad, {1, 0}, {g[1], x[0]}, l.integers, {})[2]);
    return Status::ok();
  case Kernel::Silu:
    add(x[0], apply(step, Kernel::SiluGrad, {1, 0}, {g[1], x[0]}, {}, {})[2]);
    return Status::ok();
  case Kernel::Gated: {
    const auto r = apply(step, Kernel::GatedGrad, {2, 0, 1}, {g[2], x[0], x[1]},
                         l.integers, {});
    add(x[0], r[3]);
    add(x[1], r[4]);
    return Status::ok();
  }
  case Kernel::Add:
    add(x[0], g[2]);
    add(x[1], g[2]);
    return Status::ok();
  case Kernel::Dropout:
    add(x[0],
        apply(step, Kernel::Dropout, {1}, {g[1]}, l.integers, l.floats)[1]);
    return Status::ok();
  case Kernel::DropoutAt:
    add(x[0], apply(step, Kernel::DropoutAt, {3, 1, 2}, {g[3], x[1], x[2]},
                    l.integers, l.floats)[3]);
    return Status::ok();
  case Kernel::Rope:
    add(x[0], apply(step, Kernel::Rope, {2, 1}, {g[2], x[1]},
                    {1 - l.integers[0]}, {})[2]);
    return Status::ok();
  case Kernel::RopeAt:
    add(x[0], apply(step, Kernel::RopeAt, {3, 1, 2}, {g[3], x[1], x[2]},
                    {1 - l.integers[0]}, {})[3]);
    return Status::ok();
  case Kernel::Scale:
    add(x[0], apply(step, Kernel::Scale, {1}, {g[1]}, {}, l.floats)[1]);
    return Status::ok();
  case Kernel::Attention: {
    const auto r =
        apply(step, Kernel::AttentionGrad, {3, 0, 1, 2, 3, 4},
              {g[3], x[0], x[1], x[2], y[3], y[4]}, l.integers, l.floats);
    add(x[0], r[6]);
    add(x[1], r[7]);
    add(x[2], r[8]);
    return Status::ok();
  }
  case Kernel::PackedAttention:
  case Kernel::RingAttention: {
    const Kernel gradient = l.kernel == Kernel::RingAttention
                                ? Kernel::RingAttentionGrad
                                : Kernel::PackedAttentionGrad;
    const auto r =
        apply(step, gradient, {7, 0, 1, 2, 3, 4, 5, 6, 7, 8},
              {g[7], x[0], x[1], x[2], x[3], x[4], x[5], x[6], y[7], y[8]},
              l.integers, l.floats);
    add(x[0], r[10]);
    add(x[1], r[11]);
    add(x[2], r[12]);
    return Status::ok();
  }
  case Kernel::HeadLoss: {
    // The maximum drops out of the loss.
    const auto r = apply(step, Kernel::HeadLossGrad, {4, 1, 3},
                         {g[4], x[1], x[3]}, l.integers, {});
    add(x[1], r[3]);
    add(x[2], r[4]);
    return Status::ok();
  }
  case Kernel::HeadRescale:
    add(x[0], apply(step, Kernel::HeadRescaleGrad, {3, 1, 2},
                    {g[3], x[1], x[2]}, {}, {})[3]);
    return Status::ok();
  case Kernel::HeadStats: {
    const auto r =
        apply(step, Kernel::HeadStatsGrad, {0, 1, 2, 3, 4, 5},
              {x[0], x[1], x[2], y[3], g[4], g[5]}, l.integers, l.floats);
    add(x[0], r[6]);
    add(x[1], r[7]);
    return Status::ok();
  }
  // Values of their own source, which has the derivative itself.
  case Kernel::Copy:
  case Kernel::Cast:
  case Kernel::Accumulate:
  case Kernel::Zero:
  case Kernel::AllReduce:
  case Kernel::AllGather:
  case Kernel::ReduceScatter:
  case Kernel::Slice:
  case Kernel::ToPartial:
  case Kernel::AllToAll:
  case Kernel::SendStart:
  case Kernel::SendWait:
  case Kernel::ReceiveStart:
  case Kernel::ReceiveWait:
  case Kernel::SumStages:
    return Status::ok();
  case Kernel::EmbeddingGrad:
  case Kernel::PositionsGrad:
  case Kernel::PositionsGradAt:
  case Kernel::LayerNormGrad:
  case Kernel::RmsNormGrad:
  case Kernel::BiasGrad:
  case Kernel::GeluGrad:
  case Kernel::SiluGrad:
  case Kernel::GatedGrad:
  case Kernel::RopeTable:
  case Kernel::AttentionGrad:
  case Kernel::PackedAttentionGrad:
  case Kernel::RingAttentionGrad:
  case Kernel::HeadLossGrad:
  case Kernel::HeadRescaleGrad:
  case Kernel::HeadStatsGrad:
  case Kernel::CountValid:
  case Kernel::LossSeed:
  case Kernel::SumSquares:
  case Kernel::ClipScale:
  case Kernel::AdamW:
    break;
  }
  return badInput("a forward needs the derivative of {}, which has none",
                  spec.name);
}

} // namespace mega
