#include "runtime/plan/Layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace mega {
namespace {
constexpr std::string_view kAxisNames[] = {"tp", "tp:1", "tp:0", "cp",
                                           "dp", "pp",   "ep"};
constexpr std::string_view kStateNames[] = {"invariant", "replicated", "shard",
                                            "partial"};
constexpr std::string_view kReductionNames[] = {"sum", "max", "min", "or"};
constexpr std::string_view kConversionNames[] = {
    "none",       "replicate",  "assume_invariant",
    "slice",      "to_partial", "all_gather",
    "all_to_all", "all_reduce", "reduce_scatter"};

std::string axisSet(uint8_t mask) {
  std::string text;
  for (int i = 0; i < kAxisCount; ++i) {
    if (mask & (1u << i)) {
      text += text.empty() ? "" : ", ";
      text += kAxisNames[i];
    }
  }
  return text;
}

/// Distance between the numbers of two ranks that are neighbours on `axis`.
int64_t rankStride(const Mesh &mesh, Axis axis) {
  assert(axis != Axis::Ep && "ep has no coordinate of its own");
  int64_t stride = 1;
  for (int faster = 0; faster < static_cast<int>(axis); ++faster) {
    stride *= mesh.sizes[faster];
  }
  return stride;
}
} // namespace

std::string_view name(Axis axis) { return kAxisNames[static_cast<int>(axis)]; }
std::string_view name(State state) {
  return kStateNames[static_cast<int>(state)];
}
std::string_view name(Reduction reduction) {
  return kReductionNames[static_cast<int>(reduction)];
}
std::string_view name(Conversion conversion) {
  return kConversionNames[static_cast<int>(conversion)];
}

std::optional<Axis> findAxis(std::string_view text) {
  for (int i = 0; i < kAxisCount; ++i) {
    if (kAxisNames[i] == text) {
      return static_cast<Axis>(i);
    }
  }
  return std::nullopt;
}

int64_t Mesh::ranks() const {
  // Expert parallelism regroups the ranks of the other axes.
  return tp() * size(Axis::Cp) * size(Axis::Dp) * size(Axis::Pp);
}

int64_t Mesh::coordinate(int64_t rank, Axis axis) const {
  assert(rank >= 0 && rank < ranks());
  return rank / rankStride(*this, axis) % size(axis);
}

int64_t Mesh::size(std::span<const Axis> axes) const {
  int64_t product = 1;
  for (const Axis axis : axes) {
    product *= size(axis);
  }
  return product;
}

int64_t Mesh::place(int64_t rank, std::span<const Axis> axes) const {
  int64_t number = 0;
  for (const Axis axis : axes) {
    number = number * size(axis) + coordinate(rank, axis);
  }
  return number;
}

std::vector<int64_t> Mesh::group(int64_t rank, Axis axis) const {
  const int64_t stride = rankStride(*this, axis);
  const int64_t first = rank - coordinate(rank, axis) * stride;
  std::vector<int64_t> members;
  members.reserve(static_cast<size_t>(size(axis)));
  for (int64_t i = 0; i < size(axis); ++i) {
    members.push_back(first + i * stride);
  }
  return members;
}

void Layout::Dimension::remove(Axis axis) {
  Dimension left;
  for (int i = 0; i < count; ++i) {
    if (axes[i] != axis) {
      left.push(axes[i]);
    }
  }
  left.zigzag = zigzag && axis != Axis::Cp;
  left.padded = left.count == 0 ? 0 : padded;
  *this = left;
}

State Layout::state(Axis axis) const {
  if (replicated & bit(axis)) {
    return State::Replicated;
  }
  if (partial & bit(axis)) {
    return State::Partial;
  }
  return shardedDim(axis) >= 0 ? State::Shard : State::Invariant;
}

int Layout::shardedDim(Axis axis) const {
  for (int d = 0; d < rank; ++d) {
    for (int i = 0; i < dims[d].count; ++i) {
      if (dims[d].axes[i] == axis) {
        return d;
      }
    }
  }
  return -1;
}

StatusOr<Layout> Layout::dual() const {
  if (partial != 0 && reduction != Reduction::Sum) {
    return badInput("a value partial by {} has no gradient", name(reduction));
  }
  Layout result = *this;
  std::swap(result.replicated, result.partial);
  return result;
}

Status Layout::verify(int tensorRank) const {
  uint8_t seen = 0;
  bool stored = false;
  for (int d = 0; d < rank; ++d) {
    for (int i = 0; i < dims[d].count; ++i) {
      const Axis axis = dims[d].axes[i];
      if (axis == Axis::Pp) {
        return badInput("pp is placement, not part of a layout");
      }
      if (seen & bit(axis)) {
        return badInput("axis {} shards twice", name(axis));
      }
      seen |= bit(axis);
      stored = true;
    }
    if (dims[d].padded != 0 && dims[d].count == 0) {
      return badInput("dimension {} is padded but not sharded", d);
    }
    if (dims[d].zigzag && (dims[d].count == 0 || dims[d].axes[0] != Axis::Cp)) {
      return badInput("dimension {} is zigzag, but cp is not its major axis",
                      d);
    }
    if (dims[d].zigzag && dims[d].padded != 0) {
      return badInput("dimension {} is zigzag and padded: its chunks would not "
                      "be equal",
                      d);
    }
  }
  const uint8_t twice =
      (seen & replicated) | (seen & partial) | (replicated & partial);
  if (twice != 0) {
    return badInput("axis {} occurs twice", axisSet(twice));
  }
  if ((replicated | partial) & bit(Axis::Pp)) {
    return badInput("pp is placement, not part of a layout");
  }
  if (rank != 0 && !stored) {
    return badInput("no dimension is sharded, so the dimension list must be "
                    "omitted");
  }
  if (rank != 0 && rank != tensorRank) {
    return badInput("the layout has {} dimensions but the tensor {}", rank,
                    tensorRank);
  }
  if (partial == 0 && reduction != Reduction::Sum) {
    return badInput("a reduction kind without a partial axis");
  }
  return Status::ok();
}

Layout Layout::select(std::span<const int> picked) const {
  Layout result = *this;
  result.dims = {};
  result.rank = 0;
  for (size_t i = 0; rank != 0 && i < picked.size(); ++i) {
    result.dims[i] = dims[static_cast<size_t>(picked[i])];
    if (result.dims[i].count != 0) {
      result.rank = static_cast<uint8_t>(picked.size());
    }
  }
  return result;
}

int64_t Layout::shards(int dim, const Mesh &mesh) const {
  return dim < rank ? mesh.size(dims[dim].list()) : 1;
}

int64_t Layout::shard(int dim, const Mesh &mesh, int64_t rankNumber) const {
  return dim < rank ? mesh.place(rankNumber, dims[dim].list()) : 0;
}

int64_t Layout::localExtent(int dim, int64_t extent, const Mesh &mesh) const {
  const int64_t padded =
      dim < rank && dims[dim].padded != 0 ? dims[dim].padded : extent;
  return padded / shards(dim, mesh);
}

Status Layout::verify(const Mesh &mesh, std::span<const int64_t> shape) const {
  MEGA_RETURN_IF_ERROR(verify(static_cast<int>(shape.size())));
  for (int i = 0; i < kAxisCount; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (state(axis) != State::Invariant && mesh.size(axis) == 1) {
      return badInput("{} has one rank, so no tensor is {} over it", name(axis),
                      name(state(axis)));
    }
  }
  for (int d = 0; d < rank; ++d) {
    const int64_t pieces = shards(d, mesh);
    const int64_t extent = dims[d].padded != 0 ? dims[d].padded : shape[d];
    if (extent < shape[d]) {
      return badInput("dimension {} is padded to {} but has extent {}", d,
                      extent, shape[d]);
    }
    if (extent % pieces != 0) {
      return badInput("dimension {} of extent {} does not divide into {} "
                      "pieces (pad it to {})",
                      d, extent, pieces, (extent / pieces + 1) * pieces);
    }
    if (dims[d].zigzag && extent % (2 * mesh.size(Axis::Cp)) != 0) {
      return badInput("dimension {} of extent {} does not divide into the {} "
                      "chunks of a zigzag over cp = {}",
                      d, extent, 2 * mesh.size(Axis::Cp), mesh.size(Axis::Cp));
    }
  }
  return Status::ok();
}

std::string Layout::str() const {
  std::string text;
  if (rank != 0) {
    text += "[";
    for (int d = 0; d < rank; ++d) {
      text += d == 0 ? "{" : ", {";
      for (int i = 0; i < dims[d].count; ++i) {
        text += i == 0 ? "" : ", ";
        text += name(dims[d].axes[i]);
        text += i == 0 && dims[d].zigzag ? " zigzag" : "";
      }
      if (dims[d].padded != 0) {
        text += fmt::format(", pad {}", dims[d].padded);
      }
      text += "}";
    }
    text += "]";
  }
  const auto append = [&text](const std::string &part) {
    text += text.empty() ? "" : ", ";
    text += part;
  };
  if (replicated != 0) {
    append(fmt::format("replicated = {{{}}}", axisSet(replicated)));
  }
  if (partial != 0) {
    append(fmt::format("partial = {{{}{}{}}}", axisSet(partial),
                       reduction == Reduction::Sum ? "" : " ",
                       reduction == Reduction::Sum ? "" : name(reduction)));
  }
  return text;
}

namespace {

/// Axes of `dim` from position `first` on.
std::vector<Axis> suffix(const Layout &layout, int dim, int first) {
  std::vector<Axis> axes;
  for (int i = first; dim < layout.rank && i < layout.dims[dim].count; ++i) {
    axes.push_back(layout.dims[dim].axes[i]);
  }
  return axes;
}

/// What the dimensions of two layouts say about a change.
struct DimensionChanges {
  int from = -1;
  int to = -1;
  std::vector<Axis> removed;
  std::vector<Axis> added;
};

StatusOr<DimensionChanges> compareDimensions(const Layout &from,
                                             const Layout &to) {
  DimensionChanges changes;
  for (int d = 0; d < std::max(from.rank, to.rank); ++d) {
    const std::vector<Axis> before = suffix(from, d, 0);
    const std::vector<Axis> after = suffix(to, d, 0);
    const auto common =
        std::mismatch(before.begin(), before.end(), after.begin(), after.end());
    const auto kept = static_cast<int>(common.first - before.begin());
    std::vector<Axis> removed = suffix(from, d, kept);
    std::vector<Axis> added = suffix(to, d, kept);
    for (Axis axis : removed) {
      if (to.shardedDim(axis) == d) {
        return badInput("dimension {} keeps axis {} in another place: only the "
                        "minor-most axes of a dimension come and go",
                        d, name(axis));
      }
    }
    const bool keepsCp = kept > 0 && before[0] == Axis::Cp;
    if (keepsCp && from.dims[d].zigzag != to.dims[d].zigzag) {
      return badInput("the order of cp in dimension {} changes", d);
    }
    const int64_t padBefore = before.empty() ? 0 : from.dims[d].padded;
    const int64_t padAfter = after.empty() ? 0 : to.dims[d].padded;
    if (!before.empty() && !after.empty() && padBefore != padAfter) {
      return badInput("the padding of dimension {} changes from {} to {}", d,
                      padBefore, padAfter);
    }
    if (!removed.empty()) {
      if (changes.from >= 0) {
        return badInput("dimensions {} and {} lose axes at once", changes.from,
                        d);
      }
      changes.from = d;
      changes.removed = std::move(removed);
    }
    if (!added.empty()) {
      if (changes.to >= 0) {
        return badInput("dimensions {} and {} gain axes at once", changes.to,
                        d);
      }
      changes.to = d;
      changes.added = std::move(added);
    }
  }
  return changes;
}

} // namespace

StatusOr<LayoutChange> changeBetween(const Layout &from, const Layout &to) {
  LayoutChange change;
  MEGA_ASSIGN_OR_RETURN(DimensionChanges dimensions,
                        compareDimensions(from, to));
  if (from.partial != 0 && to.partial != 0 && from.reduction != to.reduction) {
    return badInput("partial changes from {} to {}", name(from.reduction),
                    name(to.reduction));
  }
  std::optional<Axis> first;
  for (int i = 0; i < kAxisCount; ++i) {
    const auto axis = static_cast<Axis>(i);
    const State before = from.state(axis);
    const State after = to.state(axis);
    if (before == after && from.shardedDim(axis) == to.shardedDim(axis)) {
      continue;
    }
    const std::optional<Conversion> step = conversion(before, after);
    if (!step) {
      return badInput("no conversion takes {} to {}", name(before),
                      name(after));
    }
    if (first && (from.state(*first) != before || to.state(*first) != after)) {
      return badInput("{} changes from {} to {} and {} from {} to {}: one "
                      "conversion makes one kind of change",
                      name(*first), name(from.state(*first)),
                      name(to.state(*first)), name(axis), name(before),
                      name(after));
    }
    first = first ? first : axis;
    change.conversion = *step;
    change.axes.push_back(axis);
  }
  change.fromDim = dimensions.from;
  change.toDim = dimensions.to;
  const auto isZigzag = [](const Layout &layout, int dim,
                           const std::vector<Axis> &axes) {
    return !axes.empty() && axes[0] == Axis::Cp && layout.dims[dim].zigzag;
  };
  change.fromZigzag = isZigzag(from, change.fromDim, dimensions.removed);
  change.toZigzag = isZigzag(to, change.toDim, dimensions.added);
  if ((change.fromZigzag || change.toZigzag) && change.axes.size() > 1) {
    return badInput("a zigzag over cp comes and goes alone, not together with "
                    "other axes");
  }
  // The order of a dimension says more than that of the mesh.
  if (!dimensions.removed.empty()) {
    change.axes = dimensions.removed;
    if (!dimensions.added.empty() && dimensions.added != dimensions.removed) {
      return badInput("dimension {} gains its new axes in another order than "
                      "dimension {} loses them",
                      dimensions.to, dimensions.from);
    }
  } else if (!dimensions.added.empty()) {
    change.axes = dimensions.added;
  }
  return change;
}

std::optional<Conversion> conversion(State from, State to) {
  using enum Conversion;
  // Rows: from; columns: to, in the order of State (I, R, S, P).
  constexpr std::optional<Conversion> kTable[4][4] = {
      {None, Replicate, Slice, ToPartial},
      {AssumeInvariant, None, Slice, ToPartial},
      {AllGather, AllGather, AllToAll, ToPartial},
      {AllReduce, AllReduce, ReduceScatter, std::nullopt},
  };
  return kTable[static_cast<int>(from)][static_cast<int>(to)];
}

} // namespace mega
