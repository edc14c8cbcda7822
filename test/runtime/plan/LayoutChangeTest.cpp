//===- LayoutChangeTest.cpp - Pieces of tensors, changes of layouts -------===//
#include "test/runtime/plan/CutLayout.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

using namespace mega;
using mega::test::cut;
using testing::HasSubstr;

namespace {

TEST(Pieces, AreNumberedMajorToMinor) {
  const Mesh mesh{{2, 1, 1, 3, 1, 1, 1}};
  const Layout layout = cut(2, 1, {Axis::Cp, Axis::Tp});
  EXPECT_EQ(layout.shards(1, mesh), 6);
  EXPECT_EQ(layout.shards(0, mesh), 1);
  EXPECT_EQ(layout.localExtent(1, 12, mesh), 2);
  EXPECT_EQ(layout.localExtent(0, 12, mesh), 12);
  // Rank tp + 2 cp holds piece 2 cp + tp; in the other order 3 tp + cp.
  const Layout other = cut(2, 1, {Axis::Tp, Axis::Cp});
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const int64_t tp = rank % 2, cp = rank / 2;
    EXPECT_EQ(layout.shard(1, mesh, rank), 2 * cp + tp);
    EXPECT_EQ(other.shard(1, mesh, rank), 3 * tp + cp);
    EXPECT_EQ(other.shard(0, mesh, rank), 0);
  }
}

TEST(Pieces, ArePaddedToEqualSizes) {
  const Mesh mesh{{4, 1, 1, 1, 1, 1, 1}};
  const int64_t shape[] = {97, 8};
  EXPECT_TRUE(cut(2, 0, {Axis::Tp}, 100).verify(mesh, shape).isOk());
  EXPECT_EQ(cut(2, 0, {Axis::Tp}, 100).localExtent(0, 97, mesh), 25);
  EXPECT_THAT(cut(2, 0, {Axis::Tp}).verify(mesh, shape).message(),
              HasSubstr("extent 97 does not divide into 4 pieces (pad it to "
                        "100)"));
  EXPECT_THAT(cut(2, 0, {Axis::Tp}, 96).verify(mesh, shape).message(),
              HasSubstr("padded to 96 but has extent 97"));
  EXPECT_THAT(cut(2, 0, {Axis::Dp}).verify(mesh, shape).message(),
              HasSubstr("dp has one rank"));
}

TEST(Select, PicksDimensionsWithTheirAxes) {
  Layout layout = cut(4, 2, {Axis::Tp});
  layout.dims[0].push(Axis::Dp);
  layout.replicated = 1u << static_cast<int>(Axis::Cp);
  const int lse[] = {0, 2, 1};
  EXPECT_EQ(layout.select(lse).str(), "[{dp}, {tp}, {}], replicated = {cp}");
  const int last[] = {3};
  EXPECT_EQ(layout.select(last).str(), "replicated = {cp}");
}

std::string changeText(const Layout &from, const Layout &to) {
  auto change = changeBetween(from, to);
  if (!change.isOk()) {
    return change.status().message();
  }
  std::string text(name(change->conversion));
  for (Axis axis : change->axes) {
    text += ' ';
    text += name(axis);
  }
  return text + fmt::format(" {} {}", change->fromDim, change->toDim);
}

TEST(Change, OfEveryPairOfStatesIsTheTable) {
  const auto layoutOf = [](State state) {
    Layout layout;
    if (state == State::Shard) {
      return cut(2, 0, {Axis::Tp});
    }
    layout.replicated = state == State::Replicated;
    layout.partial = state == State::Partial;
    return layout;
  };
  for (const State from :
       {State::Invariant, State::Replicated, State::Shard, State::Partial}) {
    for (const State to :
         {State::Invariant, State::Replicated, State::Shard, State::Partial}) {
      auto change = changeBetween(layoutOf(from), layoutOf(to));
      ASSERT_TRUE(change.isOk()) << change.status().message();
      EXPECT_EQ(change->conversion,
                from == to ? Conversion::None : conversion(from, to).value());
      EXPECT_EQ(change->axes.size(), from == to ? 0u : 1u);
    }
  }
}

TEST(Change, TakesTheMinorMostAxesInTheirOrder) {
  Layout gathered = cut(2, 1, {Axis::Dp});
  EXPECT_EQ(changeText(cut(2, 1, {Axis::Dp, Axis::Cp, Axis::Tp}), gathered),
            "all_gather cp tp 1 -1");
  EXPECT_EQ(changeText(gathered, cut(2, 1, {Axis::Dp, Axis::Tp, Axis::Cp})),
            "slice tp cp -1 1");
  EXPECT_EQ(changeText(cut(2, 0, {Axis::Cp}), cut(2, 1, {Axis::Cp})),
            "all_to_all cp 0 1");
  EXPECT_THAT(changeText(cut(2, 1, {Axis::Cp, Axis::Tp}),
                         cut(2, 1, {Axis::Tp, Axis::Cp})),
              HasSubstr("only the minor-most axes"));
  EXPECT_THAT(
      changeText(cut(2, 1, {Axis::Cp, Axis::Tp}), cut(2, 1, {Axis::Tp})),
      HasSubstr("only the minor-most axes"));
  EXPECT_THAT(changeText(cut(2, 0, {Axis::Cp, Axis::Tp}),
                         cut(2, 1, {Axis::Tp, Axis::Cp})),
              HasSubstr("another order"));
}

Layout zigzag(int rank, int dim, std::initializer_list<Axis> axes) {
  Layout layout = cut(rank, dim, axes);
  layout.dims[static_cast<size_t>(dim)].zigzag = true;
  return layout;
}

TEST(Zigzag, IsOfCpAsTheMajorAxis) {
  EXPECT_EQ(zigzag(3, 1, {Axis::Cp, Axis::Tp}).str(),
            "[{}, {cp zigzag, tp}, {}]");
  EXPECT_TRUE(zigzag(3, 1, {Axis::Cp, Axis::Tp}).verify(3).isOk());
  EXPECT_THAT(zigzag(3, 1, {Axis::Tp, Axis::Cp}).verify(3).message(),
              HasSubstr("zigzag, but cp is not its major axis"));
  EXPECT_THAT(zigzag(3, 1, {}).verify(3).message(),
              HasSubstr("zigzag, but cp is not its major axis"));
  Layout padded = zigzag(2, 0, {Axis::Cp});
  padded.dims[0].padded = 100;
  EXPECT_THAT(padded.verify(2).message(), HasSubstr("zigzag and padded"));
}

TEST(Zigzag, HasTwoChunksForEachRank) {
  // tp 2, cp 3
  const Mesh mesh{{2, 1, 1, 3, 1, 1, 1}};
  const Layout layout = zigzag(2, 1, {Axis::Cp, Axis::Tp});
  const int64_t legal[] = {1, 12}, odd[] = {1, 9}, pieces[] = {1, 15};
  EXPECT_TRUE(layout.verify(mesh, legal).isOk());
  EXPECT_EQ(layout.localExtent(1, 12, mesh), 2);
  EXPECT_THAT(zigzag(2, 1, {Axis::Cp}).verify(mesh, odd).message(),
              HasSubstr("9 does not divide into the 6 chunks of a zigzag over "
                        "cp = 3"));
  EXPECT_THAT(layout.verify(mesh, pieces).message(),
              HasSubstr("15 does not divide into 6 pieces"));
}

TEST(Zigzag, IsKeptByItsDualAndBySelection) {
  const Layout layout = zigzag(4, 1, {Axis::Cp});
  EXPECT_EQ(layout.dual()->str(), "[{}, {cp zigzag}, {}, {}]");
  const int lse[] = {0, 2, 1};
  EXPECT_EQ(layout.select(lse).str(), "[{}, {}, {cp zigzag}]");
}

TEST(Zigzag, ComesAndGoesAlone) {
  const Layout cp = zigzag(4, 1, {Axis::Cp});
  const auto change = changeBetween(cp, cut(4, 2, {Axis::Cp}));
  ASSERT_TRUE(change.isOk());
  EXPECT_EQ(change->conversion, Conversion::AllToAll);
  EXPECT_TRUE(change->fromZigzag);
  EXPECT_FALSE(change->toZigzag);
  EXPECT_TRUE(changeBetween(Layout(), cp)->toZigzag);
  EXPECT_TRUE(changeBetween(cp, Layout())->fromZigzag);
  // Of what stays cut over cp, tp may come and go.
  const auto minor = changeBetween(zigzag(4, 1, {Axis::Cp, Axis::Tp}), cp);
  ASSERT_TRUE(minor.isOk());
  EXPECT_FALSE(minor->fromZigzag);
  EXPECT_EQ(minor->axes, std::vector{Axis::Tp});
  EXPECT_THAT(changeText(zigzag(4, 1, {Axis::Cp, Axis::Tp}), Layout()),
              HasSubstr("a zigzag over cp comes and goes alone"));
  EXPECT_THAT(changeText(cp, cut(4, 1, {Axis::Cp})),
              HasSubstr("the order of cp in dimension 1 changes"));
}

TEST(Change, RefusesTwoKindsAtOnce) {
  Layout from, to;
  from.partial = 1u << static_cast<int>(Axis::Tp);
  from.replicated = 1u << static_cast<int>(Axis::Dp);
  EXPECT_THAT(changeText(from, to),
              HasSubstr("tp changes from partial to invariant and dp from "
                        "replicated to invariant"));
}

} // namespace
