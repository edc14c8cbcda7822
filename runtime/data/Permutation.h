//===- Permutation.h - Random order without a table -------------*- C++ -*-===//
//
// A pseudo-random bijection of [0, size) in constant memory: a Feistel network
// of eight rounds over two halves of h bits, with Philox as round function,
// where 4^h is the least power of four that is at least `size`. A value that
// lands outside [0, size) is sent through the network again until it lands
// inside ("cycle walking", Black and Rogaway, "Ciphers with Arbitrary Finite
// Domains", 2002): fewer than four times on average.
//
// Integer arithmetic only: the same order on every machine.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_DATA_PERMUTATION_H
#define MEGA_RUNTIME_DATA_PERMUTATION_H

#include "runtime/plan/Philox.h"

#include <bit>
#include <cstdint>

namespace mega {

class Permutation {
public:
  /// `size` is at least 1 and below 2^63.
  Permutation(int64_t size, uint64_t key)
      : size(static_cast<uint64_t>(size)),
        halfBits(
            (static_cast<int>(std::bit_width(static_cast<uint64_t>(size - 1))) +
             1) /
            2),
        key(toPhiloxKey(key)) {}

  /// Where `index`, in [0, size), goes.
  int64_t operator()(int64_t index) const {
    if (halfBits == 0) {
      return 0;
    }
    auto value = static_cast<uint64_t>(index);
    do {
      value = network(value);
    } while (value >= size);
    return static_cast<int64_t>(value);
  }

private:
  uint64_t network(uint64_t value) const {
    const uint64_t mask = (uint64_t{1} << halfBits) - 1;
    uint64_t left = value >> halfBits;
    uint64_t right = value & mask;
    for (uint32_t round = 0; round < 8; ++round) {
      const PhiloxCounter words =
          philox({static_cast<uint32_t>(right), round, 0, 0}, key);
      const uint64_t next = left ^ (words[0] & mask);
      left = right;
      right = next;
    }
    return left << halfBits | right;
  }

  uint64_t size;
  /// At most 32.
  int halfBits;
  PhiloxKey key;
};

} // namespace mega

#endif // MEGA_RUNTIME_DATA_PERMUTATION_H
