#include "runtime/train/Seats.h"

#include "runtime/plan/PlanLayouts.h"

#include <algorithm>

namespace mega {
namespace {

std::string nameOf(const plan::Group &group, int64_t smallest) {
  std::string axes;
  for (uint32_t i = 0; i < group.count(); ++i) {
    axes += axes.empty() ? "" : "+";
    axes += groupAxisName(group.axes()->Get(static_cast<uint16_t>(i)));
  }
  return fmt::format("{} of rank {}", axes, smallest);
}

} // namespace

std::vector<PlannedGroup> plannedGroups(const plan::Plan &plan) {
  const Mesh mesh = meshOf(plan);
  std::vector<PlannedGroup> all;
  const auto groups = elements(plan.groups());
  for (uint32_t number = 0; number < groups.size(); ++number) {
    const plan::Group &group = groups[number];
    for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
      const std::vector<int64_t> members = membersOf(group, mesh, rank);
      if (members.size() > 1 &&
          *std::min_element(members.begin(), members.end()) == rank) {
        all.push_back(
            {number, {nameOf(group, rank), {members.begin(), members.end()}}});
      }
    }
  }
  return all;
}

StatusOr<std::vector<RankSeat>> takeAllSeats(const plan::Plan &plan,
                                             InProcessWorld &world) {
  std::vector<RankSeat> seats(static_cast<size_t>(meshOf(plan).ranks()));
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    seats[rank].rank = static_cast<int64_t>(rank);
    seats[rank].groups.resize(length(plan.groups()));
  }
  for (const auto &[number, group] : plannedGroups(plan)) {
    MEGA_ASSIGN_OR_RETURN(auto ends,
                          world.createGroup(group.name, group.ranks));
    for (size_t member = 0; member < ends.size(); ++member) {
      seats[static_cast<size_t>(group.ranks[member])].groups[number] =
          std::move(ends[member]);
    }
  }
  return seats;
}

StatusOr<RankSeat> takeSeat(const plan::Plan &plan, GlooWorld &world,
                            int64_t rank) {
  RankSeat seat{rank, {}};
  seat.groups.resize(length(plan.groups()));
  for (const auto &[number, group] : plannedGroups(plan)) {
    MEGA_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> end,
                          world.createGroup(group.name, group.ranks));
    if (end) {
      seat.groups[number] = std::move(end);
    }
  }
  return seat;
}

} // namespace mega
