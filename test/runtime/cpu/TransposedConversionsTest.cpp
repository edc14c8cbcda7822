//===- TransposedConversionsTest.cpp - Conversions are adjoint ------------===//
//
// The transpose of a conversion is the one between the dual layouts, found with
// no table of its own: <y, C x> = <C' y, x>, with what every rank holds.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/cpu/Trial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

using namespace mega;
using namespace mega::test;

namespace {

const BufferType kType(DataType::F32, {12, 24, 36});

/// Of what every rank holds; of an invariant value, once.
double product(const Sharded &u, const Sharded &v) {
  double sum = 0;
  for (size_t rank = 0; rank < u.pieces.size(); ++rank) {
    if (rank == 0 || !u.layout.isInvariant()) {
      sum += dot(u.pieces[rank], v.pieces[rank]);
    }
  }
  return sum;
}

void check(Ranks &ranks, const Layout &from, const Layout &to) {
  const Layout dualFrom = from.dual().take(), dualTo = to.dual().take();
  const Sharded x = ranks.cut(kType, from, ranks.random(kType.elements()));
  const Sharded g = ranks.cut(kType, dualTo, ranks.random(kType.elements()));
  const Sharded y = ranks.convert(x, to);
  const Sharded back = ranks.convert(g, dualFrom);
  // Replicas are the same bits, and a sum over the ranks is rounded as often as
  // there are ranks; its terms are below 2^4.
  const double rounding = static_cast<double>(ranks.mesh.ranks()) * 0x1p-20;
  double terms = 0;
  for (const auto &[a, b] : {std::pair(&x, &y), std::pair(&g, &back)}) {
    const Values before = ranks.together(*a), after = ranks.together(*b);
    double worst = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      worst = std::max(worst, std::abs(before[i] - after[i]));
      terms += std::abs(before[i]);
    }
    EXPECT_LE(worst, rounding);
  }
  EXPECT_NEAR(product(y, g), product(x, back), rounding * terms);
}

TEST(TransposedConversions, AreThoseBetweenTheDuals) {
  const std::string states = "IRP012";
  std::set<Kernel> launched;
  for (const int64_t size : {2, 3, 4}) {
    Ranks ranks(tpMesh(size));
    std::map<Conversion, int> seen;
    for (const char a : states) {
      for (const char b : states) {
        SCOPED_TRACE(std::string(1, a) + " to " + b + ", " +
                     std::to_string(size) + " ranks");
        const Layout from = tpLayout(a, kType, size);
        const Layout to = tpLayout(b, kType, size);
        const auto change = changeBetween(from, to);
        ASSERT_TRUE(change.isOk());
        ++seen[change->conversion];
        if (change->conversion != Conversion::None) {
          check(ranks, from, to);
        }
      }
    }
    // By the table of states, with three dimensions to cut.
    const std::map<Conversion, int> expected = {
        {Conversion::None, 6},
        {Conversion::Replicate, 1},
        {Conversion::AssumeInvariant, 1},
        {Conversion::Slice, 2 * 3},
        {Conversion::ToPartial, 2 + 3},
        {Conversion::AllGather, 3 * 2},
        {Conversion::AllToAll, 3 * 2},
        {Conversion::AllReduce, 2},
        {Conversion::ReduceScatter, 3}};
    EXPECT_EQ(seen, expected);
    launched.insert(ranks.launched.begin(), ranks.launched.end());
  }
  for (int k = 0; k < kKernelCount; ++k) {
    const auto kernel = static_cast<Kernel>(k);
    EXPECT_EQ(launched.contains(kernel), isConversion(kernel))
        << kernelSpec(kernel).name;
  }
}

} // namespace
