//===- Dispatch.h - From a row loop to its instruction set ------*- C++ -*-===//
//
// Highway's HWY_EXPORT for function templates. After HWY_ONCE a file defines
//
//   template <typename T> void add(const T *a, const T *b, T *y, int64_t n) {
//     return MEGA_ROW(add<T>)(a, b, y, n);
//   }
//   MEGA_FOR_ELEMENTS(add);
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_ROWS_DISPATCH_H
#define MEGA_RUNTIME_CPU_ROWS_DISPATCH_H

#include <cstddef>

#include "hwy/highway.h"

namespace mega::rows {

/// The machine's entry of a table in Highway's order, whose first entry stands
/// for a target that has not been chosen yet.
template <typename F, size_t n> F chosen(F const (&table)[n]) {
  hwy::ChosenTarget &target = hwy::GetChosenTarget();
  if (target.GetIndex() == 0) {
    target.Update(hwy::SupportedTargets());
  }
  return table[target.GetIndex()];
}

#if HWY_IDE || ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0)
#define MEGA_ROW(function) HWY_STATIC_DISPATCH(function)
#else
#define MEGA_ROW(function)                                                     \
  [] {                                                                         \
    static constexpr decltype(&HWY_STATIC_DISPATCH(function)) table[] = {      \
        nullptr, HWY_CHOOSE_TARGET_LIST(function),                             \
        HWY_CHOOSE_FALLBACK(function)};                                        \
    return chosen(table);                                                      \
  }()
#endif

/// Instantiates a function template for the element types.
#define MEGA_FOR_ELEMENTS(function)                                            \
  template decltype(function<float>) function<float>;                          \
  template decltype(function<BFloat16>) function<BFloat16>

} // namespace mega::rows

#endif // MEGA_RUNTIME_CPU_ROWS_DISPATCH_H
