#include "runtime/plan/Layout.h"

#include <fmt/format.h>

#include <cassert>

namespace mega {
namespace {
constexpr std::string_view kAxisNames[] = {"tp", "cp", "dp", "pp", "ep"};
constexpr std::string_view kStateNames[] = {"invariant", "replicated", "shard",
                                            "partial"};
constexpr std::string_view kReductionNames[] = {"sum", "max", "min", "or"};
constexpr std::string_view kConversionNames[] = {
    "none",       "replicate",  "assume_invariant",
    "slice",      "to_partial", "all_gather",
    "all_to_all", "all_reduce", "reduce_scatter"};

uint8_t bit(Axis axis) {
  return static_cast<uint8_t>(1u << static_cast<int>(axis));
}

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
  return size(Axis::Tp) * size(Axis::Cp) * size(Axis::Dp) * size(Axis::Pp);
}

int64_t Mesh::coordinate(int64_t rank, Axis axis) const {
  assert(rank >= 0 && rank < ranks());
  return rank / rankStride(*this, axis) % size(axis);
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

std::string Layout::str() const {
  std::string text;
  if (rank != 0) {
    text += "[";
    for (int d = 0; d < rank; ++d) {
      text += d == 0 ? "{" : ", {";
      for (int i = 0; i < dims[d].count; ++i) {
        text += i == 0 ? "" : ", ";
        text += name(dims[d].axes[i]);
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
