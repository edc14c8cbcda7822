#include "runtime/plan/PlanLayouts.h"

#include "runtime/plan/DataInputs.h"
#include "runtime/plan/SequenceOrder.h"

#include <algorithm>

namespace mega {
namespace {

uint8_t axisAt(const plan::Group &group, int index) {
  return group.axes()->Get(static_cast<uint16_t>(index));
}

/// The ranks that differ from `rank` on one axis of a group.
std::vector<int64_t> lineOf(uint8_t axis, const Mesh &mesh, int64_t rank) {
  if (axis != kTieAxis) {
    return mesh.group(rank, static_cast<Axis>(axis));
  }
  const std::vector<int64_t> stages = mesh.group(rank, Axis::Pp);
  if (rank == stages.front() || rank == stages.back()) {
    return {stages.front(), stages.back()};
  }
  return {rank};
}

} // namespace

std::string_view groupAxisName(uint8_t axis) {
  return axis == kTieAxis ? "tie" : name(static_cast<Axis>(axis));
}

bool isBetweenStages(const plan::Group &group) {
  const uint8_t axis = axisAt(group, 0);
  return axis == kTieAxis || axis == static_cast<uint8_t>(Axis::Pp);
}

Mesh meshOf(const plan::Plan &plan) {
  Mesh mesh;
  for (const plan::Axis &axis : elements(plan.mesh())) {
    mesh.sizes[axis.name()] = axis.size();
  }
  return mesh;
}

Layout layoutOf(const plan::Layout &layout) {
  Layout result;
  result.rank = layout.rank();
  for (uint32_t d = 0; d < Layout::kMaxRank; ++d) {
    const plan::LayoutDimension &dimension = *layout.dims()->Get(d);
    result.dims[d].padded = dimension.padded();
    result.dims[d].zigzag = (layout.zigzag() >> d & 1) != 0;
    for (uint32_t i = 0; i < dimension.count(); ++i) {
      result.dims[d].push(static_cast<Axis>(dimension.axes()->Get(i)));
    }
  }
  result.replicated = layout.replicated();
  result.partial = layout.partial();
  result.reduction = static_cast<Reduction>(layout.reduction());
  return result;
}

Layout layoutOf(const plan::Plan &plan, const plan::Buffer &buffer) {
  const auto layouts = elements(plan.layouts());
  return layouts.empty() ? Layout() : layoutOf(layouts[buffer.layout()]);
}

Layout inputLayout(const plan::Plan &plan, std::string_view input) {
  const Mesh mesh = meshOf(plan);
  Layout layout;
  if (mesh.size(Axis::Dp) > 1) {
    layout.rank = 2;
    layout.dims[0].push(Axis::Dp);
  }
  if (mesh.size(Axis::Cp) > 1 && isTokenInput(input)) {
    layout.rank = 2;
    layout.dims[1].push(Axis::Cp);
    layout.dims[1].zigzag = static_cast<SequenceOrder>(plan.sequence_order()) ==
                            SequenceOrder::Zigzag;
  }
  return layout;
}

std::vector<Axis> pieceAxes(const plan::Plan &plan,
                            const plan::Buffer &buffer) {
  std::vector<Axis> axes;
  if (buffer.per_piece() != 0) {
    for (const Axis axis : layoutOf(plan, buffer).dims[0].list()) {
      if (buffer.axes() & bit(axis)) {
        axes.push_back(axis);
      }
    }
  }
  return axes;
}

BufferType wholeType(const plan::Plan &plan, const plan::Buffer &buffer) {
  BufferType type = bufferType(buffer);
  if (buffer.per_piece() != 0) {
    // A contiguous vector (PlanCheck).
    type.dims[0] *= meshOf(plan).size(pieceAxes(plan, buffer));
    type.rowStride = type.rowSize();
  }
  return type;
}

GroupPlace placeIn(const plan::Group &group, const Mesh &mesh, int64_t rank) {
  GroupPlace result{0, 1};
  for (int i = 0; i < group.count(); ++i) {
    const std::vector<int64_t> line = lineOf(axisAt(group, i), mesh, rank);
    const auto size = static_cast<int64_t>(line.size());
    result.place = result.place * size +
                   (std::find(line.begin(), line.end(), rank) - line.begin());
    result.size *= size;
  }
  return result;
}

std::vector<int64_t> membersOf(const plan::Group &group, const Mesh &mesh,
                               int64_t rank) {
  std::vector<int64_t> members = {rank};
  for (int i = 0; i < group.count(); ++i) {
    std::vector<int64_t> finer;
    for (const int64_t member : members) {
      const std::vector<int64_t> line = lineOf(axisAt(group, i), mesh, member);
      finer.insert(finer.end(), line.begin(), line.end());
    }
    members = std::move(finer);
  }
  return members;
}

} // namespace mega
