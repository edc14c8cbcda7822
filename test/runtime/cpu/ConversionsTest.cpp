//===- ConversionsTest.cpp - Kernels between ranks, against their meaning -===//
#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/CpuKernels.h"
#include "test/runtime/comm/Ranks.h"

#include <cstring>

using namespace mega;
using test::samples;

namespace {

constexpr int kMostRanks = 4;
/// Of a piece; every extent another one.
constexpr int64_t kPiece[] = {2, 3, 5};

/// One element type, dimension and number of ranks.
template <typename T> class Case {
public:
  Case(int ranks, int dim) : ranks(ranks), dim(dim) {
    piece = BufferType(test::kTypeOf<T>, {kPiece[0], kPiece[1], kPiece[2]});
    whole = piece;
    whole.dims[static_cast<size_t>(dim)] *= ranks;
    whole.rowStride = whole.rowSize();
  }

  std::vector<T> random(const BufferType &type, int rank) const {
    return samples<T>(17, static_cast<uint64_t>(rank), type.elements());
  }
  /// Where element `i` of the piece at `place` is in the whole.
  int64_t inWhole(int64_t i, int64_t place) const {
    int64_t at[3] = {i / (kPiece[1] * kPiece[2]), i / kPiece[2] % kPiece[1],
                     i % kPiece[2]};
    at[dim] += place * kPiece[dim];
    return (at[0] * whole.dims[1] + at[1]) * whole.dims[2] + at[2];
  }
  /// The elements of `from`, of the whole, that the piece at `place` has.
  std::vector<T> pieceOf(const std::vector<T> &from, int64_t place) const {
    std::vector<T> result;
    for (int64_t i = 0; i < piece.elements(); ++i) {
      result.push_back(from[inWhole(i, place)]);
    }
    return result;
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
  int64_t scratch() const {
    return collectiveScratch(whole, static_cast<int64_t>(dim));
  }

  const int ranks;
  const int dim;
  BufferType piece;
  BufferType whole;
};

/// Runs `body(rank, launch)` on all ranks; launch(kernel, views, integer)
/// launches on the group of all of them.
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
    body(ctx.rank, [&](Kernel kernel, std::vector<View> views, int64_t last) {
      std::vector<BufferType> types(views.begin(), views.end());
      const int64_t integers[] = {1, last};
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
        SCOPED_TRACE(fmt::format("{} ranks, dimension {}", ranks, dim));
        body(Case<T>(ranks, dim));
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
      launch(Kernel::AllReduce, {view(c.whole, x), view(c.whole, y)}, 0);
      EXPECT_TRUE(same(y, expected));
      EXPECT_TRUE(same(x, c.random(c.whole, rank)));
      launch(Kernel::AllReduce, {view(c.whole, x), view(c.whole, x)}, 0);
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
             static_cast<int64_t>(Reduction::Max));
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
             c.dim);
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
             c.dim);
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
             {view(whole, data), mine, view(flat<T>(1), scratch)}, 0);
      EXPECT_EQ(
          std::memcmp(mine.data, sum.data() + rank * count, count * sizeof(T)),
          0);
      launch(Kernel::AllGather,
             {mine, view(whole, data), view(flat<T>(1), scratch)}, 0);
      EXPECT_TRUE(same(data, sum));
    });
  }
}

TYPED_TEST(Conversions, SliceKeepsTheOwnPiece) {
  using T = TypeParam;
  this->forAllCases([](const Case<T> &c) {
    onRanks(c.ranks, [&](int rank, auto launch) {
      std::vector<T> x = c.random(c.whole, 0), y(c.piece.elements());
      launch(Kernel::Slice, {view(c.whole, x), view(c.piece, y)}, c.dim);
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
      launch(Kernel::ToPartial, {view(c.piece, x), view(c.whole, y)}, c.dim);
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
      launch(Kernel::ToPartial, {view(c.whole, x), view(c.whole, y)}, -1);
      EXPECT_TRUE(same(y, rank == 0 ? x : std::vector<T>(x.size())));
    });
  });
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
