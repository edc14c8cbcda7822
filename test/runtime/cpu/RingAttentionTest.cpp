//===- RingAttentionTest.cpp - Attention to the keys of all ranks ---------===//
//
// Ranks are threads, or over Gloo. Every case runs on whole rows in double
// precision and in pieces on the ranks, forward and backward; heads may be cut
// over tp too, one part after another.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/ThreadPool.h"
#include "runtime/cpu/CpuKernels.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/plan/RingSteps.h"
#include "test/runtime/comm/Ranks.h"
#include "test/runtime/reference/Reference.h"
#include "test/runtime/telemetry/CountedNew.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

using namespace mega;
using reference::AttentionPlaces;
using reference::AttentionShape;
using reference::Values;
using test::Backend;

namespace {

constexpr int64_t kName = 1234, kApplication = 2, kFirstSample = 17;

StepScalars scalars() {
  StepScalars s;
  s.seed = 5;
  s.step = 3;
  return s;
}

/// A buffer whose rows are a few elements apart.
struct Tensor {
  BufferType type;
  std::vector<std::byte> bytes;

  Tensor(DataType element, std::initializer_list<int64_t> shape,
         int64_t gap = 0)
      : type(element, shape) {
    type.rowStride += gap;
    bytes.resize(static_cast<size_t>(type.extentBytes()), std::byte{0xFF});
  }
  View view() { return View(type, bytes.data()); }
  double get(int64_t row, int64_t i) {
    return type.type == DataType::F32 ? double{view().row<float>(row)[i]}
                                      : static_cast<double>(static_cast<float>(
                                            view().row<BFloat16>(row)[i]));
  }
  void set(int64_t row, int64_t i, double value) {
    if (type.type == DataType::F32) {
      view().row<float>(row)[i] = static_cast<float>(value);
    } else if (type.type == DataType::BF16) {
      view().row<BFloat16>(row)[i] = BFloat16(static_cast<float>(value));
    } else {
      view().row<int32_t>(row)[i] = static_cast<int32_t>(value);
    }
  }
};

struct Problem {
  /// Of the whole, in the order of the data.
  AttentionShape shape;
  SequenceOrder order = SequenceOrder::Contiguous;
  DataType type = DataType::F32;
  /// Parts that the heads are cut into.
  int64_t tp = 1;
  Backend backend = Backend::InProcess;
  int threads = 2;
};

/// Values of whole tensors, by rows of [batch, sequence].
struct Whole {
  int64_t rowSize;
  Values values;
};

Whole random(const Problem &p, int64_t heads, unsigned seed) {
  const AttentionShape &s = p.shape;
  Whole whole{heads * s.dim, Values(s.batch * s.sequence * heads * s.dim)};
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  for (double &value : whole.values) {
    const auto single = static_cast<float>(normal(generator));
    value = p.type == DataType::F32
                ? double{single}
                : static_cast<double>(static_cast<float>(BFloat16(single)));
  }
  return whole;
}

struct Results {
  Values out, lse, gradQ, gradK, gradV;
};

/// body(row of the whole, row of the piece) for the rows of a rank's piece.
template <typename Body>
void forRowsOf(const AttentionShape &s, const SequencePiece &piece,
               Body &&body) {
  int64_t local = 0;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (const SequenceRun &run : piece) {
      for (int64_t i = run.begin; i < run.end(); ++i) {
        body(b * s.sequence + i, local++);
      }
    }
  }
}

Ring ringOf(const Problem &p, int64_t ranks) {
  return {ranks, p.shape.sequence, p.order, p.shape.causal, p.shape.window};
}

/// What the ranks compute from the pieces of these, put together.
Results onRanks(const Problem &p, int ranks, const Whole &q, const Whole &k,
                const Whole &v, const Whole &gradOut) {
  const AttentionShape &s = p.shape;
  const int64_t rows = s.sequence / ranks, heads = s.heads / p.tp;
  const int64_t kvHeads = s.kvHeads / p.tp, dim = s.dim;
  const Ring ring = ringOf(p, ranks);
  Results all = {q.values, Values(s.batch * s.heads * s.sequence), q.values,
                 k.values, v.values};
  for (int64_t part = 0; part < p.tp; ++part) {
    test::runRanks(p.backend, ranks, [&](test::RankContext &ctx) {
      const SequencePiece piece = ring.pieceOf(ctx.rank);
      const auto cut = [&](const Whole &whole, int64_t count, int64_t gap) {
        Tensor tensor(p.type, {s.batch, rows, count, dim}, gap);
        forRowsOf(s, piece, [&](int64_t from, int64_t to) {
          for (int64_t i = 0; i < count * dim; ++i) {
            tensor.set(
                to, i,
                whole.values[from * whole.rowSize + part * count * dim + i]);
          }
        });
        return tensor;
      };
      const auto join = [&](Tensor &tensor, Values &whole, int64_t count) {
        forRowsOf(s, piece, [&](int64_t to, int64_t from) {
          for (int64_t i = 0; i < count * dim; ++i) {
            whole[(to * p.tp + part) * count * dim + i] = tensor.get(from, i);
          }
        });
      };
      const auto places = [&](const std::vector<int> &whole, bool isPiece) {
        Tensor tensor(DataType::I32, {s.batch, isPiece ? rows : s.sequence});
        const SequencePiece of =
            isPiece ? piece : SequencePiece{{{{0, s.sequence}}}, 1};
        forRowsOf(s, of, [&](int64_t from, int64_t to) {
          tensor.view().as<int32_t>()[to] = whole[from];
        });
        return tensor;
      };
      Tensor queries = cut(q, heads, 3), keys = cut(k, kvHeads, 8);
      Tensor values = cut(v, kvHeads, 8), gradients = cut(gradOut, heads, 0);
      std::vector<Tensor> where;
      for (const auto &[list, isPiece] :
           {std::pair(&s.queryPlaces.positions, true),
            {&s.queryPlaces.segments, true},
            {&s.keyPlaces.positions, false},
            {&s.keyPlaces.segments, false}}) {
        where.push_back(places(*list, isPiece));
      }
      Tensor out(p.type, {s.batch, rows, heads, dim}, 5);
      Tensor lse(DataType::F32, {s.batch, heads, rows});
      Tensor exchange(p.type, {ringScratch(keys.type, ranks)});
      Tensor sums(DataType::F32, {ringSums(queries.type)});
      Tensor gradSums(DataType::F32,
                      {ringGradSums(queries.type, keys.type, ranks)});
      Tensor gradQ(p.type, {s.batch, rows, heads, dim}, 2);
      Tensor gradK(p.type, {s.batch, rows, kvHeads, dim}, 7);
      Tensor gradV(p.type, {s.batch, rows, kvHeads, dim}, 7);

      ThreadPool pool(p.threads);
      const StepScalars step = scalars();
      const GroupMember members[] = {
          {}, {ranks == 1 ? nullptr : &ctx[0], ctx.rank, int64_t{ranks}}};
      RankGroups groups{members, Status::ok(), {}};
      const KernelContext context{pool, step, kApplication, kFirstSample,
                                  &groups};
      const std::vector<int64_t> integers = {
          1,           static_cast<int64_t>(p.order), s.causal, s.window, kName,
          part * heads};
      const std::vector<double> floats = {s.scale, s.dropout, s.softcap};
      const auto launch = [&](Kernel kernel, const std::vector<View> &views) {
        const std::vector<BufferType> types(views.begin(), views.end());
        EXPECT_OK(checkLaunch(kernel, {types, integers, floats}));
        // Warm, then in its steady state.
        int64_t before = 0;
        for (int i = 0; i < 2; ++i) {
          if (p.backend == Backend::InProcess) {
            EXPECT_OK(ctx[0].barrier());
            before = test::allocations();
            EXPECT_OK(ctx[0].barrier());
          }
          cpuKernel(kernel)(context, {views, integers, floats});
        }
        if (p.backend == Backend::InProcess) {
          EXPECT_OK(ctx[0].barrier());
          EXPECT_EQ(test::allocations(), before);
          EXPECT_OK(ctx[0].barrier());
        }
        EXPECT_OK(copy(groups.failure));
      };
      launch(Kernel::RingAttention,
             {queries.view(), keys.view(), values.view(), where[0].view(),
              where[1].view(), where[2].view(), where[3].view(), out.view(),
              lse.view(), exchange.view(), sums.view()});
      launch(Kernel::RingAttentionGrad,
             {gradients.view(), queries.view(), keys.view(), values.view(),
              where[0].view(), where[1].view(), where[2].view(),
              where[3].view(), out.view(), lse.view(), gradQ.view(),
              gradK.view(), gradV.view(), exchange.view(), gradSums.view()});

      join(out, all.out, heads);
      join(gradQ, all.gradQ, heads);
      join(gradK, all.gradK, kvHeads);
      join(gradV, all.gradV, kvHeads);
      forRowsOf(s, piece, [&](int64_t to, int64_t from) {
        const int64_t b = to / s.sequence;
        for (int64_t h = 0; h < heads; ++h) {
          all.lse[(b * s.heads + part * heads + h) * s.sequence +
                  to % s.sequence] =
              lse.view().as<float>()[(b * heads + h) * rows + from % rows];
        }
      });
    });
  }
  return all;
}

double largest(const Values &values) {
  double most = 0;
  for (const double value : values) {
    most = std::max(most, std::abs(value));
  }
  return most;
}

/// As expectClose of Conformance.h.
void expectClose(const std::string &what, const Values &actual,
                 const Values &expected, DataType type, double roundings,
                 double scale) {
  ASSERT_EQ(actual.size(), expected.size());
  const double stored = type == DataType::BF16 ? 0x1p-8 : 0;
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isinf(expected[i])) {
      EXPECT_EQ(actual[i], expected[i]) << what << ' ' << i;
      continue;
    }
    const double error =
        std::abs(actual[i] - expected[i]) - stored * std::abs(expected[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  EXPECT_LE(worst, roundings * 0x1p-24 * scale) << what;
}

double largestFinite(const Values &values) {
  Values finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  return largest(finite);
}

void compare(Problem p, int ranks) {
  AttentionShape &s = p.shape;
  SCOPED_TRACE(fmt::format(
      "{} ranks, order {}, {}, causal {}, window {}, dropout {}, softcap {}",
      ranks, static_cast<int>(p.order), name(p.type), s.causal, s.window,
      s.dropout, s.softcap));
  s.dropoutKey =
      dropoutKey(scalars().seed, scalars().step, kName, kApplication);
  s.firstSample = kFirstSample;
  const Whole q = random(p, s.heads, 1), k = random(p, s.kvHeads, 2),
              v = random(p, s.kvHeads, 3), gradOut = random(p, s.heads, 4);
  const Results found = onRanks(p, ranks, q, k, v, gradOut);
  const auto expected = reference::attention(s, q.values, k.values, v.values);
  // As of one rank (AttentionTest).
  expectClose("out", found.out, expected.out, p.type, 100,
              largest(expected.out));
  expectClose("lse", found.lse, expected.lse, DataType::F32, 100,
              largestFinite(expected.lse));
  const auto grad = reference::attentionGrad(s, gradOut.values, q.values,
                                             k.values, v.values, found.out);
  const double terms = largest(grad.v);
  expectClose("grad_q", found.gradQ, grad.q, p.type, 200, terms);
  expectClose("grad_k", found.gradK, grad.k, p.type, 200, terms);
  expectClose("grad_v", found.gradV, grad.v, p.type, 200, terms);
}

/// Rows of documents of these lengths, over and over. A segment has the number
/// of its first token.
AttentionPlaces documents(int64_t batch, int64_t sequence,
                          const std::vector<int64_t> &lengths) {
  AttentionPlaces places;
  size_t next = 0;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t begin = 0; begin < sequence;) {
      const int64_t length =
          std::min(sequence - begin, lengths[next++ % lengths.size()]);
      for (int64_t i = 0; i < length; ++i) {
        places.positions.push_back(static_cast<int>(i));
        places.segments.push_back(static_cast<int>(begin));
      }
      begin += length;
    }
  }
  return places;
}

/// The tokens of every row in another order.
AttentionPlaces shuffled(const AttentionPlaces &places, int64_t sequence) {
  AttentionPlaces result = places;
  std::mt19937 generator(9);
  std::vector<int64_t> order(static_cast<size_t>(sequence));
  for (size_t row = 0; row < places.positions.size(); row += order.size()) {
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = static_cast<int64_t>(row + i);
    }
    std::shuffle(order.begin(), order.end(), generator);
    for (size_t i = 0; i < order.size(); ++i) {
      result.positions[row + i] = places.positions[order[i]];
      result.segments[row + i] = places.segments[order[i]];
    }
  }
  return result;
}

/// Chunks of six tokens on four ranks in zigzag order.
Problem small(SequenceOrder order, const std::vector<int64_t> &lengths = {48}) {
  Problem p{.shape = {.batch = 2,
                      .sequence = 48,
                      .heads = 6,
                      .kvHeads = 2,
                      .dim = 5,
                      .causal = true,
                      .window = 0,
                      .scale = 1 / std::sqrt(5.0)},
            .order = order};
  AttentionPlaces places = documents(2, 48, lengths);
  if (order == SequenceOrder::Balanced) {
    places = shuffled(places, 48);
  }
  p.shape.queryPlaces = p.shape.keyPlaces = places;
  return p;
}

constexpr SequenceOrder kOrders[] = {
    SequenceOrder::Contiguous, SequenceOrder::Zigzag, SequenceOrder::Balanced};

template <typename Body> void forOrdersAndRanks(Body &&body) {
  for (const SequenceOrder order : kOrders) {
    for (const int ranks : {1, 2, 3, 4}) {
      body(order, ranks);
    }
  }
}

class RingAttention : public testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Types, RingAttention,
                         testing::Values(DataType::F32, DataType::BF16),
                         [](const auto &info) {
                           return std::string(name(info.param));
                         });

TEST_P(RingAttention, SeesTheKeysOfAllRanks) {
  forOrdersAndRanks([](SequenceOrder order, int ranks) {
    Problem p = small(order);
    p.type = GetParam();
    compare(p, ranks);
    p.shape.causal = false;
    compare(p, ranks);
  });
}

TEST_P(RingAttention, OfDocuments) {
  forOrdersAndRanks([](SequenceOrder order, int ranks) {
    Problem p = small(order, {5, 17, 1, 11, 20});
    p.type = GetParam();
    compare(p, ranks);
    p.shape.causal = false;
    compare(p, ranks);
  });
}

// Smaller than a chunk, across chunks, larger than the sequence.
TEST_P(RingAttention, WindowsOfEverySize) {
  forOrdersAndRanks([](SequenceOrder order, int ranks) {
    for (const int64_t window : {1, 4, 13, 100}) {
      for (const bool causal : {true, false}) {
        Problem p = small(order, {30, 18, 48});
        p.type = GetParam();
        p.shape.causal = causal;
        p.shape.window = window;
        compare(p, ranks);
      }
    }
  });
}

TEST_P(RingAttention, DropsOutByPlacesAndHeads) {
  forOrdersAndRanks([](SequenceOrder order, int ranks) {
    Problem p = small(order, {30, 18});
    p.type = GetParam();
    p.shape.dropout = 0.3;
    compare(p, ranks);
    p.tp = 2;
    p.shape.window = 7;
    compare(p, ranks);
  });
}

TEST_P(RingAttention, SoftcapOfScores) {
  forOrdersAndRanks([](SequenceOrder order, int ranks) {
    Problem p = small(order, {21, 27});
    p.type = GetParam();
    p.shape.softcap = 0.8;
    compare(p, ranks);
  });
}

// Chunks of more than one block, of other lengths than blocks have.
TEST_P(RingAttention, ChunksOfManyBlocks) {
  for (const SequenceOrder order : kOrders) {
    Problem p = small(order);
    p.type = GetParam();
    AttentionShape &s = p.shape;
    s.batch = 1;
    s.sequence = 1064;
    s.heads = 2;
    s.kvHeads = 1;
    AttentionPlaces places = documents(1, 1064, {900, 164});
    if (order == SequenceOrder::Balanced) {
      places = shuffled(places, 1064);
    }
    s.queryPlaces = s.keyPlaces = places;
    compare(p, 2);
    compare(p, 4);
    s.window = 300;
    s.dropout = 0.2;
    compare(p, 4);
  }
}

// A rank whose documents nobody else has anything of; queries that see nothing
// at all: they have no key of their segment; and such that see no own key.
TEST_P(RingAttention, RanksThatSeeNothingOfOthers) {
  for (const SequenceOrder order :
       {SequenceOrder::Contiguous, SequenceOrder::Balanced}) {
    Problem p = small(SequenceOrder::Contiguous, {12, 12, 24});
    p.order = order;
    p.type = GetParam();
    compare(p, 4);
    for (size_t i = 12; i < 24; ++i) {
      p.shape.queryPlaces.segments[i] = 1000;
    }
    compare(p, 4);
    // Only the keys of the rank before, which come in the last step.
    for (size_t i = 12; i < 24; ++i) {
      p.shape.queryPlaces.segments[i] = 0;
      p.shape.queryPlaces.positions[i] = 11;
    }
    compare(p, 4);
  }
}

TEST_P(RingAttention, OverGloo) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "Gloo is not built for the thread sanitizer";
#endif
  for (const SequenceOrder order : kOrders) {
    Problem p = small(order, {30, 18});
    p.type = GetParam();
    p.backend = Backend::Gloo;
    p.shape.dropout = 0.3;
    compare(p, 3);
  }
}

TEST_P(RingAttention, HasTheSameBitsForAnyNumberOfThreads) {
  Problem p = small(SequenceOrder::Zigzag, {30, 18});
  p.type = GetParam();
  p.shape.dropout = 0.3;
  const Whole q = random(p, 6, 1), k = random(p, 2, 2), v = random(p, 2, 3),
              gradOut = random(p, 6, 4);
  p.threads = 1;
  const Results one = onRanks(p, 3, q, k, v, gradOut);
  for (const int threads : {2, 5}) {
    p.threads = threads;
    const Results more = onRanks(p, 3, q, k, v, gradOut);
    EXPECT_EQ(more.out, one.out);
    EXPECT_EQ(more.lse, one.lse);
    EXPECT_EQ(more.gradQ, one.gradQ);
    EXPECT_EQ(more.gradK, one.gradK);
    EXPECT_EQ(more.gradV, one.gradV);
  }
}

// What is not seen is not sent: keys that are no numbers reach nobody who does
// not see them.
TEST_P(RingAttention, LeavesOutWhatNobodySees) {
  Problem p = small(SequenceOrder::Zigzag);
  p.type = GetParam();
  const Whole q = random(p, 6, 1), gradOut = random(p, 6, 4);
  Whole k = random(p, 2, 2), v = random(p, 2, 3);
  for (Whole *whole : {&k, &v}) {
    for (int64_t row = 0; row < 96; ++row) {
      if (row % 48 >= 42) {
        std::fill_n(whole->values.begin() + row * whole->rowSize,
                    whole->rowSize, std::nan(""));
      }
    }
  }
  const Results found = onRanks(p, 4, q, k, v, gradOut);
  // The others see none of the last chunk; its owner has it in a block.
  for (int64_t row = 0; row < 96; ++row) {
    const bool owner = row % 48 < 6 || row % 48 >= 42;
    for (int64_t i = 0; i < q.rowSize; ++i) {
      ASSERT_TRUE(owner || std::isfinite(found.out[row * q.rowSize + i]))
          << row;
      ASSERT_TRUE(owner || std::isfinite(found.gradQ[row * q.rowSize + i]))
          << row;
    }
  }
}

// The first error stays, nothing hangs, and what was posted is waited for.
TEST(RingAttentionFailure, EndsOnAllRanks) {
  test::runRanks(Backend::InProcess, 3, [&](test::RankContext &ctx) {
    const int64_t rows = 4;
    Tensor q(DataType::F32, {1, rows, 2, 4}), k = q, v = q, out = q, gradQ = q;
    Tensor gradK = q, gradV = q, gradOut = q;
    Tensor lse(DataType::F32, {1, 2, rows});
    Tensor own(DataType::I32, {1, rows}), all(DataType::I32, {1, 3 * rows});
    for (Tensor *tensor : {&q, &k, &v, &out, &lse, &own, &all, &gradOut}) {
      std::fill(tensor->bytes.begin(), tensor->bytes.end(), std::byte{0});
    }
    Tensor exchange(DataType::F32, {ringScratch(k.type, 3)});
    Tensor sums(DataType::F32, {ringSums(q.type)});
    Tensor gradSums(DataType::F32, {ringGradSums(q.type, k.type, 3)});
    ThreadPool pool(1);
    const StepScalars step;
    const GroupMember members[] = {{&ctx[0], ctx.rank, 3}};
    RankGroups groups{members, Status::ok(), {}};
    const KernelContext context{pool, step, 0, 0, &groups};
    const std::vector<int64_t> integers = {0, 2, 0, 0, 1, 0};
    const std::vector<double> floats = {1, 0, 0};
    if (ctx.rank == 1) {
      ctx.abortAll(Status(Code::Unavailable, "a rank is gone"));
    }
    const std::vector<View> forward = {q.view(),        k.view(),   v.view(),
                                       own.view(),      own.view(), all.view(),
                                       all.view(),      out.view(), lse.view(),
                                       exchange.view(), sums.view()};
    cpuKernel(Kernel::RingAttention)(context, {forward, integers, floats});
    EXPECT_EQ(groups.failure.message(), "a rank is gone");
    const std::vector<View> backward = {
        gradOut.view(), q.view(),        k.view(),       v.view(),
        own.view(),     own.view(),      all.view(),     all.view(),
        out.view(),     lse.view(),      gradQ.view(),   gradK.view(),
        gradV.view(),   exchange.view(), gradSums.view()};
    cpuKernel(Kernel::RingAttentionGrad)(context, {backward, integers, floats});
    EXPECT_EQ(groups.failure.message(), "a rank is gone");
  });
}

} // namespace
