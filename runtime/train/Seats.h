//===- Seats.h - Communicators for a plan's groups --------------*- C++ -*-===//
//
// Every group of a plan stands for as many communicators as there are sets of
// members: with tp 2 and dp 2, {dp} means ranks 0 and 2, and ranks 1 and 3. All
// of them are created at once, eagerly, in one order on all ranks: by number of
// the group, then by smallest member. Groups of one have none.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_TRAIN_SEATS_H
#define MEGA_RUNTIME_TRAIN_SEATS_H

#include "runtime/comm/GlooWorld.h"
#include "runtime/comm/InProcessWorld.h"
#include "runtime/plan/Plan.h"
#include "runtime/train/LocalRanks.h"

#include <vector>

namespace mega {

/// A communicator to create: `dp of rank 1` with ranks 1 and 3.
struct PlannedGroup {
  uint32_t number = 0;
  Group group;
};
/// Those of a plan with more than one member, in the order of their creation.
std::vector<PlannedGroup> plannedGroups(const plan::Plan &plan);

/// All ranks of a plan, as threads of this process.
StatusOr<std::vector<RankSeat>> takeAllSeats(const plan::Plan &plan,
                                             InProcessWorld &world);
/// One rank of a plan. Waits for the members of its groups.
StatusOr<RankSeat> takeSeat(const plan::Plan &plan, GlooWorld &world,
                            int64_t rank);

} // namespace mega

#endif // MEGA_RUNTIME_TRAIN_SEATS_H
