//===- DropoutRow.h - Dropout from any element on ---------------*- C++ -*-===//
#ifndef MEGA_RUNTIME_CPU_DROPOUTROW_H
#define MEGA_RUNTIME_CPU_DROPOUTROW_H

#include "runtime/cpu/rows/Rows.h"

#include <algorithm>

namespace mega {

/// rows::dropout of a row whose first element is number `first`. Four elements
/// share a counter: counter(i) has the elements from 4 i on.
template <typename T, typename Counter>
void dropoutFrom(int64_t first, Counter &&counter, PhiloxKey key,
                 uint32_t threshold, float factor, const T *x, T *y,
                 int64_t n) {
  // Begin inside of a counter on the side.
  const int64_t before = first % 4;
  const int64_t head = before == 0 ? 0 : std::min(n, 4 - before);
  if (head > 0) {
    T quad[4] = {};
    std::copy_n(x, head, quad + before);
    rows::dropout(counter(first / 4), key, threshold, factor, quad, quad,
                  before + head);
    std::copy_n(quad + before, head, y);
  }
  if (n > head) {
    rows::dropout(counter((first + head) / 4), key, threshold, factor, x + head,
                  y + head, n - head);
  }
}

} // namespace mega

#endif // MEGA_RUNTIME_CPU_DROPOUTROW_H
