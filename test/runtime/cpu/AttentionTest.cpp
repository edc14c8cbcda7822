#include "runtime/plan/RopeFrequencies.h"
#include "test/runtime/cpu/Conformance.h"

#include <algorithm>
#include <cmath>

using namespace mega;
using reference::AttentionPlaces;
using reference::AttentionShape;
using reference::Values;

namespace {

class AttentionTest : public Conformance {
protected:
  using Buffers = std::vector<Buffer *>;

  /// Places in documents as buffers, if the shape has them, and the kernels
  /// that take them.
  class Places {
  public:
    explicit Places(const AttentionShape &s) {
      if (s.isPacked()) {
        for (const auto &[places, rows] : {std::pair(s.queryPlaces, s.sequence),
                                           {s.keyPlaces, s.keyRows()}}) {
          buffers.push_back(Buffer::ids({s.batch, rows}, places.positions));
          buffers.push_back(Buffer::ids({s.batch, rows}, places.segments));
        }
      }
    }
    void launchForward(AttentionTest &test, Buffers operands,
                       const Buffers &results,
                       const std::vector<int64_t> &integers,
                       const std::vector<double> &floats) {
      test.launch(buffers.empty() ? Kernel::Attention : Kernel::PackedAttention,
                  all(std::move(operands), results), integers, floats);
    }
    void launchBackward(AttentionTest &test, Buffers operands,
                        const Buffers &results,
                        const std::vector<int64_t> &integers,
                        const std::vector<double> &floats) {
      test.launch(buffers.empty() ? Kernel::AttentionGrad
                                  : Kernel::PackedAttentionGrad,
                  all(std::move(operands), results), integers, floats);
    }

  private:
    Buffers all(Buffers operands, const Buffers &results) {
      for (Buffer &buffer : buffers) {
        operands.push_back(&buffer);
      }
      operands.insert(operands.end(), results.begin(), results.end());
      return operands;
    }

    std::vector<Buffer> buffers;
  };

  /// Of a query that sees no key it is minus infinity.
  static void expectSums(const Buffer &lse, const Values &expected) {
    Values found = lse.values(), wanted = expected;
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      if (std::isinf(wanted[i])) {
        EXPECT_EQ(found[i], wanted[i]);
        found[i] = wanted[i] = 0;
      }
    }
    Buffer finite = lse;
    finite.set(found);
    expectClose(finite, wanted, 100);
  }

  /// Forward and backward with column slices of one buffer's stride.
  void compare(AttentionShape s) {
    const int64_t b = s.batch, n = s.sequence, m = s.keyRows(), d = s.dim;
    const int64_t width = (s.heads + 2 * s.kvHeads) * d;
    scalars.seed = 5;
    scalars.step = 3;
    application = 2;
    firstSample = 17;
    const int64_t name = 1234;
    s.dropoutKey = dropoutKey(scalars.seed, scalars.step, name, application);
    s.firstSample = firstSample;
    Buffer q = random({b, n, s.heads, d}, 1, width - s.heads * d);
    Buffer k = random({b, m, s.kvHeads, d}, 2, width - s.kvHeads * d);
    Buffer v = random({b, m, s.kvHeads, d}, 3, width - s.kvHeads * d);
    Buffer out = zeros({b, n, s.heads, d}, 3);
    Buffer lse = Buffer::zeros({b, s.heads, n});
    Places places(s);
    places.launchForward(*this, {&q, &k, &v}, {&out, &lse},
                         {s.causal, s.window, name, s.firstHead},
                         {s.scale, s.dropout, s.softcap});
    const auto expected =
        reference::attention(s, q.values(), k.values(), v.values());
    // Scores of magnitude up to about 10 carry some ten roundings each into
    // exp; sums over keys average them.
    expectClose(out, expected.out, 100);
    expectSums(lse, expected.lse);

    Buffer gradOut = random({b, n, s.heads, d}, 4, 5);
    Buffer gradQ = q, gradK = k, gradV = v;
    Buffer delta = Buffer::zeros({b, s.heads, n});
    places.launchBackward(*this, {&gradOut, &q, &k, &v},
                          {&out, &lse, &gradQ, &gradK, &gradV, &delta},
                          {s.causal, s.window, name, s.firstHead},
                          {s.scale, s.dropout, s.softcap});
    const auto grad = reference::attentionGrad(
        s, gradOut.values(), q.values(), k.values(), v.values(), out.values());
    // With one visible key the scores' gradient cancels to zero.
    const double terms = std::abs(
        *std::max_element(grad.v.begin(), grad.v.end(), [](double a, double b) {
          return std::abs(a) < std::abs(b);
        }));
    expectClose(gradQ, grad.q, 200, terms);
    expectClose(gradK, grad.k, 200, terms);
    expectClose(gradV, grad.v, 200);
  }
};
MEGA_FOR_EVERY_DEVICE_AND_TYPE(AttentionTest);

AttentionShape grouped(int64_t sequence) {
  return {.batch = 3,
          .sequence = sequence,
          .heads = 6,
          .kvHeads = 2,
          .dim = 12,
          .causal = true,
          .window = 0,
          .scale = 1 / std::sqrt(12.0)};
}

TEST_P(AttentionTest, CausalWithGroupedQueries) { compare(grouped(37)); }

TEST_P(AttentionTest, NotCausal) {
  AttentionShape shape = grouped(37);
  shape.causal = false;
  compare(shape);
}

TEST_P(AttentionTest, ManyBlocksCausal) {
  AttentionShape shape = grouped(301);
  shape.batch = 1;
  compare(shape);
}

TEST_P(AttentionTest, ManyBlocksNotCausal) {
  AttentionShape shape = grouped(301);
  shape.batch = 1;
  shape.causal = false;
  compare(shape);
}

TEST_P(AttentionTest, WindowShorterThanABlock) {
  AttentionShape shape = grouped(301);
  shape.batch = 1;
  shape.window = 5;
  compare(shape);
}

TEST_P(AttentionTest, WindowLongerThanABlock) {
  AttentionShape shape = grouped(301);
  shape.batch = 1;
  shape.window = 150;
  compare(shape);
}

TEST_P(AttentionTest, WindowWithoutCausalMask) {
  AttentionShape shape = grouped(301);
  shape.batch = 1;
  shape.causal = false;
  shape.window = 40;
  compare(shape);
}

TEST_P(AttentionTest, DropoutOfProbabilities) {
  AttentionShape shape = grouped(133);
  shape.batch = 2;
  shape.dropout = 0.2;
  compare(shape);
}

TEST_P(AttentionTest, DropoutInsideAWindow) {
  AttentionShape shape = grouped(161);
  shape.batch = 1;
  shape.dropout = 0.3;
  shape.window = 31;
  compare(shape);
}

/// The sharpest part of the tanh and its flat ends: scores have a spread of 1.
constexpr double kSoftcap = 0.8;

TEST_P(AttentionTest, SoftcapOfScores) {
  AttentionShape shape = grouped(161);
  shape.batch = 2;
  shape.softcap = kSoftcap;
  compare(shape);
  shape.causal = false;
  compare(shape);
}

TEST_P(AttentionTest, SoftcapInsideAWindowWithDropout) {
  AttentionShape shape = grouped(161);
  shape.batch = 1;
  shape.softcap = kSoftcap;
  shape.window = 31;
  compare(shape);
  shape.dropout = 0.3;
  compare(shape);
}

TEST_P(AttentionTest, EveryHeadSize) {
  for (int64_t dim : {1, 64, 128, 256, 300}) {
    compare({.batch = 1,
             .sequence = 65,
             .heads = 2,
             .kvHeads = 1,
             .dim = dim,
             .causal = true,
             .window = 0,
             .scale = 1 / std::sqrt(static_cast<double>(dim))});
  }
}

TEST_P(AttentionTest, LargestHeadSizeOfBf16) {
  // More rows of queries than a thread's scratch has sums for.
  AttentionShape shape = {.batch = 1,
                          .sequence = 150,
                          .heads = 2,
                          .kvHeads = 1,
                          .dim = kMaxBf16HeadDim,
                          .causal = true,
                          .window = 0,
                          .scale = 1 / std::sqrt(512.0)};
  compare(shape);
  shape.window = 29;
  shape.dropout = 0.2;
  shape.softcap = kSoftcap;
  compare(shape);
}

/// Documents of these lengths, one after another. A segment has the number of
/// its first token.
AttentionPlaces documents(const std::vector<int> &lengths) {
  AttentionPlaces places;
  int first = 0;
  for (const int length : lengths) {
    for (int position = 0; position < length; ++position) {
      places.positions.push_back(position);
      places.segments.push_back(first);
    }
    first += length;
  }
  return places;
}

/// Short and long documents, whose ends are at blocks' edges and elsewhere.
AttentionShape packed() {
  AttentionShape shape = grouped(301);
  shape.batch = 1;
  shape.queryPlaces = shape.keyPlaces = documents({1, 5, 122, 128, 44, 1});
  return shape;
}

TEST_P(AttentionTest, PackedDocuments) {
  AttentionShape shape = packed();
  compare(shape);
  shape.causal = false;
  compare(shape);
}

TEST_P(AttentionTest, RowsOfOneDocumentAndOfTokensThatAreDocuments) {
  AttentionShape shape = grouped(139);
  std::vector<int> lengths = {139, 138, 1};
  lengths.insert(lengths.end(), 139, 1);
  shape.queryPlaces = shape.keyPlaces = documents(lengths);
  compare(shape);
}

TEST_P(AttentionTest, WindowsSmallerAcrossAndLargerThanDocuments) {
  AttentionShape shape = packed();
  for (int64_t window : {3, 44, 150, 400}) {
    shape.window = window;
    compare(shape);
  }
  shape.causal = false;
  shape.window = 40;
  compare(shape);
}

TEST_P(AttentionTest, PackedWithSoftcapAndDropout) {
  AttentionShape shape = packed();
  shape.softcap = kSoftcap;
  compare(shape);
  shape.dropout = 0.3;
  compare(shape);
  shape.window = 31;
  compare(shape);
}

// Dropout counts places: of a row whose places are 0, 1, 2, ... they are rows,
// whatever documents it has.
TEST_P(AttentionTest, PlacesInOrderDropOutWhatRowsDo) {
  scalars.seed = 5;
  Buffer q = random({2, 301, 4, 8}, 1), gradOut = random({2, 301, 4, 8}, 2);
  Buffer k = random({2, 301, 2, 8}, 3), v = random({2, 301, 2, 8}, 4);
  const std::vector<double> floats = {0.3, 0.25, 0};
  std::vector<Values> expected;
  for (const bool packed : {false, true}) {
    Buffer out = q, lse = Buffer::zeros({2, 4, 301});
    Buffer gradQ = q, gradK = k, gradV = v, delta = lse;
    AttentionShape shape = grouped(301);
    shape.batch = 2;
    for (int row = 0; packed && row < 602; ++row) {
      shape.keyPlaces.positions.push_back(row % 301);
      shape.keyPlaces.segments.push_back(0);
    }
    shape.queryPlaces = shape.keyPlaces;
    Places places(shape);
    places.launchForward(*this, {&q, &k, &v}, {&out, &lse}, {1, 0, 7, 3},
                         floats);
    places.launchBackward(*this, {&gradOut, &q, &k, &v},
                          {&out, &lse, &gradQ, &gradK, &gradV, &delta},
                          {1, 0, 7, 3}, floats);
    std::vector<Values> found;
    for (Buffer *buffer : {&out, &lse, &gradQ, &gradK, &gradV}) {
      found.push_back(buffer->values());
    }
    if (packed) {
      EXPECT_EQ(found, expected);
    }
    expected = found;
  }
}

/// Queries and keys as two ranks of a ring have them: of other numbers, out of
/// order, and with queries and keys that nothing of the other side belongs to.
TEST_P(AttentionTest, PlacesOfQueriesAndKeysDiffer) {
  AttentionShape shape = grouped(150);
  shape.batch = 2;
  shape.keys = 333;
  for (int64_t i = 0; i < shape.batch * shape.sequence; ++i) {
    shape.queryPlaces.positions.push_back(static_cast<int>(i * 37 % 150));
    shape.queryPlaces.segments.push_back(static_cast<int>(i / 60 % 3));
  }
  for (int64_t j = 0; j < shape.batch * shape.keys; ++j) {
    shape.keyPlaces.positions.push_back(static_cast<int>(j * 101 % 170));
    shape.keyPlaces.segments.push_back(static_cast<int>(1 + j / 90 % 3));
  }
  compare(shape);
  shape.window = 25;
  shape.dropout = 0.2;
  compare(shape);
  shape.causal = false;
  shape.keys = 40;
  shape.keyPlaces.positions.resize(80);
  shape.keyPlaces.segments.resize(80);
  compare(shape);
}

TEST_P(AttentionTest, LargestPackedHeadSizeOfBf16) {
  AttentionShape shape = {.batch = 1,
                          .sequence = 150,
                          .heads = 2,
                          .kvHeads = 1,
                          .dim = kMaxBf16HeadDim,
                          .causal = true,
                          .window = 0,
                          .scale = 1 / std::sqrt(512.0)};
  shape.queryPlaces = shape.keyPlaces = documents({128, 1, 21});
  compare(shape);
}

/// Blocks in which no query sees a key are left out: what is in them, even if
/// it is no number, reaches nothing.
TEST_P(AttentionTest, BlocksWithoutAVisiblePairAreSkipped) {
  AttentionShape shape = {.batch = 1,
                          .sequence = 512,
                          .heads = 2,
                          .kvHeads = 1,
                          .dim = 8,
                          .causal = true,
                          .window = 0,
                          .scale = 0.5};
  // The third document is shorter than a block, and shares one.
  shape.queryPlaces = shape.keyPlaces = documents({256, 160, 96});
  Buffer q = random({1, 512, 2, 8}, 1), gradOut = random({1, 512, 2, 8}, 2);
  Buffer k = random({1, 512, 1, 8}, 3), v = random({1, 512, 1, 8}, 4);
  for (Buffer *buffer : {&q, &k, &v, &gradOut}) {
    Values values = buffer->values();
    std::fill_n(values.begin(), values.size() / 2, std::nan(""));
    buffer->set(values);
  }
  Buffer out = zeros({1, 512, 2, 8}), lse = Buffer::zeros({1, 2, 512});
  Buffer gradQ = q, gradK = k, gradV = v, delta = lse;
  Places places(shape);
  places.launchForward(*this, {&q, &k, &v}, {&out, &lse}, {1, 0, 0, 0},
                       {0.5, 0, 0});
  places.launchBackward(*this, {&gradOut, &q, &k, &v},
                        {&out, &lse, &gradQ, &gradK, &gradV, &delta},
                        {1, 0, 0, 0}, {0.5, 0, 0});
  for (Buffer *buffer : {&out, &gradQ, &gradK, &gradV}) {
    const Values values = buffer->values();
    EXPECT_TRUE(std::isnan(values.front()));
    for (size_t i = values.size() / 2; i < values.size(); ++i) {
      ASSERT_TRUE(std::isfinite(values[i]));
    }
  }
}

TEST_P(AttentionTest, OneToken) {
  AttentionShape shape = grouped(1);
  compare(shape);
}

TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  Buffer q = random({1, 200, 6, 12}, 1, 0, 30);
  Buffer k = random({1, 200, 2, 12}, 2, 0, 30);
  Buffer v = random({1, 200, 2, 12}, 3);
  Buffer out = zeros({1, 200, 6, 12}), lse = Buffer::zeros({1, 6, 200});
  launch(Kernel::Attention, {&q, &k, &v, &out, &lse}, {1, 0, 0, 0},
         {1.0, 0.0, 0.0});
  for (double value : out.values()) {
    ASSERT_TRUE(std::isfinite(value));
    ASSERT_LT(std::abs(value), 6);
  }
}

class RopeTest : public Conformance {};
MEGA_FOR_EVERY_DEVICE_AND_TYPE(RopeTest);

/// rope_table's numbers.
std::vector<double> numbers(double base, const RopeScaling &s) {
  return {base,
          s.factor,
          s.lowFrequency,
          s.highFrequency,
          s.originalPositions,
          s.betaFast,
          s.betaSlow,
          s.attentionFactor};
}

TEST_P(RopeTest, TableAndRotationMatch) {
  for (const RopeScaling &scaling :
       {RopeScaling{},
        RopeScaling{.kind = RopeScalingKind::Linear, .factor = 3},
        RopeScaling{.kind = RopeScalingKind::Llama3,
                    .factor = 8,
                    .originalPositions = 64},
        RopeScaling{.kind = RopeScalingKind::Yarn,
                    .factor = 4,
                    .originalPositions = 64,
                    .attentionFactor = 1.25}}) {
    Buffer table = Buffer::zeros({50, 12});
    const std::vector<double> floats = numbers(10000, scaling);
    launch(Kernel::RopeTable, {&table}, {static_cast<int64_t>(scaling.kind)},
           floats);
    expectClose(table, reference::ropeTable(50, 12, 10000, scaling), 1);
    Buffer x = random({3, 37, 6, 12}, 1, 24);
    Buffer y = zeros({3, 37, 6, 12}, 5);
    for (int64_t inverse : {0, 1}) {
      const Values expected =
          reference::rope(x.values(), table.values(), 37, 6, 12, inverse != 0);
      launch(Kernel::Rope, {&x, &table, &y}, {inverse});
      expectClose(y, expected, 3);
      Buffer inPlace = x;
      launch(Kernel::Rope, {&inPlace, &table, &inPlace}, {inverse});
      EXPECT_EQ(inPlace.values(), y.values());
    }
  }
}

TEST_P(RopeTest, RotatesByThePositionsOfRows) {
  Buffer table = Buffer::zeros({50, 12});
  launch(Kernel::RopeTable, {&table}, {0}, numbers(10000, {}));
  std::vector<int> positions(3 * 37);
  for (size_t row = 0; row < positions.size(); ++row) {
    positions[row] = static_cast<int>(row * 31 % 50);
  }
  Buffer ids = Buffer::ids({3, 37}, positions);
  Buffer x = random({3, 37, 6, 12}, 1, 24);
  Buffer y = zeros({3, 37, 6, 12}, 5);
  for (int64_t inverse : {0, 1}) {
    launch(Kernel::RopeAt, {&x, &table, &ids, &y}, {inverse});
    expectClose(y,
                reference::rope(x.values(), table.values(), positions, 6, 12,
                                inverse != 0),
                3);
    Buffer inPlace = x;
    launch(Kernel::RopeAt, {&inPlace, &table, &ids, &inPlace}, {inverse});
    EXPECT_EQ(inPlace.values(), y.values());
  }
}

} // namespace
