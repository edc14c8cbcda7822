//===- PlanLayoutsTest.cpp - A plan's layouts, mesh and groups ------------===//
#include "runtime/plan/PlanLayouts.h"

#include "test/runtime/plan/ToyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mega;
using testing::ElementsAre;

namespace {

plan::Group group(std::initializer_list<Axis> axes) {
  plan::Group result;
  for (const Axis axis : axes) {
    result.mutable_axes()->Mutate(result.count(), static_cast<uint8_t>(axis));
    result.mutate_count(static_cast<uint8_t>(result.count() + 1));
  }
  return result;
}

// tp 2, cp 1, dp 3: rank tp + 2 dp.
const Mesh kMesh{{2, 1, 1, 1, 3, 1, 1}};

TEST(PlanLayouts, TheMeshHasSizeOneWhereThePlanNamesNoAxis) {
  const std::unique_ptr<plan::PlanT> plan = toyPlan();
  EXPECT_EQ(meshOf(loadPlan(packPlan(*plan))->root()), Mesh());
  plan->mesh = {plan::Axis(static_cast<uint8_t>(Axis::Dp), 3),
                plan::Axis(static_cast<uint8_t>(Axis::Tp), 2)};
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(plan::CreatePlan(builder, plan.get()));
  EXPECT_EQ(meshOf(*plan::GetPlan(builder.GetBufferPointer())), kMesh);
}

TEST(PlanLayouts, EveryFieldOfALayoutArrives) {
  plan::Layout stored;
  stored.mutate_rank(2);
  plan::LayoutDimension &rows = *stored.mutable_dims()->GetMutablePointer(0);
  rows.mutable_axes()->Mutate(0, static_cast<uint8_t>(Axis::Cp));
  rows.mutable_axes()->Mutate(1, static_cast<uint8_t>(Axis::Tp));
  rows.mutate_count(2);
  rows.mutate_padded(260);
  stored.mutate_partial(1u << static_cast<int>(Axis::Dp));
  stored.mutate_reduction(static_cast<uint8_t>(Reduction::Max));
  EXPECT_EQ(layoutOf(stored).str(),
            "[{cp, tp, pad 260}, {}], partial = {dp max}");
  EXPECT_TRUE(layoutOf(stored).verify(2).isOk());
  plan::Layout replicated;
  replicated.mutate_replicated(1u << static_cast<int>(Axis::Tp));
  EXPECT_EQ(layoutOf(replicated).str(), "replicated = {tp}");
  EXPECT_TRUE(layoutOf(plan::Layout()).isInvariant());
}

TEST(PlanLayouts, PlacesAreDigitsMajorToMinor) {
  const plan::Group dpTp = group({Axis::Dp, Axis::Tp});
  const plan::Group tpDp = group({Axis::Tp, Axis::Dp});
  for (int64_t rank = 0; rank < kMesh.ranks(); ++rank) {
    const int64_t tp = rank % 2, dp = rank / 2;
    EXPECT_EQ(placeIn(dpTp, kMesh, rank).place, 2 * dp + tp);
    EXPECT_EQ(placeIn(tpDp, kMesh, rank).place, 3 * tp + dp);
    EXPECT_EQ(placeIn(group({Axis::Dp}), kMesh, rank).place, dp);
    EXPECT_EQ(placeIn(tpDp, kMesh, rank).size, 6);
    EXPECT_EQ(placeIn(group({Axis::Dp}), kMesh, rank).size, 3);
  }
}

TEST(PlanLayouts, MembersAreInOrderOfPlace) {
  EXPECT_THAT(membersOf(group({Axis::Tp}), kMesh, 3), ElementsAre(2, 3));
  EXPECT_THAT(membersOf(group({Axis::Dp}), kMesh, 3), ElementsAre(1, 3, 5));
  EXPECT_THAT(membersOf(group({Axis::Tp, Axis::Dp}), kMesh, 3),
              ElementsAre(0, 2, 4, 1, 3, 5));
  for (const plan::Group &any :
       {group({Axis::Tp}), group({Axis::Dp, Axis::Tp})}) {
    for (int64_t rank = 0; rank < kMesh.ranks(); ++rank) {
      const GroupPlace place = placeIn(any, kMesh, rank);
      const std::vector<int64_t> members = membersOf(any, kMesh, rank);
      ASSERT_EQ(members.size(), static_cast<size_t>(place.size));
      EXPECT_EQ(members[static_cast<size_t>(place.place)], rank);
    }
  }
}

} // namespace
