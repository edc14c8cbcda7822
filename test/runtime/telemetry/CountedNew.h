//===- CountedNew.h - Counts allocations in one test binary -----*- C++ -*-===//
#ifndef MEGA_TEST_RUNTIME_TELEMETRY_COUNTEDNEW_H
#define MEGA_TEST_RUNTIME_TELEMETRY_COUNTEDNEW_H

#include <cstdint>

namespace mega::test {

/// Calls of operator new since the start of the process.
int64_t allocations();

} // namespace mega::test

#endif // MEGA_TEST_RUNTIME_TELEMETRY_COUNTEDNEW_H
