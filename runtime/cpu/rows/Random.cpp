//===- Random.cpp - Dropout of a row --------------------------------------===//
#include "runtime/cpu/rows/Rows.h"

#include <algorithm>

// clang-format off
#include "runtime/cpu/rows/Targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/rows/Random.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "runtime/cpu/rows/Dispatch.h"
#include "runtime/cpu/rows/Lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace mega::rows::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR
/// Groups of four words drawn side by side.
constexpr int64_t kGroups = 1;

void draw(const PhiloxCounter &counter, PhiloxKey key, uint32_t *words) {
  const PhiloxCounter random = philox(counter, key);
  std::copy(random.begin(), random.end(), words);
}
#else
using Words = hn::CappedTag<uint32_t, 16>;
using Word = hn::Vec<Words>;
constexpr int64_t kGroups = hn::MaxLanes(Words());

/// The upper halves of the 64-bit products.
HWY_INLINE Word upperProduct(Word a, Word factor) {
  const Words d;
  const hn::Repartition<uint64_t, Words> wide;
  const auto even = hn::MulEven(a, factor);
  const auto odd = hn::MulEven(
      hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), factor);
  return hn::OddEven(hn::BitCast(d, odd),
                     hn::BitCast(d, hn::ShiftRight<32>(even)));
}

/// Philox4x32-10 as in runtime/plan/Philox.h, one counter in each lane, word 0
/// counting up from lane to lane.
void draw(const PhiloxCounter &counter, PhiloxKey key, uint32_t *words) {
  const Words d;
  const Word multiplier0 = hn::Set(d, 0xD2511F53u);
  const Word multiplier1 = hn::Set(d, 0xCD9E8D57u);
  Word c0 = hn::Add(hn::Set(d, counter[0]), hn::Iota(d, 0));
  Word c1 = hn::Set(d, counter[1]);
  Word c2 = hn::Set(d, counter[2]), c3 = hn::Set(d, counter[3]);
  for (int round = 0; round < 10; ++round) {
    const Word upper0 = upperProduct(c0, multiplier0);
    const Word upper1 = upperProduct(c2, multiplier1);
    const Word lower0 = hn::Mul(c0, multiplier0);
    const Word lower1 = hn::Mul(c2, multiplier1);
    c0 = hn::Xor(hn::Xor(upper1, c1), hn::Set(d, key[0]));
    c1 = lower1;
    c2 = hn::Xor(hn::Xor(upper0, c3), hn::Set(d, key[1]));
    c3 = lower0;
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
}
#endif

template <typename T>
HWY_ATTR void dropout(PhiloxCounter counter, PhiloxKey key, uint32_t threshold,
                      float factor, const T *x, T *y, int64_t n) {
  uint32_t words[4 * kGroups];
  for (int64_t begin = 0; begin < n; begin += 4 * kGroups) {
    draw(counter, key, words);
    counter[0] += static_cast<uint32_t>(kGroups);
    const int64_t count = std::min(n - begin, 4 * kGroups);
    forLanes(count, [&](auto d, int64_t i) HWY_ATTR {
      const hn::RebindToUnsigned<decltype(d)> unsignedLanes;
      const auto word = hn::LoadU(unsignedLanes, words + i);
      const auto drop = hn::Lt(word, hn::Set(unsignedLanes, threshold));
      const auto kept = hn::Mul(hn::Set(d, factor), load(d, x + begin + i));
      store(hn::IfThenZeroElse(hn::RebindMask(d, drop), kept), d,
            y + begin + i);
    });
  }
}
} // namespace mega::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::rows {

template <typename T>
void dropout(PhiloxCounter counter, PhiloxKey key, uint32_t threshold,
             float factor, const T *x, T *y, int64_t n) {
  return MEGA_ROW(dropout<T>)(counter, key, threshold, factor, x, y, n);
}
MEGA_FOR_ELEMENTS(dropout);

} // namespace mega::rows
#endif // HWY_ONCE
