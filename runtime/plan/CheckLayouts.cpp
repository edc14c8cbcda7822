//===- CheckLayouts.cpp - Layouts, groups, what depends on the rank -------===//
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanLayouts.h"
#include "runtime/plan/StageGroup.h"

#include <algorithm>
#include <set>
#include <string>

namespace mega {
namespace {

/// Indices of a byte.
constexpr uint32_t kMost = 256;

template <typename Bytes> Status checkReserved(const Bytes &bytes) {
  for (uint8_t byte : bytes) {
    MEGA_RETURN_IF_ERROR(checkRange("reserved byte", byte, 0, 0));
  }
  return Status::ok();
}

/// An axis on which ranks differ.
Status checkAxis(const Mesh &mesh, uint8_t axis) {
  MEGA_RETURN_IF_ERROR(checkRange("axis", axis, 0, kAxisCount - 1));
  const auto known = static_cast<Axis>(axis);
  if (known == Axis::Pp || known == Axis::Ep) {
    return badInput("{} is no axis of tensors", name(known));
  }
  return mesh.size(known) > 1
             ? Status::ok()
             : badInput("{} has one rank in the plan's mesh", name(known));
}

/// `count` axes, each once, and zeros behind them.
template <typename Axes>
Status checkAxes(const Mesh &mesh, const Axes &axes, uint8_t count) {
  MEGA_RETURN_IF_ERROR(checkRange("count of axes", count, 0, kAxisCount));
  bool seen[kAxisCount] = {};
  for (uint32_t i = 0; i < axes.size(); ++i) {
    const uint8_t axis = axes.Get(i);
    if (i >= count) {
      MEGA_RETURN_IF_ERROR(checkRange("unused axis", axis, 0, 0));
      continue;
    }
    MEGA_RETURN_IF_ERROR(checkAxis(mesh, axis));
    if (std::exchange(seen[axis], true)) {
      return badInput("axis {} occurs twice", name(static_cast<Axis>(axis)));
    }
  }
  return Status::ok();
}

Status checkLayout(const Mesh &mesh, const plan::Layout &layout) {
  MEGA_RETURN_IF_ERROR(checkRange("rank", layout.rank(), 0, Layout::kMaxRank));
  MEGA_RETURN_IF_ERROR(
      checkRange("zigzag", layout.zigzag(), 0, (1 << layout.rank()) - 1));
  MEGA_RETURN_IF_ERROR(checkReserved(*layout.reserved()));
  for (uint32_t d = 0; d < Layout::kMaxRank; ++d) {
    const plan::LayoutDimension &dimension = *layout.dims()->Get(d);
    const auto check = [&]() -> Status {
      MEGA_RETURN_IF_ERROR(
          checkRange("padded extent", dimension.padded(), 0, kMaxPlanBytes));
      if (d >= layout.rank() &&
          (dimension.count() != 0 || dimension.padded() != 0)) {
        return badInput("it is cut or padded, the layout has rank {}",
                        layout.rank());
      }
      return checkAxes(mesh, *dimension.axes(), dimension.count());
    };
    MEGA_RETURN_IF_ERROR_CONTEXT(check(), "dimension {}", d);
  }
  for (const auto &[what, mask] : {std::pair("replicated", layout.replicated()),
                                   std::pair("partial", layout.partial())}) {
    MEGA_RETURN_IF_ERROR(checkRange(what, mask, 0, (1 << kAxisCount) - 1));
    for (uint8_t axis = 0; axis < kAxisCount; ++axis) {
      if (mask & (1 << axis)) {
        MEGA_RETURN_IF_ERROR_CONTEXT(checkAxis(mesh, axis), "{}", what);
      }
    }
  }
  MEGA_RETURN_IF_ERROR(checkRange("reduction", layout.reduction(), 0,
                                  static_cast<int64_t>(Reduction::Or)));
  return layoutOf(layout).verify(layout.rank());
}

Status checkGroup(const Mesh &mesh, const plan::Group &group) {
  MEGA_RETURN_IF_ERROR(
      checkRange("count of axes", group.count(), 1, kAxisCount));
  if (isBetweenStages(group)) {
    MEGA_RETURN_IF_ERROR(
        checkRange("count of axes with stages", group.count(), 1, 1));
    for (uint16_t i = 1; i < group.axes()->size(); ++i) {
      MEGA_RETURN_IF_ERROR(
          checkRange("unused axis", group.axes()->Get(i), 0, 0));
    }
    return mesh.size(Axis::Pp) > 1
               ? Status::ok()
               : badInput("its members are stages, and the plan has one");
  }
  return checkAxes(mesh, *group.axes(), group.count());
}

/// Those of StageGroup.h first, and no others between stages.
Status checkStageGroups(const Mesh &mesh, std::span<const plan::Group> groups) {
  const int64_t expected = mesh.size(Axis::Pp) > 1 ? kStageGroups : 0;
  for (int64_t i = 0; i < std::max(std::ssize(groups), expected); ++i) {
    const uint8_t axis = i == static_cast<int64_t>(StageGroup::Tie)
                             ? kTieAxis
                             : static_cast<uint8_t>(Axis::Pp);
    const bool is = i < std::ssize(groups) &&
                    isBetweenStages(groups[static_cast<size_t>(i)]);
    if (is != (i < expected) ||
        (is && groups[static_cast<size_t>(i)].axes()->Get(0) != axis)) {
      return badInput("group {} is {}over stages, expected {}", i,
                      is ? "" : "not ",
                      i < expected ? groupAxisName(axis) : "another");
    }
  }
  return Status::ok();
}

} // namespace

Status checkLayouts(const plan::Plan &plan) {
  const Mesh mesh = meshOf(plan);
  const auto layouts = elements(plan.layouts());
  const auto groups = elements(plan.groups());
  for (const auto &[what, count] : {std::pair("layouts", layouts.size()),
                                    std::pair("groups", groups.size())}) {
    if (count > kMost) {
      return badInput("the plan has {} {}, at most {} are possible", count,
                      what, kMost);
    }
  }
  for (size_t i = 0; i < layouts.size(); ++i) {
    MEGA_RETURN_IF_ERROR_CONTEXT(checkLayout(mesh, layouts[i]), "layout {}", i);
  }
  if (!layouts.empty() && !layoutOf(layouts[0]).isInvariant()) {
    return badInput("layout 0 is [{}], expected invariant",
                    layoutOf(layouts[0]).str());
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    MEGA_RETURN_IF_ERROR_CONTEXT(checkGroup(mesh, groups[i]), "group {}", i);
  }
  MEGA_RETURN_IF_ERROR(checkStageGroups(mesh, groups));
  return Status::ok();
}

Status checkBufferLayout(const plan::Plan &plan, const plan::Buffer &buffer) {
  MEGA_RETURN_IF_ERROR(
      checkRange("layout", buffer.layout(), 0,
                 std::max<int64_t>(length(plan.layouts()), 1) - 1));
  const Layout layout = layoutOf(plan, buffer);
  MEGA_RETURN_IF_ERROR_CONTEXT(layout.verify(buffer.rank()), "layout {}",
                               buffer.layout());
  MEGA_RETURN_IF_ERROR(checkReserved(*buffer.reserved()));
  if (buffer.per_piece() == 0) {
    return checkRange("axes without per_piece", buffer.axes(), 0, 0);
  }
  const BufferType type = bufferType(buffer);
  if (type.rank != 1 || !type.isContiguous()) {
    return badInput("it is {}, expected a vector to be in pieces",
                    toString(type));
  }
  if (buffer.per_piece() != type.extentBytes()) {
    return badInput("per_piece is {}, a piece has {} bytes", buffer.per_piece(),
                    type.extentBytes());
  }
  // A suffix of the axes that cut the vector.
  uint8_t found = 0;
  const std::span<const Axis> cut = layout.dims[0].list();
  for (auto it = cut.rbegin();
       it != cut.rend() && (buffer.axes() & bit(*it)) != 0; ++it) {
    found |= bit(*it);
  }
  if (layout.rank != 1 || layout.dims[0].zigzag || found == 0 ||
      found != buffer.axes()) {
    return badInput("it is in pieces over the axes 0x{:x}, its layout is [{}]",
                    buffer.axes(), layout.str());
  }
  return Status::ok();
}

Status checkTerms(const plan::Plan &plan, const plan::Function &function) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const Mesh mesh = meshOf(plan);
  const auto integers = elements(function.integers());
  std::set<std::pair<uint32_t, uint8_t>> seen;
  const auto terms = elements(function.terms());
  for (size_t i = 0; i < terms.size(); ++i) {
    const plan::CoordinateTerm &term = terms[i];
    const auto check = [&]() -> Status {
      if (term.integer() >= integers.size()) {
        return badInput("integer {} of {}", term.integer(), integers.size());
      }
      MEGA_RETURN_IF_ERROR(checkReserved(*term.reserved()));
      MEGA_RETURN_IF_ERROR(checkAxis(mesh, term.axis()));
      MEGA_RETURN_IF_ERROR(
          checkRange("coefficient", term.coefficient(), 1, kMost));
      MEGA_RETURN_IF_ERROR(
          checkRange("the integer", integers[term.integer()], 0, kMost));
      return seen.emplace(term.integer(), term.axis()).second
                 ? Status::ok()
                 : badInput("integer {} has two terms of axis {}",
                            term.integer(),
                            name(static_cast<Axis>(term.axis())));
    };
    MEGA_RETURN_IF_ERROR_CONTEXT(check(), "term {}", i);
  }
  return Status::ok();
}

std::vector<int64_t> largestIntegers(const plan::Plan &plan,
                                     const plan::Function &function) {
  const Mesh mesh = meshOf(plan);
  const auto integers = elements(function.integers());
  std::vector<int64_t> largest(integers.begin(), integers.end());
  for (const plan::CoordinateTerm &term : elements(function.terms())) {
    // At most kAxisCount terms of 2^60.
    largest[term.integer()] +=
        term.coefficient() * (mesh.size(static_cast<Axis>(term.axis())) - 1);
  }
  return largest;
}

/// The number of ranks in the group of tensors that the launch names.
static StatusOr<int64_t> groupSize(const plan::Plan &plan,
                                   const LaunchSignature &signature) {
  const auto number = static_cast<uint64_t>(signature.integers[0]);
  const auto groups = elements(plan.groups());
  if (number >= groups.size()) {
    return badInput("group {} of {}", number, groups.size());
  }
  if (isBetweenStages(groups[number])) {
    return badInput("group {} has stages, and layouts do not", number);
  }
  return placeIn(groups[number], meshOf(plan), 0).size;
}

Status checkConversionGroup(const plan::Plan &plan, Kernel kernel,
                            const LaunchSignature &signature) {
  MEGA_ASSIGN_OR_RETURN(const int64_t size, groupSize(plan, signature));
  const int64_t dim = signature.integers[1];
  if (kernel == Kernel::AllReduce || dim < 0) {
    return Status::ok();
  }
  // Of all_to_all, which changes two dimensions alike, that of from_dim.
  const bool gathers = kernel == Kernel::AllGather ||
                       kernel == Kernel::ToPartial ||
                       kernel == Kernel::AllToAll;
  const BufferType &whole = signature.operands[gathers ? 1 : 0];
  const BufferType &piece = signature.operands[gathers ? 0 : 1];
  const auto d = static_cast<size_t>(dim);
  return whole.dims[d] == piece.dims[d] * size
             ? Status::ok()
             : badInput("the whole is {} and the piece {}, but the group has "
                        "{} ranks",
                        toString(whole), toString(piece), size);
}

Status checkRingGroup(const plan::Plan &plan, Kernel kernel,
                      const LaunchSignature &signature) {
  MEGA_ASSIGN_OR_RETURN(const int64_t size, groupSize(plan, signature));
  const size_t k = kernel == Kernel::RingAttention ? 1 : 2;
  const BufferType &piece = signature.operands[k];
  const BufferType &places = signature.operands[k + 4];
  return places.dims[1] == piece.dims[1] * size
             ? Status::ok()
             : badInput("the places are {} and a rank's key {}, but the group "
                        "has {} ranks",
                        toString(places), toString(piece), size);
}

Status checkStageGroup(const plan::Plan &plan, Kernel kernel,
                       const LaunchSignature &signature) {
  const bool sums = kernel == Kernel::SumStages;
  MEGA_RETURN_IF_ERROR(checkRange(
      "group", signature.integers[0],
      static_cast<int64_t>(sums ? StageGroup::Sums : StageGroup::Activations),
      static_cast<int64_t>(sums ? StageGroup::Tie : StageGroup::Gradients)));
  if (meshOf(plan).size(Axis::Pp) == 1) {
    return badInput("the plan has one stage");
  }
  if (sums) {
    return Status::ok();
  }
  return checkRange("shift", signature.integers[1], 1,
                    meshOf(plan).size(Axis::Pp) - 1);
}

} // namespace mega
