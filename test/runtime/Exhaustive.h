//===- Exhaustive.h - How far a test sweeps ---------------------*- C++ -*-===//
#ifndef MEGA_TEST_RUNTIME_EXHAUSTIVE_H
#define MEGA_TEST_RUNTIME_EXHAUSTIVE_H

#include <cstdlib>

namespace mega::test {

/// `wide` under `scripts/test.sh --exhaustive`, which sets MEGA_EXHAUSTIVE;
/// `usual` otherwise.
template <typename T> T sweep(T usual, T wide) {
  return std::getenv("MEGA_EXHAUSTIVE") != nullptr ? wide : usual;
}

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_EXHAUSTIVE_H
