//===- LayoutTest.cpp - The layout calculus, by names and by numbers ------===//
//
// The numeric half simulates the ranks of one mesh axis. Each conversion is
// given its meaning on local pieces below, by its name alone; the table must
// then turn any state into any other without changing the global value, and the
// table's conversion between the dual states must be the adjoint.
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

using namespace mega;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

//===----------------------------------------------------------------------===//
// Matrices on simulated ranks.
//===----------------------------------------------------------------------===//

struct Matrix {
  int64_t rows, cols;
  std::vector<double> values;

  Matrix(int64_t rows, int64_t cols)
      : rows(rows), cols(cols), values(static_cast<size_t>(rows * cols), 0.0) {}
  double &at(int64_t i, int64_t j) {
    return values[static_cast<size_t>(i * cols + j)];
  }
  double at(int64_t i, int64_t j) const {
    return values[static_cast<size_t>(i * cols + j)];
  }
};
using Ranks = std::vector<Matrix>;

/// A state and, if it is Shard, the dimension.
struct Where {
  State state;
  int dim = -1;
  friend bool operator==(const Where &, const Where &) = default;
};
Where dual(Where where) { return {mega::dual(where.state), where.dim}; }

constexpr Where kStates[] = {{State::Invariant},
                             {State::Replicated},
                             {State::Shard, 0},
                             {State::Shard, 1},
                             {State::Partial}};

/// One axis of `ranks` ranks, and a global matrix that need not divide by it: a
/// sharded dimension is padded with zeros to equal pieces.
class Simulation {
public:
  Simulation(int ranks, int64_t rows, int64_t cols)
      : ranks(ranks), extent{rows, cols} {}

  Matrix random() {
    std::normal_distribution<double> normal;
    Matrix matrix(extent[0], extent[1]);
    for (double &value : matrix.values) {
      value = normal(engine);
    }
    return matrix;
  }

  /// Pieces that denote `global`; partial ones are random but for their sum.
  Ranks make(Where where, const Matrix &global) {
    if (where.state == State::Shard) {
      return slice(Ranks(ranks, global), where.dim);
    }
    Ranks all(ranks, global);
    if (where.state == State::Partial) {
      for (int r = 1; r < ranks; ++r) {
        all[r] = random();
        for (size_t i = 0; i < global.values.size(); ++i) {
          all[0].values[i] -= all[r].values[i];
        }
      }
    }
    return all;
  }

  /// The global value that the pieces denote.
  Matrix denoted(Where where, const Ranks &pieces) const {
    switch (where.state) {
    case State::Shard:
      return gather(pieces, where.dim)[0];
    case State::Partial:
      return sum(pieces)[0];
    default:
      for (const Matrix &piece : pieces) {
        EXPECT_EQ(piece.values, pieces[0].values) << "differs between ranks";
      }
      return pieces[0];
    }
  }

  /// What a conversion does, by its name.
  Ranks apply(Conversion conversion, int fromDim, int toDim,
              const Ranks &pieces) const {
    switch (conversion) {
    case Conversion::None:
    case Conversion::Replicate:
    case Conversion::AssumeInvariant:
      return pieces;
    case Conversion::Slice:
      return slice(pieces, toDim);
    case Conversion::ToPartial:
      return toPartial(pieces, fromDim);
    case Conversion::AllGather:
      return gather(pieces, fromDim);
    case Conversion::AllToAll:
      return slice(gather(pieces, fromDim), toDim);
    case Conversion::AllReduce:
      return sum(pieces);
    case Conversion::ReduceScatter:
      return slice(sum(pieces), toDim);
    }
    return {};
  }

  /// <x, g> of a value in `where` with a gradient in its dual state: the sum
  /// over ranks, but an invariant value counts once.
  double pair(Where where, const Ranks &x, const Ranks &g) const {
    double result = 0;
    for (int r = 0; r < (where.state == State::Invariant ? 1 : ranks); ++r) {
      EXPECT_EQ(x[r].values.size(), g[r].values.size());
      for (size_t i = 0; i < x[r].values.size(); ++i) {
        result += x[r].values[i] * g[r].values[i];
      }
    }
    return result;
  }

private:
  int64_t piece(int dim) const { return (extent[dim] + ranks - 1) / ranks; }

  /// Calls visit(rank, i, j, local i, local j) for every element, with its
  /// owner when `dim` is sharded.
  template <typename Visit> void forOwned(int dim, Visit visit) const {
    for (int64_t i = 0; i < extent[0]; ++i) {
      for (int64_t j = 0; j < extent[1]; ++j) {
        const int64_t at = dim == 0 ? i : j;
        const int rank = static_cast<int>(at / piece(dim));
        const int64_t local = at % piece(dim);
        visit(rank, i, j, dim == 0 ? local : i, dim == 0 ? j : local);
      }
    }
  }

  Ranks slice(const Ranks &whole, int dim) const {
    Ranks pieces(ranks, Matrix(dim == 0 ? piece(0) : extent[0],
                               dim == 1 ? piece(1) : extent[1]));
    forOwned(dim, [&](int rank, int64_t i, int64_t j, int64_t li, int64_t lj) {
      pieces[rank].at(li, lj) = whole[rank].at(i, j);
    });
    return pieces;
  }
  Ranks gather(const Ranks &pieces, int dim) const {
    Matrix whole(extent[0], extent[1]);
    forOwned(dim, [&](int rank, int64_t i, int64_t j, int64_t li, int64_t lj) {
      whole.at(i, j) = pieces[rank].at(li, lj);
    });
    return Ranks(ranks, whole);
  }
  Ranks sum(const Ranks &pieces) const {
    Matrix total(extent[0], extent[1]);
    for (const Matrix &part : pieces) {
      for (size_t i = 0; i < total.values.size(); ++i) {
        total.values[i] += part.values[i];
      }
    }
    return Ranks(ranks, total);
  }
  /// Shards keep their place among zeros; of equal copies the first one stays.
  Ranks toPartial(const Ranks &pieces, int fromDim) const {
    Ranks parts(ranks, Matrix(extent[0], extent[1]));
    if (fromDim < 0) {
      parts[0] = pieces[0];
      return parts;
    }
    forOwned(fromDim,
             [&](int rank, int64_t i, int64_t j, int64_t li, int64_t lj) {
               parts[rank].at(i, j) = pieces[rank].at(li, lj);
             });
    return parts;
  }

  int ranks;
  int64_t extent[2];
  std::mt19937_64 engine{1};
};

/// The table's conversion, applied.
Ranks convert(const Simulation &simulation, Where from, Where to,
              const Ranks &pieces) {
  const auto found = conversion(from.state, to.state);
  EXPECT_TRUE(found.has_value());
  return simulation.apply(found.value_or(Conversion::None), from.dim, to.dim,
                          pieces);
}

void expectNear(const Matrix &a, const Matrix &b) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (size_t i = 0; i < a.values.size(); ++i) {
    ASSERT_NEAR(a.values[i], b.values[i], 1e-12) << "element " << i;
  }
}

std::string describe(Where where) {
  return std::string(name(where.state)) +
         (where.dim < 0 ? "" : "(" + std::to_string(where.dim) + ")");
}

/// Number of ranks, rows, columns: what divides, what does not, and a last
/// piece that is padding only (9 over 4 is 3, 3, 3, 0).
struct Extents {
  int ranks;
  int64_t rows, cols;
};
class ConversionNumbers : public testing::TestWithParam<Extents> {
protected:
  /// Calls check(from, to) for the 20 ordered pairs of different states.
  template <typename Check> void forPairs(Check check) {
    int pairs = 0;
    for (const Where from : kStates) {
      for (const Where to : kStates) {
        if (from == to) {
          continue;
        }
        SCOPED_TRACE(describe(from) + " -> " + describe(to));
        check(from, to);
        ++pairs;
      }
    }
    EXPECT_EQ(pairs, 20);
  }

  Simulation simulation{GetParam().ranks, GetParam().rows, GetParam().cols};
};

} // namespace

TEST_P(ConversionNumbers, KeepTheGlobalValue) {
  forPairs([&](Where from, Where to) {
    const Matrix global = simulation.random();
    const Ranks before = simulation.make(from, global);
    expectNear(simulation.denoted(to, convert(simulation, from, to, before)),
               global);
  });
}

TEST_P(ConversionNumbers, DualIsTheAdjoint) {
  forPairs([&](Where from, Where to) {
    const Ranks x = simulation.make(from, simulation.random());
    const Ranks y = simulation.make(dual(to), simulation.random());
    const Ranks jx = convert(simulation, from, to, x);
    const Ranks jty = convert(simulation, dual(to), dual(from), y);
    EXPECT_NEAR(simulation.pair(to, jx, y), simulation.pair(from, x, jty),
                1e-9);
  });
}

// A conversion that skips its dual's sum, or sums twice, must not pass.
TEST_P(ConversionNumbers, AWrongDualIsNoAdjoint) {
  const Where invariant{State::Invariant}, replicated{State::Replicated};
  const Ranks x = simulation.make(invariant, simulation.random());
  const Ranks y = simulation.make(dual(replicated), simulation.random());
  const Ranks jx = convert(simulation, invariant, replicated, x);
  EXPECT_GT(std::abs(simulation.pair(replicated, jx, y) -
                     simulation.pair(invariant, x, y)),
            1e-3)
      << "a gradient used without its all_reduce";
}

INSTANTIATE_TEST_SUITE_P(Extents, ConversionNumbers,
                         testing::Values(Extents{3, 9, 15}, Extents{4, 12, 20},
                                         Extents{3, 7, 11}, Extents{4, 9, 15},
                                         Extents{4, 10, 6}));

//===----------------------------------------------------------------------===//
// Names.
//===----------------------------------------------------------------------===//

TEST(Conversion, TableAndDualsByName) {
  struct Row {
    State from, to;
    const char *name;
    const char *dual;
  };
  constexpr State kI = State::Invariant, kR = State::Replicated,
                  kS = State::Shard, kP = State::Partial;
  const Row rows[] = {
      {kI, kR, "replicate", "all_reduce"},
      {kI, kS, "slice", "all_gather"},
      {kI, kP, "to_partial", "assume_invariant"},
      {kR, kI, "assume_invariant", "to_partial"},
      {kR, kS, "slice", "to_partial"},
      {kR, kP, "to_partial", "to_partial"},
      {kS, kI, "all_gather", "slice"},
      {kS, kR, "all_gather", "reduce_scatter"},
      {kS, kS, "all_to_all", "all_to_all"},
      {kS, kP, "to_partial", "slice"},
      {kP, kI, "all_reduce", "replicate"},
      {kP, kR, "all_reduce", "all_reduce"},
      {kP, kS, "reduce_scatter", "all_gather"},
  };
  for (const Row &row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(name(conversion(row.from, row.to).value()), row.name);
    EXPECT_EQ(name(conversion(dual(row.to), dual(row.from)).value()), row.dual);
  }
  EXPECT_EQ(conversion(kI, kI), Conversion::None);
  EXPECT_EQ(conversion(kR, kR), Conversion::None);
  EXPECT_FALSE(conversion(kP, kP).has_value());
}

TEST(State, DualIsAnInvolution) {
  for (const Where where : kStates) {
    EXPECT_EQ(dual(dual(where)), where);
  }
  EXPECT_EQ(mega::dual(State::Replicated), State::Partial);
  EXPECT_EQ(mega::dual(State::Shard), State::Shard);
  EXPECT_EQ(mega::dual(State::Invariant), State::Invariant);
}

TEST(Axis, NamesRoundTrip) {
  for (int i = 0; i < kAxisCount; ++i) {
    const Axis axis = static_cast<Axis>(i);
    EXPECT_EQ(findAxis(name(axis)), axis);
  }
  EXPECT_EQ(findAxis("tensor"), std::nullopt);
  EXPECT_EQ(findAxis(""), std::nullopt);
}

//===----------------------------------------------------------------------===//
// Layouts of all axes.
//===----------------------------------------------------------------------===//

namespace {

uint8_t mask(std::initializer_list<Axis> axes) {
  uint8_t bits = 0;
  for (Axis axis : axes) {
    bits |= static_cast<uint8_t>(1u << static_cast<int>(axis));
  }
  return bits;
}

/// [{cp, tp}, {pad 100 of ep}, {}], replicated = {dp}.
Layout example() {
  Layout layout;
  layout.rank = 3;
  layout.dims[0].push(Axis::Cp);
  layout.dims[0].push(Axis::Tp);
  layout.dims[1].push(Axis::Ep);
  layout.dims[1].padded = 100;
  layout.replicated = mask({Axis::Dp});
  return layout;
}

std::string rejection(const Layout &layout, int rank = 3) {
  const Status status = layout.verify(rank);
  EXPECT_EQ(status.code(), Code::BadInput);
  return status.message();
}

} // namespace

TEST(Layout, CanonicalText) {
  EXPECT_EQ(Layout().str(), "");
  EXPECT_TRUE(Layout().isInvariant());
  EXPECT_EQ(example().str(), "[{cp, tp}, {ep, pad 100}, {}], "
                             "replicated = {dp}");
  Layout sums;
  sums.replicated = mask({Axis::Dp, Axis::Tp});
  sums.partial = mask({Axis::Cp});
  EXPECT_EQ(sums.str(), "replicated = {tp, dp}, partial = {cp}");
  sums.replicated = 0;
  sums.reduction = Reduction::Max;
  EXPECT_EQ(sums.str(), "partial = {cp max}");
}

TEST(Layout, OneStatePerAxis) {
  const Layout layout = example();
  EXPECT_EQ(layout.state(Axis::Cp), State::Shard);
  EXPECT_EQ(layout.state(Axis::Dp), State::Replicated);
  EXPECT_EQ(layout.state(Axis::Pp), State::Invariant);
  EXPECT_EQ(layout.shardedDim(Axis::Tp), 0);
  EXPECT_EQ(layout.shardedDim(Axis::Ep), 1);
  EXPECT_EQ(layout.shardedDim(Axis::Dp), -1);
}

TEST(Layout, DualSwapsReplicatedAndPartialAndKeepsShards) {
  Layout layout = example();
  layout.partial = 0;
  const Layout gradient = layout.dual().take();
  EXPECT_EQ(gradient.str(), "[{cp, tp}, {ep, pad 100}, {}], partial = {dp}");
  EXPECT_TRUE(gradient.verify(3).isOk());
  EXPECT_EQ(gradient.dual().take(), layout);
  EXPECT_EQ(Layout().dual().take(), Layout());
}

TEST(Layout, OnlySumsHaveADual) {
  Layout layout;
  layout.partial = mask({Axis::Tp});
  EXPECT_TRUE(layout.dual().isOk());
  for (Reduction reduction : {Reduction::Max, Reduction::Min, Reduction::Or}) {
    layout.reduction = reduction;
    const auto refused = layout.dual();
    EXPECT_EQ(refused.status().code(), Code::BadInput);
    EXPECT_EQ(refused.status().message(), "a value partial by " +
                                              std::string(name(reduction)) +
                                              " has no gradient");
  }
}

TEST(Layout, VerifyAcceptsCanonicalForms) {
  EXPECT_TRUE(Layout().verify(0).isOk());
  EXPECT_TRUE(Layout().verify(4).isOk());
  EXPECT_TRUE(example().verify(3).isOk());
  Layout maximum;
  maximum.partial = mask({Axis::Tp});
  maximum.reduction = Reduction::Max;
  EXPECT_TRUE(maximum.verify(2).isOk());
}

TEST(Layout, VerifyRefusesAnAxisTwice) {
  Layout layout = example();
  layout.dims[2].push(Axis::Tp);
  EXPECT_EQ(rejection(layout), "axis tp shards twice");
  layout = example();
  layout.replicated |= mask({Axis::Cp});
  EXPECT_EQ(rejection(layout), "axis cp occurs twice");
  layout = example();
  layout.partial = mask({Axis::Dp});
  EXPECT_EQ(rejection(layout), "axis dp occurs twice");
  layout.partial = mask({Axis::Tp, Axis::Cp});
  EXPECT_EQ(rejection(layout), "axis tp, cp occurs twice");
}

TEST(Layout, VerifyRefusesPp) {
  Layout layout = example();
  layout.dims[2].push(Axis::Pp);
  EXPECT_THAT(rejection(layout), HasSubstr("pp is placement"));
  layout = example();
  layout.partial = mask({Axis::Pp});
  EXPECT_THAT(rejection(layout), HasSubstr("pp is placement"));
}

TEST(Layout, VerifyRefusesOtherSpellings) {
  Layout empty;
  empty.rank = 3;
  EXPECT_THAT(rejection(empty), HasSubstr("dimension list must be omitted"));
  Layout padded = example();
  padded.dims[2].padded = 8;
  EXPECT_EQ(rejection(padded), "dimension 2 is padded but not sharded");
  Layout kind = example();
  kind.reduction = Reduction::Min;
  EXPECT_EQ(rejection(kind), "a reduction kind without a partial axis");
  EXPECT_EQ(rejection(example(), 2),
            "the layout has 3 dimensions but the tensor 2");
  EXPECT_EQ(rejection(example(), 4),
            "the layout has 3 dimensions but the tensor 4");
}

//===----------------------------------------------------------------------===//
// Rank numbers.
//===----------------------------------------------------------------------===//

namespace {

using Groups = std::vector<std::vector<int64_t>>;

/// The groups along `axis`, by their first rank.
Groups groups(const Mesh &mesh, Axis axis) {
  std::set<std::vector<int64_t>> all;
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    all.insert(mesh.group(rank, axis));
  }
  return {all.begin(), all.end()};
}

Mesh mesh(int64_t tp, int64_t cp, int64_t dp, int64_t pp) {
  Mesh result;
  result.sizes = {tp, 1, 1, cp, dp, pp, 1};
  return result;
}

} // namespace

// World 16 with tp 2 and pp 4, as Megatron's documentation lists it.
TEST(Mesh, GroupsOfSixteenRanks) {
  const Mesh world = mesh(2, 1, 2, 4);
  ASSERT_EQ(world.ranks(), 16);
  EXPECT_EQ(groups(world, Axis::Tp), (Groups{{0, 1},
                                             {2, 3},
                                             {4, 5},
                                             {6, 7},
                                             {8, 9},
                                             {10, 11},
                                             {12, 13},
                                             {14, 15}}));
  EXPECT_EQ(groups(world, Axis::Dp), (Groups{{0, 2},
                                             {1, 3},
                                             {4, 6},
                                             {5, 7},
                                             {8, 10},
                                             {9, 11},
                                             {12, 14},
                                             {13, 15}}));
  EXPECT_EQ(
      groups(world, Axis::Pp),
      (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

TEST(Mesh, GroupsWithContextParallelism) {
  const Mesh world = mesh(2, 2, 2, 2);
  EXPECT_EQ(groups(world, Axis::Cp), (Groups{{0, 2},
                                             {1, 3},
                                             {4, 6},
                                             {5, 7},
                                             {8, 10},
                                             {9, 11},
                                             {12, 14},
                                             {13, 15}}));
  EXPECT_EQ(groups(world, Axis::Dp), (Groups{{0, 4},
                                             {1, 5},
                                             {2, 6},
                                             {3, 7},
                                             {8, 12},
                                             {9, 13},
                                             {10, 14},
                                             {11, 15}}));
  EXPECT_EQ(groups(world, Axis::Pp), (Groups{{0, 8},
                                             {1, 9},
                                             {2, 10},
                                             {3, 11},
                                             {4, 12},
                                             {5, 13},
                                             {6, 14},
                                             {7, 15}}));
}

TEST(Mesh, CoordinatesNumberTheRanks) {
  const Mesh world = mesh(3, 2, 5, 4);
  for (int64_t rank = 0; rank < world.ranks(); ++rank) {
    const int64_t tp = world.coordinate(rank, Axis::Tp);
    const int64_t cp = world.coordinate(rank, Axis::Cp);
    const int64_t dp = world.coordinate(rank, Axis::Dp);
    const int64_t pp = world.coordinate(rank, Axis::Pp);
    ASSERT_EQ(tp + 3 * (cp + 2 * (dp + 5 * pp)), rank);
    for (Axis axis : {Axis::Tp, Axis::Cp, Axis::Dp, Axis::Pp}) {
      const auto members = world.group(rank, axis);
      ASSERT_EQ(std::ssize(members), world.size(axis));
      ASSERT_EQ(members[world.coordinate(rank, axis)], rank);
    }
  }
  EXPECT_THAT(Mesh().group(0, Axis::Pp), ElementsAre(0));
}
