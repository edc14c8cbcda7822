//===- Random.cpp - Dropout of a row --------------------------------------===//
#include "runtime/cpu/rows/Rows.h"

// clang-format off
#include "runtime/cpu/rows/Targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/rows/Random.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "runtime/cpu/rows/Lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace mega::rows::HWY_NAMESPACE {

/// Groups of four elements drawn side by side.
constexpr int kGroups = 8;

void dropout(PhiloxCounter counter, PhiloxKey key, uint32_t threshold,
             float factor, const float *x, float *y, int64_t n) {
  uint32_t words[4 * kGroups];
  for (int64_t begin = 0; begin < n; begin += 4 * kGroups) {
    for (int group = 0; group < kGroups; ++group) {
      PhiloxCounter mine = counter;
      mine[0] += static_cast<uint32_t>(begin / 4 + group);
      const PhiloxCounter random = philox(mine, key);
      for (int word = 0; word < 4; ++word) {
        words[4 * group + word] = random[word];
      }
    }
    const int64_t count = n - begin < 4 * kGroups ? n - begin : 4 * kGroups;
    for (int64_t i = 0; i < count; ++i) {
      const float kept = factor * x[begin + i];
      y[begin + i] = words[i] >= threshold ? kept : 0.0f;
    }
  }
}

} // namespace mega::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mega::rows {

HWY_EXPORT(dropout);
void dropout(PhiloxCounter counter, PhiloxKey key, uint32_t threshold,
             float factor, const float *x, float *y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(dropout)(counter, key, threshold, factor, x, y,
                                       n);
}

} // namespace mega::rows
#endif // HWY_ONCE
