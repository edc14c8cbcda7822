//===- CutLayout.h - Layouts for tests --------------------------*- C++ -*-===//
#ifndef MEGA_TEST_RUNTIME_PLAN_CUTLAYOUT_H
#define MEGA_TEST_RUNTIME_PLAN_CUTLAYOUT_H

#include "runtime/plan/Layout.h"

#include <initializer_list>

namespace mega::test {

/// Of a tensor of `rank` dimensions, `dim` of which is cut over `axes`, major
/// to minor, and padded to `padded` (0: not padded).
inline Layout cut(int rank, int dim, std::initializer_list<Axis> axes,
                  int64_t padded = 0) {
  Layout layout;
  layout.rank = static_cast<uint8_t>(rank);
  for (Axis axis : axes) {
    layout.dims[static_cast<size_t>(dim)].push(axis);
  }
  layout.dims[static_cast<size_t>(dim)].padded = padded;
  return layout;
}

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_PLAN_CUTLAYOUT_H
