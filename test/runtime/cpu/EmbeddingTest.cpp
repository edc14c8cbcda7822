#include "test/runtime/cpu/Conformance.h"

using namespace mega;
using reference::Values;

namespace {

class EmbeddingTest : public Conformance {
protected:
  /// Every id occurs often, so the order of the sums matters.
  std::vector<int> someIds() {
    std::vector<int> ids;
    for (int i = 0; i < 3 * 37; ++i) {
      ids.push_back(i * i % 11);
    }
    return ids;
  }
};
MEGA_FOR_EVERY_DEVICE_AND_TYPE(EmbeddingTest);

Values plus(Values a, const Values &b) {
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] += b[i];
  }
  return a;
}

TEST_P(EmbeddingTest, GathersRowsOfTheTable) {
  Buffer ids = Buffer::ids({3, 37}, someIds());
  Buffer table = random({13, 72}, 1);
  Buffer out = zeros({3, 37, 72}, 9);
  launch(Kernel::Embedding, {&ids, &table, &out}, {0, 13});
  EXPECT_EQ(out.values(), reference::embedding(someIds(), table.values(), 72));
}

TEST_P(EmbeddingTest, GradientAddsUpRepeatedTokens) {
  Buffer ids = Buffer::ids({3, 37}, someIds());
  Buffer gradOut = random({3, 37, 72}, 1, 9);
  Buffer gradTable = Buffer::random({13, 72}, 2);
  const Values expected =
      plus(reference::embeddingGrad(someIds(), gradOut.values(), 13, 72),
           gradTable.values());
  launch(Kernel::EmbeddingGrad, {&ids, &gradOut, &gradTable}, {0, 13});
  // At most 40 tokens of one id.
  expectClose(gradTable, expected, 40);
}

TEST_P(EmbeddingTest, AddsPositionsInPlaceAndNot) {
  Buffer x = random({3, 37, 72}, 1, 4);
  Buffer table = random({50, 72}, 2);
  Buffer out = zeros({3, 37, 72}, 7);
  const Values expected =
      reference::addPositions(x.values(), table.values(), 37, 72);
  launch(Kernel::AddPositions, {&x, &table, &out}, {0});
  expectClose(out, expected, 1);
  launch(Kernel::AddPositions, {&x, &table, &x}, {0});
  expectClose(x, expected, 1);
}

TEST_P(EmbeddingTest, AddsTheRowsOfPositions) {
  Buffer x = random({3, 37, 72}, 1, 4);
  Buffer table = random({50, 72}, 2);
  Buffer positions = Buffer::ids({3, 37}, someIds());
  Buffer out = zeros({3, 37, 72}, 7);
  const Values expected =
      plus(x.values(), reference::embedding(someIds(), table.values(), 72));
  launch(Kernel::AddPositionsAt, {&x, &table, &positions, &out});
  expectClose(out, expected, 1);
  launch(Kernel::AddPositionsAt, {&x, &table, &positions, &x});
  expectClose(x, expected, 1);
}

TEST_P(EmbeddingTest, GradientAddsUpRepeatedPositions) {
  Buffer positions = Buffer::ids({3, 37}, someIds());
  Buffer gradOut = random({3, 37, 72}, 1, 9);
  Buffer gradTable = Buffer::random({13, 72}, 2);
  const Values expected =
      plus(reference::embeddingGrad(someIds(), gradOut.values(), 13, 72),
           gradTable.values());
  launch(Kernel::PositionsGradAt, {&positions, &gradOut, &gradTable});
  expectClose(gradTable, expected, 40);
}

TEST_P(EmbeddingTest, PositionGradientSumsOverTheBatch) {
  Buffer gradOut = random({3, 37, 72}, 1, 9);
  Buffer gradTable = Buffer::random({50, 72}, 2);
  const Values expected =
      plus(reference::positionsGrad(gradOut.values(), 37, 72, 50),
           gradTable.values());
  launch(Kernel::PositionsGrad, {&gradOut, &gradTable}, {0});
  expectClose(gradTable, expected, 3);
}

} // namespace
