//===- Targets.h - Instruction sets the row loops are built for -*- C++ -*-===//
//
// Included before Highway. Three are enough: any x86-64, AVX2 and AVX-512;
// elsewhere Highway's own choice.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_CPU_ROWS_TARGETS_H
#define MEGA_RUNTIME_CPU_ROWS_TARGETS_H

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)

#endif // MEGA_RUNTIME_CPU_ROWS_TARGETS_H
