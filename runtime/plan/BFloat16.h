//===- BFloat16.h - The upper half of a float -------------------*- C++ -*-===//
//
// Sign, eight bits of exponent, seven of fraction: the range of f32 with a
// relative spacing of 2^-7. Narrowing rounds to nearest, ties to even; a NaN
// stays a NaN, and what rounds past the largest number is infinite. Arithmetic
// is f32's: a BFloat16 only loads and stores.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_BFLOAT16_H
#define MEGA_RUNTIME_PLAN_BFLOAT16_H

#include <bit>
#include <cstdint>

namespace mega {

struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit constexpr BFloat16(float value) {
    const auto wide = std::bit_cast<uint32_t>(value);
    const bool isNan = (wide & 0x7FFFFFFFu) > 0x7F800000u;
    const uint32_t rounded =
        isNan ? wide | 0x00400000u : wide + 0x7FFFu + ((wide >> 16) & 1u);
    bits = static_cast<uint16_t>(rounded >> 16);
  }
  constexpr operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};
static_assert(sizeof(BFloat16) == 2);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_BFLOAT16_H
