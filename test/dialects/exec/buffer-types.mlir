// !exec.buf: what is printed parses to the same, in one spelling.
// RUN: mega-opt %s | mega-opt | FileCheck %s

// CHECK-LABEL: func.func private @scalar(!exec.buf<f32>)
func.func private @scalar(!exec.buf<f32>)
// CHECK-LABEL: func.func private @bytes(!exec.buf<4x3x2x1xbf16>)
func.func private @bytes(!exec.buf<4x3x2x1xbf16>)
// CHECK-LABEL: @columns(!exec.buf<4x32x64xf32 stride 192>)
func.func private @columns(!exec.buf<4x32x64xf32 stride 192>)
// Heads are part of the row: 8 heads of 8 are 64 columns.
// CHECK-LABEL: @heads(!exec.buf<4x32x8x8xf32 stride 192>)
func.func private @heads(!exec.buf<4x32x8x8xf32 stride 192>)
// A stride that says nothing is not written.
// CHECK-LABEL: @contiguous_heads(!exec.buf<4x32x8x8xf32>)
func.func private @contiguous_heads(!exec.buf<4x32x8x8xf32 stride 64>)
// CHECK-LABEL: @layout(!exec.buf<4x32x64xf32 stride 96, #dist.layout<[{}, {tp}, {}]>>)
func.func private @layout(!exec.buf<4x32x64xf32 stride 96, #dist.layout<[{}, {tp}, {}]>>)
// Invariant everywhere is what a buffer is without a layout.
// CHECK-LABEL: @invariant(!exec.buf<4x32x64xf32>)
func.func private @invariant(!exec.buf<4x32x64xf32, #dist.layout<>>)
