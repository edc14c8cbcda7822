//===- ConversionsTest.cpp - Kernels between ranks, against their meaning -===//
#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/CpuKernels.h"
#include "test/runtime/comm/Ranks.h"

#include <cstring>
#include <numeric>

using namespace mega;
using test::samples;

namespace {

constexpr int kMostRanks = 4;

/// A tensor and what the ranks have of it when one of its dimensions is cut.
struct Cut {
  BufferType whole;
  BufferType piece;
  int dim;
  bool zigzag;
  int ranks;

  Cut(const BufferType &whole, int dim, bool zigzag, int ranks)
      : whole(whole), piece(whole), dim(dim), zigzag(zigzag), ranks(ranks) {
    piece.dims[static_cast<size_t>(dim)] /= ranks;
    piece.rowStride = piece.rowSize();
  }

  /// Where element `i` of the piece at `place` is in the whole.
  int64_t inWhole(int64_t i, int64_t place) const {
    int64_t at[BufferType::kMaxRank] = {};
    for (int d = whole.rank - 1; d >= 0; --d) {
      at[d] = i % piece.dims[static_cast<size_t>(d)];
      i /= piece.dims[static_cast<size_t>(d)];
    }
    const int64_t n = piece.dims[static_cast<size_t>(dim)];
    const int64_t before = at[dim];
    if (!zigzag) {
      at[dim] = place * n + before;
    } else if (before < n / 2) {
      at[dim] = place * (n / 2) + before;
    } else {
      at[dim] = (2 * ranks - 2 - place) * (n / 2) + before;
    }
    int64_t flat = 0;
    for (int d = 0; d < whole.rank; ++d) {
      flat = flat * whole.dims[static_cast<size_t>(d)] + at[d];
    }
    return flat;
  }
  /// The elements of `from`, of the whole, that the piece at `place` has.
  template <typename T>
  std::vector<T> pieceOf(const std::vector<T> &from, int64_t place) const {
    std::vector<T> result;
    for (int64_t i = 0; i < piece.elements(); ++i) {
      result.push_back(from[inWhole(i, place)]);
    }
    return result;
  }
};

/// Of three dimensions, every extent of a run another one.
BufferType wholeOf(DataType type, int ranks, int dim, bool zigzag) {
  BufferType whole(type, {2, 3, 5});
  whole.dims[static_cast<size_t>(dim)] *= ranks * (zigzag ? 2 : 1);
  whole.rowStride = whole.rowSize();
  return whole;
}

/// One element type, dimension and number of ranks.
template <typename T> class Case : public Cut {
public:
  Case(int ranks, int dim, bool zigzag = false)
      : Cut(wholeOf(test::kTypeOf<T>, ranks, dim, zigzag), dim, zigzag, ranks) {
  }

  std::vector<T> random(const BufferType &type, int rank) const {
    return samples<T>(17, static_cast<uint64_t>(rank), type.elements());
  }
  /// Elementwise, in the order of the ranks.
  std::vector<T> sum(const BufferType &type) const {
    std::vector<T> result(type.elements());
    for (size_t i = 0; i < result.size(); ++i) {
      using Sum = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;
      Sum sum = static_cast<Sum>(random(type, 0)[i]);
      for (int rank = 1; rank < ranks; ++rank) {
        if constexpr (std::is_integral_v<T>) {
          using Bits = std::make_unsigned_t<T>;
          sum = static_cast<T>(static_cast<Bits>(sum) +
                               static_cast<Bits>(random(type, rank)[i]));
        } else {
          sum += static_cast<Sum>(random(type, rank)[i]);
        }
      }
      result[i] = static_cast<T>(sum);
    }
    return result;
  }
  int64_t scratch() const { return collectiveScratch(whole, dim, zigzag); }
  std::vector<int64_t> integers() const { return {dim, zigzag ? 1 : 0}; }
};

/// Runs `body(rank, launch)` on all ranks; launch(kernel, views, integers)
/// launches on the group of all of them, with further integers.
template <typename Body> void onRanks(int ranks, Body &&body) {
  test::runRanks(test::Backend::InProcess, ranks, [&](test::RankContext &ctx) {
    ThreadPool pool(2);
    const StepScalars scalars;
    const GroupMember members[] = {
        {},
        {ranks == 1 ? nullptr : &ctx[0], ctx.rank, static_cast<int64_t>(ranks)},
    };
    RankGroups groups{members, Status::ok()};
    const KernelContext kernelContext{pool, scalars, 0, 0, &groups};
    body(ctx.rank, [&](Kernel kernel, std::vector<View> views,
                       std::vector<int64_t> integers) {
      std::vector<BufferType> types(views.begin(), views.end());
      integers.insert(integers.begin(), 1);
      EXPECT_OK(checkLaunch(kernel, {types, integers, {}}));
      cpuKernel(kernel)(kernelContext, {views, integers, {}});
      EXPECT_OK(copy(groups.failure));
    });
  });
}

template <typename T> View view(const BufferType &type, std::vector<T> &data) {
  return View(type, data.data());
}
template <typename T> BufferType flat(int64_t count) {
  return BufferType(test::kTypeOf<T>, {count});
}
/// bf16 has no comparison; bits are compared in any case.
template <typename T>
bool same(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <typename T> class Conversions : public testing::Test {
protected:
  template <typename Body> static void forAllCases(Body &&body) {
    for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
      for (int dim = 0; dim < 3; ++dim) {
        for (const bool zigzag : {false, true}) {
          SCOPED_TRACE(fmt::format("{} ranks, dimension {}{}", ranks, dim,
                                   zigzag ? ", zigzag" : ""));
          body(Case<T>(ranks, dim, zigzag));
        }
      }
    }
  }
};
using Types = testing::Types<float, BFloat16, double, int32_t, int64_t>;
TYPED_TEST_SUITE(Conversions, Types);

} // namespace

TYPED_TEST(Conversions, AllReduceSums) {
  using T = TypeParam;
  this->forAllCases([](const Case<T> &c) {
    onRanks(c.ranks, [&](int rank, auto launch) {
      const std::vector<T> expected = c.sum(c.whole);
      std::vector<T> x = c.random(c.whole, rank), y(x.size());
      launch(Kernel::AllReduce, {view(c.whole, x), view(c.whole, y)}, {0});
      EXPECT_TRUE(same(y, expected));
      EXPECT_TRUE(same(x, c.random(c.whole, rank)));
      launch(Kernel::AllReduce, {view(c.whole, x), view(c.whole, x)}, {0});
      EXPECT_TRUE(same(x, expected));
    });
  });
}

TYPED_TEST(Conversions, AllReduceTakesTheLargest) {
  using T = TypeParam;
  this->forAllCases([](const Case<T> &c) {
    onRanks(c.ranks, [&](int rank, auto launch) {
      std::vector<T> expected = c.random(c.whole, 0);
      for (int other = 1; other < c.ranks; ++other) {
        const std::vector<T> theirs = c.random(c.whole, other);
        for (size_t i = 0; i < expected.size(); ++i) {
          if (static_cast<double>(theirs[i]) >
              static_cast<double>(expected[i])) {
            expected[i] = theirs[i];
          }
        }
      }
      std::vector<T> x = c.random(c.whole, rank);
      launch(Kernel::AllReduce, {view(c.whole, x), view(c.whole, x)},
             {static_cast<int64_t>(Reduction::Max)});
      EXPECT_TRUE(same(x, expected));
    });
  });
}

TYPED_TEST(Conversions, AllGatherPutsPiecesInOrder) {
  using T = TypeParam;
  this->forAllCases([](const Case<T> &c) {
    onRanks(c.ranks, [&](int rank, auto launch) {
      std::vector<T> x = c.random(c.piece, rank), y(c.whole.elements());
      std::vector<T> scratch(c.scratch());
      launch(Kernel::AllGather,
             {view(c.piece, x), view(c.whole, y),
              view(flat<T>(c.scratch()), scratch)},
             c.integers());
      for (int place = 0; place < c.ranks; ++place) {
        EXPECT_TRUE(same(c.pieceOf(y, place), c.random(c.piece, place)));
      }
    });
  });
}

TYPED_TEST(Conversions, ReduceScatterLeavesThePieceOfTheSum) {
  using T = TypeParam;
  this->forAllCases([](const Case<T> &c) {
    onRanks(c.ranks, [&](int rank, auto launch) {
      std::vector<T> x = c.random(c.whole, rank), y(c.piece.elements());
      std::vector<T> scratch(c.scratch());
      launch(Kernel::ReduceScatter,
             {view(c.whole, x), view(c.piece, y),
              view(flat<T>(c.scratch()), scratch)},
             c.integers());
      EXPECT_TRUE(same(y, c.pieceOf(c.sum(c.whole), rank)));
      EXPECT_TRUE(same(x, c.random(c.whole, rank)));
    });
  });
}

// As buckets of gradients and parameters are.
TYPED_TEST(Conversions, GatherAndScatterVectorsInPlace) {
  using T = TypeParam;
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    constexpr int64_t count = 1000;
    const Case<T> c(ranks, 0);
    const BufferType piece = flat<T>(count), whole = flat<T>(count * ranks);
    const std::vector<T> sum = c.sum(whole);
    onRanks(ranks, [&](int rank, auto launch) {
      std::vector<T> data = c.random(whole, rank), scratch(1);
      const View mine(piece, data.data() + rank * count);
      launch(Kernel::ReduceScatter,
             {view(whole, data), mine, view(flat<T>(1), scratch)}, {0, 0});
      EXPECT_EQ(
          std::memcmp(mine.data, sum.data() + rank * count, count * sizeof(T)),
          0);
      launch(Kernel::AllGather,
             {mine, view(whole, data), view(flat<T>(1), scratch)}, {0, 0});
      EXPECT_TRUE(same(data, sum));
    });
  }
}

TYPED_TEST(Conversions, SliceKeepsTheOwnPiece) {
  using T = TypeParam;
  this->forAllCases([](const Case<T> &c) {
    onRanks(c.ranks, [&](int rank, auto launch) {
      std::vector<T> x = c.random(c.whole, 0), y(c.piece.elements());
      launch(Kernel::Slice, {view(c.whole, x), view(c.piece, y)}, c.integers());
      EXPECT_TRUE(same(y, c.pieceOf(x, rank)));
    });
  });
}

TYPED_TEST(Conversions, ToPartialPutsAPieceBetweenZeros) {
  using T = TypeParam;
  this->forAllCases([](const Case<T> &c) {
    onRanks(c.ranks, [&](int rank, auto launch) {
      std::vector<T> x = c.random(c.piece, rank);
      std::vector<T> y = c.random(c.whole, 9);
      launch(Kernel::ToPartial, {view(c.piece, x), view(c.whole, y)},
             c.integers());
      for (int place = 0; place < c.ranks; ++place) {
        EXPECT_TRUE(same(c.pieceOf(y, place),
                         place == rank ? x : std::vector<T>(x.size())));
      }
    });
  });
}

TYPED_TEST(Conversions, ToPartialGivesAllToTheFirst) {
  using T = TypeParam;
  this->forAllCases([](const Case<T> &c) {
    onRanks(c.ranks, [&](int rank, auto launch) {
      std::vector<T> x = c.random(c.whole, 0), y = c.random(c.whole, 9);
      launch(Kernel::ToPartial, {view(c.whole, x), view(c.whole, y)}, {-1, 0});
      EXPECT_TRUE(same(y, rank == 0 ? x : std::vector<T>(x.size())));
    });
  });
}

TYPED_TEST(Conversions, AllToAllCutsAnotherDimension) {
  using T = TypeParam;
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    for (int kinds = 0; kinds < 4 * 4 * 4; ++kinds) {
      const int from = kinds / 16, to = kinds / 4 % 4;
      const bool fromZigzag = (kinds & 1) != 0, toZigzag = (kinds & 2) != 0;
      if (from == to) {
        continue;
      }
      SCOPED_TRACE(fmt::format("{} ranks, from {}{} to {}{}", ranks, from,
                               fromZigzag ? " zigzag" : "", to,
                               toZigzag ? " zigzag" : ""));
      BufferType whole(test::kTypeOf<T>, {3, 2, 1, 5});
      whole.dims[static_cast<size_t>(from)] *= ranks * (fromZigzag ? 2 : 1);
      whole.dims[static_cast<size_t>(to)] *= ranks * (toZigzag ? 2 : 1);
      whole.rowStride = whole.rowSize();
      const Cut before(whole, from, fromZigzag, ranks);
      const Cut after(whole, to, toZigzag, ranks);
      const auto data = samples<T>(17, 0, whole.elements());
      onRanks(ranks, [&](int rank, auto launch) {
        std::vector<T> x = before.pieceOf(data, rank), y(x.size());
        std::vector<T> scratch(allToAllScratch(before.piece, after.piece, from,
                                               to, fromZigzag, toZigzag));
        const View packed = view(flat<T>(std::ssize(scratch)), scratch);
        launch(Kernel::AllToAll,
               {view(before.piece, x), view(after.piece, y), packed},
               {from, to, fromZigzag, toZigzag});
        EXPECT_TRUE(same(y, after.pieceOf(data, rank)));
        // Its transpose, which is its inverse.
        std::vector<T> back(x.size());
        launch(Kernel::AllToAll,
               {view(after.piece, y), view(before.piece, back), packed},
               {to, from, toZigzag, fromZigzag});
        EXPECT_TRUE(same(back, x));
      });
    }
  }
}

// <y, C x> = <C' y, x> with what every rank holds, in f64 of small integers,
// whose products and sums are exact.
TEST(ZigzagConversions, AreAdjoint) {
  const auto dot = [](const std::vector<double> &a,
                      const std::vector<double> &b) {
    EXPECT_EQ(a.size(), b.size());
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  for (int ranks = 2; ranks <= kMostRanks; ++ranks) {
    for (int dim = 0; dim < 3; ++dim) {
      SCOPED_TRACE(fmt::format("{} ranks, dimension {}", ranks, dim));
      const Case<double> c(ranks, dim, true);
      const auto random = [&](const BufferType &type, int seed) {
        std::vector<double> values(type.elements());
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<double>(
                          test::mix(5, static_cast<uint64_t>(seed), i) % 2001) -
                      1000;
        }
        return values;
      };
      std::vector<double> gathers(ranks), scatters(ranks), slices(ranks),
          places(ranks);
      onRanks(ranks, [&](int rank, auto launch) {
        const auto at = static_cast<size_t>(rank);
        std::vector<double> x = random(c.piece, rank);
        std::vector<double> g = random(c.whole, 10 + rank);
        std::vector<double> y(g.size()), back(x.size()), scratch(c.scratch());
        const View packed = view(flat<double>(c.scratch()), scratch);
        launch(Kernel::AllGather, {view(c.piece, x), view(c.whole, y), packed},
               c.integers());
        launch(Kernel::ReduceScatter,
               {view(c.whole, g), view(c.piece, back), packed}, c.integers());
        gathers[at] = dot(y, g);
        scatters[at] = dot(x, back);
        launch(Kernel::ToPartial, {view(c.piece, x), view(c.whole, y)},
               c.integers());
        launch(Kernel::Slice, {view(c.whole, g), view(c.piece, back)},
               c.integers());
        places[at] = dot(y, g);
        slices[at] = dot(x, back);
      });
      const auto total = [](const std::vector<double> &values) {
        return std::accumulate(values.begin(), values.end(), 0.0);
      };
      EXPECT_EQ(total(gathers), total(scatters));
      EXPECT_NE(total(gathers), 0);
      EXPECT_EQ(total(places), total(slices));
      EXPECT_NE(total(places), 0);
    }
  }
}

// The first error stays: what a later call says is a consequence.
TEST(ConversionFailure, KeepsTheRootCause) {
  test::runRanks(test::Backend::InProcess, 2, [&](test::RankContext &ctx) {
    ThreadPool pool(1);
    const StepScalars scalars;
    const GroupMember members[] = {{&ctx[0], ctx.rank, 2}};
    RankGroups groups{members, Status::ok()};
    const KernelContext kernelContext{pool, scalars, 0, 0, &groups};
    // They disagree on the number of elements.
    std::vector<float> x(ctx.rank == 0 ? 10 : 12);
    const View views[] = {view(flat<float>(std::ssize(x)), x),
                          view(flat<float>(std::ssize(x)), x)};
    const int64_t integers[] = {0, 0};
    cpuKernel(Kernel::AllReduce)(kernelContext, {views, integers, {}});
    EXPECT_EQ(groups.failure.code(), Code::Internal);
    const std::string cause = groups.failure.message();
    EXPECT_NE(cause.find("10 x f32"), std::string::npos) << cause;
    ctx.abortAll(Status(Code::Unavailable, "later"));
    cpuKernel(Kernel::AllReduce)(kernelContext, {views, integers, {}});
    EXPECT_EQ(groups.failure.message(), cause);
  });
}
