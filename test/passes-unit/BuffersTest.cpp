#include "passes/Buffers.h"

#include "test/runtime/Exhaustive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using namespace mega;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

namespace {

constexpr int64_t kRows = 6;
constexpr int64_t kBytes = 4;

/// Data of kRows x `width`, written by launch `def` and last read by `lastUse`.
int add(Buffers &buffers, int64_t def, int64_t lastUse, int64_t width = 10) {
  const int data = buffers.addData(kRows, width, kBytes);
  buffers.defineAt(data, def);
  buffers.useAt(data, lastUse);
  return data;
}

bool sameRoot(const Buffers &buffers, int a, int b) {
  return buffers.data(a).root == buffers.data(b).root;
}

} // namespace

TEST(Buffers, DataStartsInARootOfItsOwn) {
  Buffers buffers;
  const int a = add(buffers, 0, 1), b = add(buffers, 1, 2, 7);
  EXPECT_EQ(buffers.dataCount(), 2);
  EXPECT_EQ(buffers.rootCount(), 2);
  EXPECT_FALSE(sameRoot(buffers, a, b));
  EXPECT_EQ(buffers.rootOf(b).rowSize, 7);
  EXPECT_THAT(buffers.rootOf(a).members, UnorderedElementsAre(a));
  EXPECT_TRUE(buffers.isFree(a));
}

TEST(Buffers, LifetimesGrow) {
  Buffers buffers;
  const int a = buffers.addData(kRows, 10, kBytes);
  for (int64_t launch : {5, 3, 4}) {
    buffers.defineAt(a, launch);
    buffers.useAt(a, launch + 1);
  }
  EXPECT_EQ(buffers.data(a).def, 3);
  EXPECT_EQ(buffers.data(a).lastUse, 6);
}

TEST(Buffers, SharesWhatEndsBeforeTheOtherBegins) {
  Buffers buffers;
  const int a = add(buffers, 0, 1), b = add(buffers, 2, 3);
  const int left = buffers.data(b).root;
  EXPECT_TRUE(buffers.share(a, b));
  EXPECT_TRUE(sameRoot(buffers, a, b));
  EXPECT_THAT(buffers.rootOf(a).members, UnorderedElementsAre(a, b));
  EXPECT_THAT(buffers.root(left).members, IsEmpty());
  EXPECT_TRUE(buffers.share(a, b)) << "already there";
}

TEST(Buffers, TouchingLivesShareInPlaceOnly) {
  Buffers buffers;
  const int a = add(buffers, 0, 2), b = add(buffers, 2, 3);
  EXPECT_FALSE(buffers.share(a, b));
  EXPECT_FALSE(sameRoot(buffers, a, b));
  buffers.allowInPlace(a, b);
  EXPECT_TRUE(buffers.share(a, b));
}

TEST(Buffers, InPlaceHasADirection) {
  Buffers buffers;
  const int a = add(buffers, 0, 2), b = add(buffers, 2, 3);
  buffers.allowInPlace(b, a);
  EXPECT_FALSE(buffers.share(a, b));
}

TEST(Buffers, InPlaceDoesNotExcuseALaterReader) {
  Buffers buffers;
  const int a = add(buffers, 0, 3), b = add(buffers, 2, 4);
  buffers.allowInPlace(a, b);
  EXPECT_FALSE(buffers.share(a, b)) << "launch 3 reads a after 2 wrote b";
}

TEST(Buffers, RefusesAConflictWithAThirdMember) {
  Buffers buffers;
  const int a = add(buffers, 0, 1), b = add(buffers, 4, 9);
  const int c = add(buffers, 2, 5);
  ASSERT_TRUE(buffers.share(a, b));
  EXPECT_FALSE(buffers.share(a, c)) << "b is alive in 4 and 5";
  const int d = add(buffers, 2, 3);
  EXPECT_TRUE(buffers.share(a, d));
}

TEST(Buffers, RefusesOtherShapes) {
  Buffers buffers;
  const int a = add(buffers, 0, 1);
  const int narrow = add(buffers, 2, 3, 9);
  const int rows = buffers.addData(kRows + 1, 10, kBytes);
  const int wide = buffers.addData(kRows, 10, 2);
  for (int other : {narrow, rows, wide}) {
    buffers.defineAt(other, 2);
    buffers.useAt(other, 3);
    EXPECT_FALSE(buffers.share(a, other));
    EXPECT_TRUE(buffers.isFree(other));
  }
}

// q, k and v, alive together, side by side in the output of one product.
TEST(Buffers, PacksColumns) {
  Buffers buffers;
  const int packed = buffers.addPackedRoot(kRows, 16, kBytes);
  const int q = add(buffers, 0, 5, 8), k = add(buffers, 0, 5, 4),
            v = add(buffers, 0, 5, 4);
  EXPECT_TRUE(buffers.place(q, packed, 0));
  EXPECT_FALSE(buffers.place(k, packed, 7)) << "column 7 is q's";
  EXPECT_FALSE(buffers.place(k, packed, 13)) << "past the end of the row";
  EXPECT_TRUE(buffers.place(k, packed, 8));
  EXPECT_TRUE(buffers.place(v, packed, 12));
  EXPECT_THAT(buffers.root(packed).members, UnorderedElementsAre(q, k, v));
  EXPECT_EQ(buffers.data(v).column, 12);
  EXPECT_FALSE(buffers.isFree(q)) << "a part of a row cannot move";
  EXPECT_TRUE(buffers.place(v, packed, 12)) << "already there";
  EXPECT_FALSE(buffers.place(v, packed, 0));
}

TEST(Buffers, SharesPackedColumns) {
  Buffers buffers;
  const int packed = buffers.addPackedRoot(kRows, 12, kBytes);
  const int q = add(buffers, 0, 2, 8), k = add(buffers, 0, 5, 4);
  ASSERT_TRUE(buffers.place(q, packed, 4));
  ASSERT_TRUE(buffers.place(k, packed, 0));
  const int rotated = add(buffers, 2, 6, 8);
  EXPECT_FALSE(buffers.share(q, rotated));
  buffers.allowInPlace(q, rotated);
  EXPECT_TRUE(buffers.share(q, rotated));
  EXPECT_EQ(buffers.data(rotated).root, packed);
  EXPECT_EQ(buffers.data(rotated).column, 4);
}

TEST(Buffers, FixedRootsDoNotMove) {
  Buffers buffers;
  const int argument = add(buffers, Buffers::kBefore, 1);
  buffers.root(buffers.data(argument).root).fixed = true;
  EXPECT_FALSE(buffers.isFree(argument));
  const int result = add(buffers, 2, 3);
  EXPECT_FALSE(buffers.place(argument, buffers.data(result).root, 0));
  EXPECT_TRUE(buffers.share(result, argument)) << "the other way round";
  EXPECT_TRUE(buffers.rootOf(result).fixed);
}

TEST(Buffers, TwoFixedRootsStayApart) {
  Buffers buffers;
  const int in = add(buffers, Buffers::kBefore, 0);
  const int out = add(buffers, 1, Buffers::kForever);
  for (int data : {in, out}) {
    buffers.root(buffers.data(data).root).fixed = true;
  }
  EXPECT_FALSE(buffers.share(in, out));
}

TEST(Buffers, SavedDataIsNeverInFixedMemory) {
  Buffers buffers;
  const int argument = add(buffers, Buffers::kBefore, 0);
  buffers.root(buffers.data(argument).root).fixed = true;
  const int saved = add(buffers, 1, 2);
  buffers.data(saved).saved = true;
  EXPECT_FALSE(buffers.share(argument, saved));
  // Nor by way of something else.
  const int between = add(buffers, 3, 4);
  ASSERT_TRUE(buffers.share(saved, between));
  EXPECT_TRUE(buffers.isSaved(buffers.data(between).root));
  EXPECT_FALSE(buffers.share(argument, between));
  // With other saved data it may lie.
  const int other = add(buffers, 5, 6);
  buffers.data(other).saved = true;
  EXPECT_TRUE(buffers.share(saved, other));
}

// Whatever is asked for in whatever order: data that is alive together and in
// one root never has a column in common, except in place.
TEST(Buffers, RandomRequestsNeverOverlap) {
  std::mt19937_64 engine(3);
  const auto below = [&](int64_t limit) {
    return static_cast<int64_t>(engine() % static_cast<uint64_t>(limit));
  };
  int shared = 0;
  for (int round = 0; round < test::sweep(200, 20000); ++round) {
    Buffers buffers;
    constexpr int kCount = 14;
    std::set<std::pair<int, int>> inPlace;
    const int packed = buffers.addPackedRoot(kRows, 12, kBytes);
    for (int i = 0; i < kCount; ++i) {
      const int64_t def = below(12);
      const int data = add(buffers, def, def + below(5), 4 * (1 + below(3)));
      buffers.data(data).saved = below(4) == 0;
      buffers.root(buffers.data(data).root).fixed =
          below(5) == 0 && !buffers.data(data).saved;
    }
    for (int i = 0; i < 60; ++i) {
      const int a = static_cast<int>(below(kCount));
      const int b = static_cast<int>(below(kCount));
      if (buffers.data(a).def < buffers.data(b).def && below(3) == 0) {
        inPlace.insert({a, b});
        buffers.allowInPlace(a, b);
      }
      shared += below(4) == 0 ? buffers.place(a, packed, 4 * below(3))
                              : buffers.share(a, b);
    }
    for (int r = 0; r < buffers.rootCount(); ++r) {
      ASSERT_FALSE(buffers.root(r).fixed && buffers.isSaved(r));
      for (int a : buffers.root(r).members) {
        const Buffers::Data &x = buffers.data(a);
        ASSERT_EQ(x.root, r);
        ASSERT_LE(x.column + x.width, buffers.root(r).rowSize);
        for (int b : buffers.root(r).members) {
          const Buffers::Data &y = buffers.data(b);
          const bool columns =
              x.column < y.column + y.width && y.column < x.column + x.width;
          if (a == b || !columns || x.def > y.def || x.lastUse < y.def) {
            continue;
          }
          ASSERT_EQ(x.lastUse, y.def) << a << " and " << b;
          ASSERT_TRUE(inPlace.count({a, b})) << a << " and " << b;
        }
      }
    }
  }
  EXPECT_GT(shared, 200);
}
