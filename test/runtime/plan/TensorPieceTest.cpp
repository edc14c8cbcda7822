#include "runtime/plan/TensorPiece.h"

#include "runtime/plan/InitialValues.h"
#include "test/runtime/plan/CutLayout.h"

#include <gmock/gmock.h>

using namespace mega;

namespace {

Mesh meshWith(int64_t tp, int64_t dp = 1) {
  Mesh mesh;
  mesh.sizes[static_cast<size_t>(Axis::Tp)] = tp;
  mesh.sizes[static_cast<size_t>(Axis::Dp)] = dp;
  return mesh;
}

/// The whole's flat index of every element of the piece; -1: padding.
std::vector<int64_t> indices(const TensorPiece &piece) {
  std::vector<int64_t> result;
  piece.forEachRun({0, piece.elements()},
                   [&](int64_t local, int64_t whole, int64_t count) {
                     EXPECT_EQ(local, std::ssize(result));
                     for (int64_t i = 0; i < count; ++i) {
                       result.push_back(whole < 0 ? -1 : whole + i);
                     }
                   });
  return result;
}

using testing::ElementsAre;

} // namespace

TEST(TensorPiece, IsTheWholeWithoutACut) {
  const int64_t shape[] = {2, 3};
  const TensorPiece piece(shape, Layout(), meshWith(2), 1);
  EXPECT_THAT(indices(piece), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(piece.wholeElements(), 6);
  int runs = 0;
  piece.forEachRun({0, 6}, [&](int64_t, int64_t, int64_t) { ++runs; });
  EXPECT_EQ(runs, 1);
}

TEST(TensorPiece, OfAScalarHasOneElement) {
  EXPECT_THAT(indices(TensorPiece({}, Layout(), meshWith(2), 1)),
              ElementsAre(0));
}

TEST(TensorPiece, CutsRows) {
  const int64_t shape[] = {4, 3};
  const Layout layout = test::cut(2, 0, {Axis::Tp});
  EXPECT_THAT(indices(TensorPiece(shape, layout, meshWith(2), 1)),
              ElementsAre(6, 7, 8, 9, 10, 11));
}

TEST(TensorPiece, CutsColumns) {
  const int64_t shape[] = {2, 6};
  const Layout layout = test::cut(2, 1, {Axis::Tp});
  EXPECT_THAT(indices(TensorPiece(shape, layout, meshWith(3), 1)),
              ElementsAre(2, 3, 8, 9));
}

TEST(TensorPiece, CutsAMiddleDimension) {
  const int64_t shape[] = {2, 4, 2};
  const Layout layout = test::cut(3, 1, {Axis::Tp});
  const TensorPiece piece(shape, layout, meshWith(2), 1);
  EXPECT_THAT(indices(piece), ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
  EXPECT_THAT(piece.localShape(), ElementsAre(2, 2, 2));
}

// Rank 3 of 2 x 2 has tp 1 and dp 1.
TEST(TensorPiece, CutsTwoDimensionsAndOneTwice) {
  const int64_t shape[] = {4, 4};
  Layout layout = test::cut(2, 0, {Axis::Dp});
  layout.dims[1].push(Axis::Tp);
  EXPECT_THAT(indices(TensorPiece(shape, layout, meshWith(2, 2), 3)),
              ElementsAre(10, 11, 14, 15));
  const int64_t vector[] = {8};
  const Layout twice = test::cut(1, 0, {Axis::Tp, Axis::Dp});
  // Rank 1: tp 1, dp 0.
  EXPECT_THAT(indices(TensorPiece(vector, twice, meshWith(2, 2), 1)),
              ElementsAre(4, 5));
}

TEST(TensorPiece, MarksPaddingAtTheEnd) {
  const int64_t shape[] = {5, 2};
  const Layout layout = test::cut(2, 0, {Axis::Tp}, 8);
  const Mesh mesh = meshWith(4);
  EXPECT_THAT(indices(TensorPiece(shape, layout, mesh, 2)),
              ElementsAre(8, 9, -1, -1));
  EXPECT_THAT(indices(TensorPiece(shape, layout, mesh, 3)),
              ElementsAre(-1, -1, -1, -1));
  const int64_t wide[] = {2, 3};
  EXPECT_THAT(indices(TensorPiece(wide, test::cut(2, 1, {Axis::Tp}, 4),
                                  meshWith(2), 1)),
              ElementsAre(2, -1, 5, -1));
}

// Whatever the range begins and ends in.
TEST(TensorPiece, VisitsAnyRange) {
  const int64_t shape[] = {2, 3, 5};
  Layout layout = test::cut(3, 1, {Axis::Tp}, 4);
  const TensorPiece piece(shape, layout, meshWith(2), 1);
  const std::vector<int64_t> all = indices(piece);
  for (int64_t begin = 0; begin <= piece.elements(); ++begin) {
    for (int64_t end = begin; end <= piece.elements(); ++end) {
      int64_t next = begin;
      piece.forEachRun({begin, end}, [&](int64_t local, int64_t whole,
                                         int64_t count) {
        ASSERT_EQ(local, next);
        for (int64_t i = 0; i < count; ++i, ++next) {
          ASSERT_EQ(all[static_cast<size_t>(next)], whole < 0 ? -1 : whole + i);
        }
      });
      ASSERT_EQ(next, end);
    }
  }
}

// The pieces of a padded vocabulary are those of the whole, whoever has them.
TEST(TensorPiece, InitialValuesDoNotDependOnTheMesh) {
  const int64_t shape[] = {257, 3};
  const auto value = InitialValue::normal(0.02);
  std::vector<float> whole(257 * 3);
  fillInitialValues(whole, value, 7, "wte.weight", 0);
  for (int64_t tp : {2, 4}) {
    const Layout layout = test::cut(2, 0, {Axis::Tp}, 260);
    std::vector<float> joined;
    for (int64_t rank = 0; rank < tp; ++rank) {
      const TensorPiece piece(shape, layout, meshWith(tp), rank);
      std::vector<float> own(static_cast<size_t>(piece.elements()));
      piece.forEachRun({0, piece.elements()}, [&](int64_t local, int64_t first,
                                                  int64_t count) {
        if (first >= 0) {
          fillInitialValues(std::span(own).subspan(static_cast<size_t>(local),
                                                   static_cast<size_t>(count)),
                            value, 7, "wte.weight", first);
        }
      });
      joined.insert(joined.end(), own.begin(), own.end());
    }
    EXPECT_EQ(joined.size(), 260u * 3);
    EXPECT_TRUE(std::equal(whole.begin(), whole.end(), joined.begin()));
    EXPECT_TRUE(std::all_of(joined.begin() + 257 * 3, joined.end(),
                            [](float x) { return x == 0; }));
  }
}
