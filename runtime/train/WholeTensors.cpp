#include "runtime/train/WholeTensors.h"

#include <algorithm>

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

WholeTensors::WholeTensors(LocalRanks &ranks, Communicator *everyone)
    : ranks(ranks), everyone(everyone),
      ranges(optimizerRanges(ranks.first().plan())) {}

FlatRange WholeTensors::toldBy(const LogicalParameter &parameter,
                               int64_t rank) const {
  const Mesh &mesh = ranks.mesh();
  const OptimizerRange *shared =
      parameter.range && ranges[*parameter.range].isShared()
          ? &ranges[*parameter.range]
          : nullptr;
  for (int i = 0; i <= static_cast<int>(Axis::Pp); ++i) {
    const auto axis = static_cast<Axis>(i);
    const bool same = parameter.layout.state(axis) != State::Shard &&
                      !(shared && shared->axis == axis);
    if (same && mesh.coordinate(rank, axis) != 0) {
      return {};
    }
  }
  return shared ? ownedElements(parameter, *shared,
                                mesh.coordinate(rank, shared->axis))
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
  const LogicalParameter &parameter = parameters()[index].info;
  if (isRoot()) {
    whole.resize(
        static_cast<size_t>(parameters()[index].piece.wholeElements()));
  }
  size_t next = 0;
  for (int64_t rank = 0; rank < ranks.mesh().ranks(); ++rank) {
    const bool local =
        next < ranks.size() && ranks.executor(next).rank() == rank;
    const FlatRange range = toldBy(parameter, rank);
    const float *values = nullptr;
    if (local) {
      values =
          viewOf(ranks.executor(next++).parameters()[index], part).as<float>();
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
      put(parameter, rank, range, values);
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
    const ParameterState &parameter = ranks.executor(i).parameters()[index];
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
