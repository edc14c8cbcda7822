//===- Ranks.h - Ranks of a test, over any implementation -------*- C++ -*-===//
//
// Every rank is a thread, also over Gloo, where each has a world of its own and
// they meet on the loopback device. What a failure channel does between
// processes is done here: the first failure that a rank finds aborts the
// others.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_TEST_RUNTIME_COMM_RANKS_H
#define MEGA_TEST_RUNTIME_COMM_RANKS_H

#include "runtime/comm/Communicator.h"
#include "runtime/plan/BFloat16.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace mega::test {

enum class Backend { InProcess, Gloo };

inline std::string name(Backend backend) {
  return backend == Backend::InProcess ? "InProcess" : "Gloo";
}

/// Gloo is not built for the thread sanitizer, which then sees races that are
/// none.
inline std::vector<Backend> backends() {
#if defined(__SANITIZE_THREAD__)
  return {Backend::InProcess};
#else
  return {Backend::InProcess, Backend::Gloo};
#endif
}

struct RankContext {
  int rank;
  /// In the order of the groups asked for; null where the rank is no member.
  std::vector<std::unique_ptr<Communicator>> groups;
  /// Fails the worlds of all ranks, as a failure channel would.
  std::function<void(const Status &)> abortAll;

  Communicator &operator[](size_t group) const { return *groups[group]; }
};

/// Runs `body` on all ranks at once and returns when all have returned. The
/// first group, "all", has every rank.
void runRanks(Backend backend, int ranks, const std::vector<Group> &more,
              const CommunicatorOptions &options,
              const std::function<void(RankContext &)> &body);

inline void runRanks(Backend backend, int ranks,
                     const std::function<void(RankContext &)> &body) {
  runRanks(backend, ranks, {}, {}, body);
}

#define EXPECT_OK(expression)                                                  \
  do {                                                                         \
    const ::mega::Status megaStatus_ = (expression);                           \
    EXPECT_TRUE(megaStatus_.isOk()) << megaStatus_.message();                  \
  } while (false)

template <typename T> inline constexpr DataType kTypeOf = DataType::F32;
template <> inline constexpr DataType kTypeOf<BFloat16> = DataType::BF16;
template <> inline constexpr DataType kTypeOf<double> = DataType::F64;
template <> inline constexpr DataType kTypeOf<int32_t> = DataType::I32;
template <> inline constexpr DataType kTypeOf<int64_t> = DataType::I64;

/// Well mixed bits of three numbers (splitmix64's steps).
inline uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t state = a * 0x9E3779B97F4A7C15u + b * 0xBF58476D1CE4E5B9u +
                   c * 0x94D049BB133111EBu + 0x2545F4914F6CDD1Du;
  for (int i = 0; i < 2; ++i) {
    state ^= state >> 30;
    state *= 0xBF58476D1CE4E5B9u;
    state ^= state >> 27;
  }
  return state;
}

/// Numbers of either sign over six orders of magnitude, so that sums in another
/// order have other bits.
template <typename T> T sample(uint64_t seed, uint64_t rank, uint64_t index) {
  const uint64_t bits = mix(seed, rank, index);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else {
    const auto unit = static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63;
    const double scales[] = {1e-3, 1e-1, 1, 1e3};
    return T(static_cast<float>(unit * scales[bits & 3]));
  }
}

template <typename T>
std::vector<T> samples(uint64_t seed, uint64_t rank, int64_t count) {
  std::vector<T> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = sample<T>(seed, rank, i);
  }
  return values;
}

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_COMM_RANKS_H
