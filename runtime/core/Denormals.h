//===- Denormals.h - One rule for denormal numbers --------------*- C++ -*-===//
//
// Denormal results and operands count as zero on every thread that computes:
// they are slow, and a thread with another rule would give other bits.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CORE_DENORMALS_H
#define MEGA_RUNTIME_CORE_DENORMALS_H

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mega {

/// Sets flush-to-zero and denormals-are-zero for the calling thread. A pool's
/// threads do it themselves, and the thread that makes the pool with them.
inline void flushDenormals() {
#if defined(__x86_64__)
  constexpr unsigned flushToZero = 0x8000, denormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | flushToZero | denormalsAreZero);
#elif defined(__aarch64__)
  unsigned long control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | (1ul << 24)));
#endif
}

} // namespace mega

#endif // MEGA_RUNTIME_CORE_DENORMALS_H
