//===- Philox.h - Counter-based random numbers ------------------*- C++ -*-===//
//
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy
// as 1, 2, 3", SC 2011). Numbers are a pure function of key and counter, so
// weights, dropout masks and data order do not depend on the parallel layout.
// Integer arithmetic only: the same bits on every machine and device.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_PHILOX_H
#define MEGA_RUNTIME_PLAN_PHILOX_H

#include <array>
#include <cstdint>
#include <string_view>

namespace mega {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Folds `value` into the 64-bit key `state` (the finaliser of splitmix64,
/// a bijection of `state` for any fixed `value`).
constexpr uint64_t mixKey(uint64_t state, uint64_t value) {
  uint64_t z = (state ^ value) + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

constexpr PhiloxKey toPhiloxKey(uint64_t key) {
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

/// FNV-1a of a name: parameters and dropouts are keyed by it, groups of ranks
/// compared by it.
constexpr uint64_t hashName(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  return hash;
}

/// Key of one dropout application. `nameKey` is the kernel's integer
/// attribute: the hash of block name and dropout name.
constexpr uint64_t dropoutKey(uint64_t seed, int64_t step, int64_t nameKey,
                              int64_t application) {
  // The seed is mixed alone first: seed ^ name would let them trade places.
  uint64_t key = mixKey(0, seed);
  key = mixKey(key, static_cast<uint64_t>(nameKey));
  key = mixKey(key, static_cast<uint64_t>(step));
  return mixKey(key, static_cast<uint64_t>(application));
}

/// Counter of four consecutive features of an activation, feature / 4 = `quad`.
constexpr PhiloxCounter activationCounter(int64_t sample, int64_t position,
                                          int64_t quad) {
  return {static_cast<uint32_t>(quad), static_cast<uint32_t>(position),
          static_cast<uint32_t>(sample), static_cast<uint32_t>(sample >> 32)};
}

/// Counter of four consecutive keys of an attention row, key / 4 = `quad`.
/// The sample's low 32 bits suffice: the step is part of the key.
constexpr PhiloxCounter attentionCounter(int64_t sample, int64_t head,
                                         int64_t query, int64_t quad) {
  return {static_cast<uint32_t>(quad), static_cast<uint32_t>(query),
          static_cast<uint32_t>(head), static_cast<uint32_t>(sample)};
}

/// An element is kept iff its random word is at least this.
constexpr uint32_t dropoutThreshold(double probability) {
  return static_cast<uint32_t>(probability * 4294967296.0);
}

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_PHILOX_H
