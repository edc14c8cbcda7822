//===- PiecesTest.cpp - Kernels on pieces of their tensors ----------------===//
//
// What ranks compute on their pieces, put together, is what one rank computes
// on the whole. Padding holds NaN, so that nothing can come of it unnoticed.
//
//===----------------------------------------------------------------------===//
#include "test/runtime/cpu/Conformance.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mega;
using reference::HeadShape;
using reference::Values;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// How many pieces, and rows of each.
struct Cut {
  int64_t pieces, rows;
};
/// Of 257 rows: padded to 258 and to 260, and with a piece of padding only.
constexpr Cut kCuts[] = {{2, 129}, {4, 65}, {3, 129}};
constexpr int64_t kRows = 257, kHidden = 24, kBatch = 3, kSequence = 36;
constexpr int64_t kTokens = kBatch * kSequence;

/// Rows [first, first + count) of the middle of [outer, rows, inner], NaN
/// beyond its end.
Values cut(const Values &whole, int64_t outer, int64_t inner, int64_t first,
           int64_t count) {
  const int64_t rows = static_cast<int64_t>(whole.size()) / (outer * inner);
  Values piece;
  for (int64_t i = 0; i < outer * count * inner; ++i) {
    const int64_t row = first + i / inner % count;
    const int64_t at = (i / (inner * count) * rows + row) * inner + i % inner;
    piece.push_back(row < rows ? whole[at] : kNaN);
  }
  return piece;
}

/// Puts rows into the whole where cut() took them from.
void paste(Values &whole, int64_t outer, int64_t inner, int64_t first,
           const Values &piece) {
  const int64_t rows = static_cast<int64_t>(whole.size()) / (outer * inner);
  const int64_t count = static_cast<int64_t>(piece.size()) / (outer * inner);
  for (int64_t i = 0; i < outer * count * inner; ++i) {
    const int64_t row = first + i / inner % count;
    if (row < rows) {
      whole[(i / (inner * count) * rows + row) * inner + i % inner] = piece[i];
    }
  }
}

Values plus(Values a, const Values &b) {
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] += b[i];
  }
  return a;
}

class PiecesTest : public Conformance {
protected:
  void SetUp() override {
    scalars.seed = 7;
    scalars.step = 11;
    application = 3;
    firstSample = 5;
  }

  /// Of T, with these elements.
  Buffer filled(std::initializer_list<int64_t> shape, const Values &values) {
    Buffer buffer = zeros(shape);
    buffer.set(values);
    return buffer;
  }

  std::vector<int> someIds() {
    std::vector<int> ids;
    for (int64_t i = 0; i < kTokens; ++i) {
      // The first and the last row, and those at the cuts, occur.
      constexpr int kEdges[] = {0, 64, 65, 128, 129, 194, 195, 256};
      ids.push_back(i % 3 == 0 ? kEdges[i / 3 % 8]
                               : static_cast<int>(i * i * 7 % kRows));
    }
    return ids;
  }
};
MEGA_FOR_EVERY_DEVICE_AND_TYPE(PiecesTest);

TEST_P(PiecesTest, EmbeddingsOfAllPiecesAddUp) {
  Buffer ids = Buffer::ids({kBatch, kSequence}, someIds());
  Buffer table = random({kRows, kHidden}, 1);
  Buffer whole = zeros({kBatch, kSequence, kHidden}, 3), out = whole;
  launch(Kernel::Embedding, {&ids, &table, &whole}, {0, kRows});
  for (const Cut &c : kCuts) {
    Values sum(kTokens * kHidden, 0.0);
    for (int64_t p = 0; p < c.pieces; ++p) {
      Buffer piece = filled({c.rows, kHidden}, cut(table.values(), 1, kHidden,
                                                   p * c.rows, c.rows));
      launch(Kernel::Embedding, {&ids, &piece, &out}, {p * c.rows, kRows});
      EXPECT_EQ(out.values(),
                reference::embedding(
                    someIds(),
                    cut(table.values(), 1, kHidden, p * c.rows,
                        std::clamp<int64_t>(kRows - p * c.rows, 0, c.rows)),
                    kHidden, p * c.rows));
      sum = plus(sum, out.values());
    }
    EXPECT_EQ(sum, whole.values()) << c.pieces << " pieces";
  }
}

TEST_P(PiecesTest, EmbeddingGradientsLieSideBySide) {
  Buffer ids = Buffer::ids({kBatch, kSequence}, someIds());
  Buffer gradOut = random({kBatch, kSequence, kHidden}, 1, 9);
  const Buffer before = Buffer::random({kRows, kHidden}, 2);
  Buffer whole = before;
  launch(Kernel::EmbeddingGrad, {&ids, &gradOut, &whole}, {0, kRows});
  for (const Cut &c : kCuts) {
    Values together(kRows * kHidden, kNaN);
    for (int64_t p = 0; p < c.pieces; ++p) {
      Buffer piece = Buffer::zeros({c.rows, kHidden});
      piece.set(cut(before.values(), 1, kHidden, p * c.rows, c.rows));
      launch(Kernel::EmbeddingGrad, {&ids, &gradOut, &piece},
             {p * c.rows, kRows});
      paste(together, 1, kHidden, p * c.rows, piece.values());
    }
    EXPECT_EQ(together, whole.values()) << c.pieces << " pieces";
  }
}

TEST_P(PiecesTest, PositionsFollowEachOther) {
  Buffer x = random({kBatch, kSequence, kHidden}, 1);
  Buffer table = random({40, kHidden}, 2);
  Buffer whole = zeros({kBatch, kSequence, kHidden});
  launch(Kernel::AddPositions, {&x, &table, &whole}, {0});
  Buffer gradWhole = Buffer::random({40, kHidden}, 3);
  const Values before = gradWhole.values();
  launch(Kernel::PositionsGrad, {&x, &gradWhole}, {0});
  for (int64_t pieces : {2, 4}) {
    const int64_t n = kSequence / pieces;
    Values together(kTokens * kHidden, kNaN);
    Buffer grad = Buffer::zeros({40, kHidden});
    grad.set(before);
    for (int64_t first = 0; first < kSequence; first += n) {
      Buffer piece = filled({kBatch, n, kHidden},
                            cut(x.values(), kBatch, kHidden, first, n));
      Buffer out = zeros({kBatch, n, kHidden}, 5);
      launch(Kernel::AddPositions, {&piece, &table, &out}, {first});
      paste(together, kBatch, kHidden, first, out.values());
      // Each touches its own rows of the table.
      launch(Kernel::PositionsGrad, {&piece, &grad}, {first});
    }
    EXPECT_EQ(together, whole.values()) << pieces << " pieces";
    EXPECT_EQ(grad.values(), gradWhole.values()) << pieces << " pieces";
  }
}

TEST_P(PiecesTest, DropoutMasksDoNotDependOnTheCut) {
  Buffer x = random({kBatch, kSequence, 60}, 1);
  Buffer whole = zeros({kBatch, kSequence, 60});
  launch(Kernel::Dropout, {&x, &whole}, {99, 0, 0}, {0.3});
  // Features begin at multiples of four and elsewhere: 30, 15, 12.
  for (const auto &[along, over] :
       {std::pair<int64_t, int64_t>(1, 2), {4, 1}, {2, 4}, {1, 5}, {3, 20}}) {
    const int64_t n = kSequence / along, f = 60 / over;
    Values together(kTokens * 60, kNaN);
    for (int64_t first = 0; first < kSequence; first += n) {
      Values rows = cut(x.values(), kBatch, 60, first, n);
      for (int64_t feature = 0; feature < 60; feature += f) {
        Buffer piece =
            filled({kBatch, n, f}, cut(rows, kBatch * n, 1, feature, f));
        launch(Kernel::Dropout, {&piece, &piece}, {99, first, feature}, {0.3});
        paste(rows, kBatch * n, 1, feature, piece.values());
      }
      paste(together, kBatch, 60, first, rows);
    }
    EXPECT_EQ(together, whole.values())
        << along << " pieces of the sequence, " << over << " of the features";
  }
}

TEST_P(PiecesTest, AttentionOfHeadsIsThatOfAllHeads) {
  const int64_t heads = 8, kvHeads = 4, dim = 12;
  Buffer q = random({2, 37, heads, dim}, 1),
         k = random({2, 37, kvHeads, dim}, 2);
  Buffer v = random({2, 37, kvHeads, dim}, 3), out = zeros({2, 37, heads, dim});
  Buffer gradOut = random({2, 37, heads, dim}, 4);
  Buffer gradQ = q, gradK = k, gradV = v;
  Buffer lse = Buffer::zeros({2, heads, 37}), delta = lse;
  const std::vector<double> floats = {0.3, 0.25, 0.0};
  launch(Kernel::Attention, {&q, &k, &v, &out, &lse}, {1, 0, 77, 0}, floats);
  launch(Kernel::AttentionGrad,
         {&gradOut, &q, &k, &v, &out, &lse, &gradQ, &gradK, &gradV, &delta},
         {1, 0, 77, 0}, floats);
  for (int64_t pieces : {2, 4}) {
    const int64_t h = heads / pieces, kv = kvHeads / pieces;
    Values outs(q.values().size(), kNaN), gradQs = outs;
    Values gradKs(k.values().size(), kNaN), gradVs = gradKs;
    for (int64_t p = 0; p < pieces; ++p) {
      const auto ofHeads = [&](const Buffer &whole, int64_t n) {
        return filled({2, 37, n, dim},
                      cut(whole.values(), 2 * 37, dim, p * n, n));
      };
      Buffer q1 = ofHeads(q, h), k1 = ofHeads(k, kv), v1 = ofHeads(v, kv);
      Buffer gradOut1 = ofHeads(gradOut, h), out1 = q1;
      Buffer gradQ1 = q1, gradK1 = k1, gradV1 = v1;
      Buffer lse1 = Buffer::zeros({2, h, 37}), delta1 = lse1;
      launch(Kernel::Attention, {&q1, &k1, &v1, &out1, &lse1},
             {1, 0, 77, p * h}, floats);
      launch(Kernel::AttentionGrad,
             {&gradOut1, &q1, &k1, &v1, &out1, &lse1, &gradQ1, &gradK1, &gradV1,
              &delta1},
             {1, 0, 77, p * h}, floats);
      paste(outs, 2 * 37, dim, p * h, out1.values());
      paste(gradQs, 2 * 37, dim, p * h, gradQ1.values());
      paste(gradKs, 2 * 37, dim, p * kv, gradK1.values());
      paste(gradVs, 2 * 37, dim, p * kv, gradV1.values());
    }
    EXPECT_EQ(outs, out.values()) << pieces << " pieces";
    EXPECT_EQ(gradQs, gradQ.values()) << pieces << " pieces";
    EXPECT_EQ(gradKs, gradK.values()) << pieces << " pieces";
    EXPECT_EQ(gradVs, gradV.values()) << pieces << " pieces";
  }
}

TEST_P(PiecesTest, HeadsOfPaddedShardsAreThatOfTheVocabulary) {
  const HeadShape s = {.tokens = kTokens,
                       .hidden = kHidden,
                       .vocabulary = kRows,
                       .ignore = -100,
                       .firstRow = 0,
                       .softcap = 3};
  std::vector<int> ids = someIds();
  for (size_t t = 3; t < ids.size(); t += 7) {
    ids[t] = s.ignore;
  }
  Buffer x = random({kBatch, kSequence, kHidden}, 1);
  Buffer w = random({kRows, kHidden}, 2, 0, 0.3);
  Buffer labels = Buffer::ids({kBatch, kSequence}, ids);
  const auto expected = reference::headStats(s, x.values(), w.values(), ids);
  Buffer gradSum = Buffer::random({kBatch, kSequence}, 3);
  Buffer gradTarget = Buffer::random({kBatch, kSequence}, 4);
  Buffer gradX = zeros({kBatch, kSequence, kHidden}, 7);
  const Values before = Buffer::random({kRows, kHidden}, 5).values();
  auto grad =
      reference::headStatsGrad(s, x.values(), w.values(), ids, expected.max,
                               gradSum.values(), gradTarget.values());
  for (const Cut &c : kCuts) {
    std::vector<Values> maxes, sums;
    Values global(kTokens, -INFINITY), target(kTokens, 0.0), total = target;
    Values gradXs(kTokens * kHidden, 0.0), gradWs(kRows * kHidden, kNaN);
    Buffer max = Buffer::zeros({kBatch, kSequence}), sum = max, hit = max;
    Buffer scratch = Buffer::zeros({headScratch(kTokens, c.rows)});
    Buffer gradScratch = Buffer::zeros(
        {headGradScratch(kTokens, c.rows, kHidden, GetParam().type)});
    const auto shard = [&](int64_t p) {
      return filled({c.rows, kHidden},
                    cut(w.values(), 1, kHidden, p * c.rows, c.rows));
    };
    for (int64_t p = 0; p < c.pieces; ++p) {
      Buffer piece = shard(p);
      launch(Kernel::HeadStats,
             {&x, &piece, &labels, &max, &sum, &hit, &scratch},
             {s.ignore, p * c.rows, kRows}, {s.softcap});
      HeadShape local = s;
      local.vocabulary = c.rows;
      local.firstRow = p * c.rows;
      local.rows = kRows;
      const auto alone =
          reference::headStats(local, x.values(), piece.values(), ids);
      if (p * c.rows >= kRows) {
        EXPECT_EQ(max.values(), Values(kTokens, -INFINITY));
        EXPECT_EQ(sum.values(), Values(kTokens, 0.0));
        EXPECT_EQ(hit.values(), Values(kTokens, 0.0));
      } else {
        expectClose(max, alone.max, 32);
        expectClose(sum, alone.sum, 128);
      }
      maxes.push_back(max.values());
      sums.push_back(sum.values());
      target = plus(target, hit.values());
      for (int64_t t = 0; t < kTokens; ++t) {
        global[t] = std::max(global[t], maxes.back()[t]);
      }
    }
    Buffer globalMax = Buffer::zeros({kBatch, kSequence});
    globalMax.set(global);
    for (int64_t p = 0; p < c.pieces; ++p) {
      max.set(maxes[p]);
      sum.set(sums[p]);
      Buffer localGrad = Buffer::zeros({kBatch, kSequence});
      launch(Kernel::HeadRescale, {&sum, &max, &globalMax, &sum});
      launch(Kernel::HeadRescaleGrad, {&gradSum, &max, &globalMax, &localGrad});
      if (p * c.rows >= kRows) {
        EXPECT_EQ(sum.values(), Values(kTokens, 0.0));
        EXPECT_EQ(localGrad.values(), Values(kTokens, 0.0));
      }
      total = plus(total, sum.values());
      Buffer piece = shard(p), gradW = Buffer::zeros({c.rows, kHidden});
      // Padding is a number here: nothing is added to it.
      Values start = cut(before, 1, kHidden, p * c.rows, c.rows);
      std::replace_if(
          start.begin(), start.end(), [](double v) { return std::isnan(v); },
          3.0);
      gradW.set(start);
      launch(Kernel::HeadStatsGrad,
             {&x, &piece, &labels, &max, &localGrad, &gradTarget, &gradX,
              &gradW, &gradScratch},
             {s.ignore, p * c.rows, kRows}, {s.softcap});
      gradXs = plus(gradXs, gradX.values());
      const Values after = gradW.values();
      for (int64_t i = std::max<int64_t>(0, kRows - p * c.rows) * kHidden;
           i < c.rows * kHidden; ++i) {
        ASSERT_EQ(after[i], 3.0);
      }
      paste(gradWs, 1, kHidden, p * c.rows, after);
    }
    sum.set(total);
    hit.set(target);
    expectClose(globalMax, expected.max, 32);
    expectClose(hit, expected.target, 32);
    expectClose(sum, expected.sum, 128);
    // Results of T are rounded once per piece.
    Buffer together = Buffer::zeros({kTokens * kHidden});
    together.set(gradXs);
    const double rounded = GetParam().type == DataType::F32 ? 0 : 0x1p16;
    expectClose(together, grad.x, 128 + rounded * 2);
    together = Buffer::zeros({kRows * kHidden});
    together.set(gradWs);
    expectClose(together, plus(grad.w, before), 128);
  }
}

} // namespace
