#include "runtime/plan/PlanLayouts.h"

namespace mega {
namespace {

Axis axisAt(const plan::Group &group, int index) {
  return static_cast<Axis>(group.axes()->Get(static_cast<uint32_t>(index)));
}

} // namespace

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

BufferType wholeType(const plan::Plan &plan, const plan::Buffer &buffer) {
  BufferType type = bufferType(buffer);
  if (buffer.per_coordinate() != 0) {
    // A contiguous vector (PlanCheck).
    type.dims[0] *= meshOf(plan).size(static_cast<Axis>(buffer.axis()));
    type.rowStride = type.rowSize();
  }
  return type;
}

GroupPlace placeIn(const plan::Group &group, const Mesh &mesh, int64_t rank) {
  GroupPlace result{0, 1};
  for (int i = 0; i < group.count(); ++i) {
    const Axis axis = axisAt(group, i);
    result.place = result.place * mesh.size(axis) + mesh.coordinate(rank, axis);
    result.size *= mesh.size(axis);
  }
  return result;
}

std::vector<int64_t> membersOf(const plan::Group &group, const Mesh &mesh,
                               int64_t rank) {
  std::vector<int64_t> members = {rank};
  for (int i = 0; i < group.count(); ++i) {
    std::vector<int64_t> finer;
    for (const int64_t member : members) {
      const std::vector<int64_t> line = mesh.group(member, axisAt(group, i));
      finer.insert(finer.end(), line.begin(), line.end());
    }
    members = std::move(finer);
  }
  return members;
}

} // namespace mega
