//===- Lanes-inl.h - Loops over lanes ---------------------------*- C++ -*-===//
//
// For files compiled once per instruction set. A row's tail goes through the
// same body with one-lane vectors, so nothing outside the row is touched.
// Lanes are f32: `load` widens and `store` rounds where the row is bf16.
//
//===----------------------------------------------------------------------===//
#if defined(MEGA_RUNTIME_CPU_ROWS_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEGA_RUNTIME_CPU_ROWS_LANES_INL_H
#undef MEGA_RUNTIME_CPU_ROWS_LANES_INL_H
#else
#define MEGA_RUNTIME_CPU_ROWS_LANES_INL_H
#endif

#include "runtime/plan/BFloat16.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mega::rows::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Full = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

template <typename D> HWY_INLINE hn::Vec<D> load(D d, const float *from) {
  return hn::LoadU(d, from);
}
template <typename D> HWY_INLINE void store(hn::Vec<D> v, D d, float *to) {
  hn::StoreU(v, d, to);
}

template <typename D> HWY_INLINE hn::Vec<D> load(D d, const BFloat16 *from) {
  const hn::Rebind<uint16_t, D> narrow;
  const hn::RebindToUnsigned<D> wide;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const uint16_t *>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}
/// Rounds as BFloat16's constructor does.
template <typename D> HWY_INLINE void store(hn::Vec<D> v, D d, BFloat16 *to) {
  const hn::Rebind<uint16_t, D> narrow;
  const hn::RebindToUnsigned<D> wide;
  const hn::RebindToSigned<D> wideSigned;
  const auto bits = hn::BitCast(wide, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1u));
  const auto nearest = hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7FFFu)));
  const auto quiet = hn::Or(bits, hn::Set(wide, 0x00400000u));
  const auto rounded =
      hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(v)), quiet, nearest);
  const auto upper = hn::BitCast(wideSigned, hn::ShiftRight<16>(rounded));
  hn::StoreU(hn::DemoteTo(narrow, upper), narrow,
             reinterpret_cast<uint16_t *>(to));
}

/// body(tag, i) for vectors that cover [0, n).
template <typename Body> HWY_INLINE void forLanes(int64_t n, Body &&body) {
  const Full full;
  const int64_t step = hn::Lanes(full);
  int64_t i = 0;
  for (; i + step <= n; i += step) {
    body(full, i);
  }
  for (; i < n; ++i) {
    body(One(), i);
  }
}

/// The sum of term(tag, i) over [0, n), through four running vectors.
template <typename Term> HWY_INLINE float sumLanes(int64_t n, Term &&term) {
  const Full full;
  const int64_t step = hn::Lanes(full);
  auto sum0 = hn::Zero(full), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  int64_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    sum0 = hn::Add(sum0, term(full, i));
    sum1 = hn::Add(sum1, term(full, i + step));
    sum2 = hn::Add(sum2, term(full, i + 2 * step));
    sum3 = hn::Add(sum3, term(full, i + 3 * step));
  }
  for (; i + step <= n; i += step) {
    sum0 = hn::Add(sum0, term(full, i));
  }
  const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  float total = hn::GetLane(hn::SumOfLanes(full, sum));
  for (; i < n; ++i) {
    total += hn::GetLane(term(One(), i));
  }
  return total;
}

} // namespace mega::rows::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif // MEGA_RUNTIME_CPU_ROWS_LANES_INL_H
