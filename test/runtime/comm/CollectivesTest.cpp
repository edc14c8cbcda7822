// What every collective computes, to the bit, on every implementation.
#include "test/runtime/Exhaustive.h"
#include "test/runtime/comm/Ranks.h"

#include <cmath>
#include <limits>
#include <span>

using namespace mega;
using namespace mega::test;

namespace {

template <typename T> T combine(T a, T b, Reduction reduction) {
  switch (reduction) {
  case Reduction::Sum:
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) +
                            static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  case Reduction::Max:
    return b > a ? b : a;
  case Reduction::Min:
    return b < a ? b : a;
  case Reduction::Or:
    if constexpr (std::is_integral_v<T>) {
      return a | b;
    }
  }
  return a;
}

/// Element `index` reduced over all ranks, in their order.
template <typename T>
T reduced(uint64_t seed, int ranks, int64_t index, Reduction reduction) {
  using Wide = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;
  Wide value = sample<T>(seed, 0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    value = combine<Wide>(value, sample<T>(seed, rank, index), reduction);
  }
  return T(value);
}

template <typename T>
void expectSame(std::span<const T> got, const std::vector<T> &wanted,
                const std::string &what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::memcmp(&got[i], &wanted[i], sizeof(T)) != 0) {
      ADD_FAILURE() << what << ": element " << i << " of " << wanted.size()
                    << ": " << got[i] << " instead of " << wanted[i];
      return;
    }
  }
}

std::vector<Reduction> reductionsOf(DataType type) {
  std::vector<Reduction> all = {Reduction::Sum, Reduction::Max, Reduction::Min};
  if (!isFloat(type)) {
    all.push_back(Reduction::Or);
  }
  return all;
}

template <typename T>
void checkReductions(Communicator &all, uint64_t seed, int64_t count) {
  constexpr DataType type = kTypeOf<T>;
  const int ranks = all.size();
  for (const Reduction reduction : reductionsOf(type)) {
    const std::string what =
        fmt::format("{} of {}", name(reduction), name(type));
    std::vector<T> wanted(ranks * count);
    for (int64_t i = 0; i < ranks * count; ++i) {
      wanted[i] = reduced<T>(seed, ranks, i, reduction);
    }
    const std::vector<T> head(wanted.begin(), wanted.begin() + count);
    const std::vector<T> mine(wanted.begin() + all.rank() * count,
                              wanted.begin() + (all.rank() + 1) * count);

    const std::vector<T> send = samples<T>(seed, all.rank(), ranks * count);
    std::vector<T> receive(count);
    EXPECT_OK(
        all.allReduce(send.data(), receive.data(), count, type, reduction));
    expectSame<T>(receive, head, "all_reduce, " + what);

    std::vector<T> inPlace(send.begin(), send.begin() + count);
    EXPECT_OK(
        all.allReduce(inPlace.data(), inPlace.data(), count, type, reduction));
    expectSame<T>(inPlace, head, "all_reduce in place, " + what);

    EXPECT_OK(
        all.reduceScatter(send.data(), receive.data(), count, type, reduction));
    expectSame<T>(receive, mine, "reduce_scatter, " + what);

    inPlace = send;
    T *block = inPlace.data() + all.rank() * count;
    EXPECT_OK(all.reduceScatter(inPlace.data(), block, count, type, reduction));
    expectSame<T>(std::span<const T>(block, count), mine,
                  "reduce_scatter in place, " + what);
  }
}

template <typename T>
void checkMoves(Communicator &all, uint64_t seed, int64_t count) {
  constexpr DataType type = kTypeOf<T>;
  const int ranks = all.size();
  std::vector<T> gathered;
  std::vector<T> exchanged;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int64_t i = 0; i < count; ++i) {
      gathered.push_back(sample<T>(seed, rank, i));
      exchanged.push_back(sample<T>(seed, rank, all.rank() * count + i));
    }
  }
  const std::vector<T> send = samples<T>(seed, all.rank(), ranks * count);
  std::vector<T> receive(ranks * count);
  EXPECT_OK(all.allGather(send.data(), receive.data(), count, type));
  expectSame<T>(receive, gathered, "all_gather");

  std::vector<T> inPlace(ranks * count);
  T *block = inPlace.data() + all.rank() * count;
  std::copy_n(send.begin(), count, block);
  EXPECT_OK(all.allGather(block, inPlace.data(), count, type));
  expectSame<T>(inPlace, gathered, "all_gather in place");

  std::fill(receive.begin(), receive.end(), T());
  EXPECT_OK(all.allToAll(send.data(), receive.data(), count, type));
  expectSame<T>(receive, exchanged, "all_to_all");

  for (int root = 0; root < ranks; ++root) {
    std::vector<T> data = samples<T>(seed, all.rank(), count);
    EXPECT_OK(all.broadcast(data.data(), count, type, root));
    expectSame<T>(data, samples<T>(seed, root, count), "broadcast");
  }
}

template <typename T> void checkType(Communicator &all, int64_t count) {
  const uint64_t seed = mix(count, all.size(), sizeof(T));
  checkReductions<T>(all, seed, count);
  checkMoves<T>(all, seed, count);
}

class Collectives : public testing::TestWithParam<std::tuple<Backend, int>> {
protected:
  Backend backend = std::get<0>(GetParam());
  int ranks = std::get<1>(GetParam());
};

INSTANTIATE_TEST_SUITE_P(All, Collectives,
                         testing::Combine(testing::ValuesIn(backends()),
                                          testing::Values(1, 2, 3, 4, 8)),
                         [](const auto &info) {
                           return name(std::get<0>(info.param)) +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_P(Collectives, EveryTypeSizeAndReduction) {
  // Around the sizes at which algorithms change: 8 KiB over all blocks, 8 and
  // 16 KiB per block, 32 KiB per chunk.
  const auto counts = sweep<std::vector<int64_t>>(
      {0, 1, 5, 257, 2048, 4099, 8193, 20011},
      {0,    1,    2,    3,    7,    255,  256,  257,   1023,  1024,  1025,
       2047, 2048, 2049, 4096, 4097, 8192, 8193, 16384, 16385, 300007});
  runRanks(backend, ranks, [&](RankContext &context) {
    for (const int64_t count : counts) {
      SCOPED_TRACE(count);
      checkType<float>(context[0], count);
      checkType<BFloat16>(context[0], count);
      checkType<double>(context[0], count);
      checkType<int32_t>(context[0], count);
      checkType<int64_t>(context[0], count);
    }
    EXPECT_OK(context[0].barrier());
  });
}

TEST_P(Collectives, BarrierHoldsEveryoneBack) {
  std::atomic<int> arrived{0};
  runRanks(backend, ranks, [&](RankContext &context) {
    for (int round = 1; round <= 50; ++round) {
      ++arrived;
      EXPECT_OK(context[0].barrier());
      EXPECT_GE(arrived.load(), round * ranks);
      EXPECT_OK(context[0].barrier());
    }
  });
}

TEST_P(Collectives, Bf16IsSummedInF32) {
  // 1 + 2^-9 needs two more bits than bf16 has; the sum of eight of them does
  // not: 8 * (1 + 2^-9) = 8 + 2^-6, of which bf16 keeps 8.
  // 1, then seven times 2^-9: 1 + 7 * 2^-9 rounds to 1 + 2^-6 (bf16 has steps
  // of 2^-7 there). Summed in bf16 every step would fall back to 1.
  for (const int64_t count : {3, 40000}) {
    runRanks(backend, ranks, [&](RankContext &context) {
      std::vector<BFloat16> data(count,
                                 BFloat16(context.rank == 0 ? 1.0f : 0x1p-9f));
      EXPECT_OK(context[0].allReduce(data.data(), data.data(), count,
                                     DataType::BF16));
      const float exact = 1.0f + float(ranks - 1) * 0x1p-9f;
      for (const BFloat16 &value : data) {
        ASSERT_EQ(value.bits, BFloat16(exact).bits);
      }
      std::vector<float> wide(count, 1.0f + 0x1p-9f);
      EXPECT_OK(
          context[0].allReduce(wide.data(), wide.data(), count, DataType::F32));
      ASSERT_EQ(wide[count - 1], float(ranks) * (1.0f + 0x1p-9f));
    });
  }
}

TEST_P(Collectives, MaxAndMinKeepANaN) {
  if (ranks == 1) {
    return; // One rank's value is its result: nothing is compared.
  }
  runRanks(backend, ranks, [&](RankContext &context) {
    for (int where = 0; where < ranks; ++where) {
      for (const Reduction reduction : {Reduction::Max, Reduction::Min}) {
        float value = context.rank == where
                          ? std::numeric_limits<float>::quiet_NaN()
                          : float(context.rank);
        EXPECT_OK(
            context[0].allReduce(&value, &value, 1, DataType::F32, reduction));
        EXPECT_TRUE(std::isnan(value)) << "NaN on rank " << where;
      }
    }
  });
}

} // namespace
