//===- PlanLayouts.h - A plan's layouts, mesh and groups --------*- C++ -*-===//
//
// What the structs of plan.fbs mean in terms of Layout.h. PlanCheck has looked
// at them: axes are known and in the mesh, indices in range.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_PLANLAYOUTS_H
#define MEGA_RUNTIME_PLAN_PLANLAYOUTS_H

#include "runtime/plan/Layout.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace mega {

/// Sizes of the plan's axes; 1 where an axis is not named.
Mesh meshOf(const plan::Plan &plan);

Layout layoutOf(const plan::Layout &layout);
/// The layout a buffer names; invariant in a plan without layouts.
Layout layoutOf(const plan::Plan &plan, const plan::Buffer &buffer);

/// What an input has to be: cut over dp by samples and, if it is tokens or
/// labels, over cp in the plan's order; the places of tokens are whole.
Layout inputLayout(const plan::Plan &plan, std::string_view input);
/// The axes whose ranks hold the pieces of a buffer that is one of several that
/// follow each other (Buffer.per_piece), major to minor; none if it is not.
std::vector<Axis> pieceAxes(const plan::Plan &plan, const plan::Buffer &buffer);
/// The type of all pieces of a buffer that holds one, else its own.
BufferType wholeType(const plan::Plan &plan, const plan::Buffer &buffer);

/// The axis of groups that has the first and the last stage, which share a
/// tied parameter; no axis of the mesh.
inline constexpr uint8_t kTieAxis = static_cast<uint8_t>(plan::AxisName::tie);
/// `tp`, ... of an axis of a group.
std::string_view groupAxisName(uint8_t axis);
/// Whether the members of a group are stages.
bool isBetweenStages(const plan::Group &group);

/// Where a rank is in a group: its coordinates on the group's axes as digits,
/// the first axis being the major one. Alone, if it is in none of the group's
/// stages.
struct GroupPlace {
  /// 0 .. size - 1.
  int64_t place;
  /// Members of the group.
  int64_t size;
};
GroupPlace placeIn(const plan::Group &group, const Mesh &mesh, int64_t rank);
/// Numbers of the ranks that differ from `rank` on the group's axes only,
/// itself among them, in order of place.
std::vector<int64_t> membersOf(const plan::Group &group, const Mesh &mesh,
                               int64_t rank);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_PLANLAYOUTS_H
