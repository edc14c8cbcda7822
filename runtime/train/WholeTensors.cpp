#include "runtime/train/WholeTensors.h"

#include <algorithm>
#include <map>
#include <string>

namespace mega {
namespace {

const View &viewOf(const ParameterState &parameter, ParameterPart part) {
  switch (part) {
  case ParameterPart::Weight:
    return parameter.weight;
  case ParameterPart::Gradient:
    return parameter.gradient;
  case ParameterPart::Moment:
    return parameter.moment;
  case ParameterPart::Variance:
    return parameter.variance;
  }
  return parameter.weight;
}

} // namespace

WholeTensors::WholeTensors(const plan::Plan &plan, LocalRanks &ranks,
                           Communicator *everyone)
    : ranks(ranks), everyone(everyone) {
  const auto stages = static_cast<size_t>(stageCount(plan));
  std::map<std::string, size_t> numbers;
  for (size_t s = 0; s < stages; ++s) {
    const plan::Plan &stage = stagePlan(plan, static_cast<int64_t>(s));
    ranges.push_back(optimizerRanges(stage));
    std::vector<LogicalParameter> parameters = logicalParameters(stage);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto [it, fresh] =
          numbers.try_emplace(parameters[i].name, all.size());
      if (fresh) {
        all.push_back({std::move(parameters[i]), static_cast<int64_t>(s),
                       std::vector<int64_t>(stages, -1)});
      }
      all[it->second].indices[s] = static_cast<int64_t>(i);
    }
  }
}

FlatRange WholeTensors::toldBy(const WholeTensor &tensor, int64_t rank) const {
  const Mesh &mesh = ranks.mesh();
  const LogicalParameter &parameter = tensor.info;
  const auto &own = ranges[static_cast<size_t>(tensor.stage)];
  const OptimizerRange *shared =
      parameter.range && own[*parameter.range].isShared()
          ? &own[*parameter.range]
          : nullptr;
  for (int i = 0; i < static_cast<int>(Axis::Pp); ++i) {
    const auto axis = static_cast<Axis>(i);
    const bool same = parameter.layout.state(axis) != State::Shard &&
                      !(shared && std::ranges::count(shared->axes, axis) != 0);
    if (same && mesh.coordinate(rank, axis) != 0) {
      return {};
    }
  }
  return shared
             ? ownedElements(parameter, *shared, mesh.place(rank, shared->axes))
             : FlatRange{0, parameter.elements};
}

void WholeTensors::put(const LogicalParameter &parameter, int64_t rank,
                       FlatRange range, const float *values) {
  const TensorPiece piece(parameter.shape, parameter.layout, ranks.mesh(),
                          rank);
  piece.forEachRun(range, [&](int64_t local, int64_t first, int64_t count) {
    if (first >= 0) {
      std::copy_n(values + (local - range.begin), count, whole.data() + first);
    }
  });
}

StatusOr<std::span<const float>> WholeTensors::gather(size_t index,
                                                      ParameterPart part) {
  const WholeTensor &tensor = all[index];
  const auto own =
      static_cast<size_t>(tensor.indices[static_cast<size_t>(tensor.stage)]);
  if (isRoot()) {
    int64_t elements = 1;
    for (const int64_t extent : tensor.info.shape) {
      elements *= extent;
    }
    whole.resize(static_cast<size_t>(elements));
  }
  size_t next = 0;
  for (int64_t rank = 0; rank < ranks.mesh().ranks(); ++rank) {
    const bool local =
        next < ranks.size() && ranks.executor(next).rank() == rank;
    const bool here = ranks.mesh().coordinate(rank, Axis::Pp) == tensor.stage;
    const FlatRange range = here ? toldBy(tensor, rank) : FlatRange{};
    const float *values = nullptr;
    if (local) {
      const Executor &executor = ranks.executor(next++);
      if (!here) {
        continue;
      }
      values = viewOf(executor.parameters()[own], part).as<float>();
      // The others begin with the element that the rank owns first.
      values += part == ParameterPart::Weight ? range.begin : 0;
    }
    if (range.size() == 0 || (!local && !isRoot())) {
      continue;
    }
    if (!local) {
      received.resize(static_cast<size_t>(range.size()));
      MEGA_ASSIGN_OR_RETURN(const Transfer transfer,
                            everyone->postReceive(received.data(), range.size(),
                                                  DataType::F32,
                                                  static_cast<int>(rank)));
      MEGA_RETURN_IF_ERROR(everyone->wait(transfer));
      values = received.data();
    }
    if (isRoot()) {
      put(tensor.info, rank, range, values);
      continue;
    }
    MEGA_ASSIGN_OR_RETURN(
        const Transfer transfer,
        everyone->postSend(values, range.size(), DataType::F32, 0));
    MEGA_RETURN_IF_ERROR(everyone->wait(transfer));
  }
  return isRoot() ? std::span<const float>(whole) : std::span<const float>();
}

void WholeTensors::cut(size_t index, ParameterPart part,
                       std::span<const float> from) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Executor &executor = ranks.executor(i);
    const int64_t own = all[index].indices[static_cast<size_t>(
        ranks.mesh().coordinate(executor.rank(), Axis::Pp))];
    if (own < 0) {
      continue;
    }
    const ParameterState &parameter =
        executor.parameters()[static_cast<size_t>(own)];
    const View &view = viewOf(parameter, part);
    const FlatRange range = part == ParameterPart::Weight
                                ? FlatRange{0, parameter.info.elements}
                                : parameter.owned;
    parameter.piece.forEachRun(
        range, [&](int64_t local, int64_t first, int64_t count) {
          float *to = view.as<float>() + (local - range.begin);
          if (first < 0) {
            std::fill_n(to, count, 0.0f);
          } else {
            std::copy_n(from.data() + first, count, to);
          }
        });
  }
}

} // namespace mega
