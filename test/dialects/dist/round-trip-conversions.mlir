// Conversions: what is printed parses to the same.
// RUN: mega-opt %s | mega-opt | FileCheck %s
// RUN: mega-opt %s -mlir-print-op-generic | mega-opt | FileCheck %s

#I = #dist.layout<>
#R = #dist.layout<replicated = {tp}>
#P = #dist.layout<partial = {tp}>
#S0 = #dist.layout<[{tp}, {}, {}]>
#S1 = #dist.layout<[{}, {tp}, {}]>
!i = tensor<4x8x12xf32, #I>
!r = tensor<4x8x12xf32, #R>
!p = tensor<4x8x12xf32, #P>
!s0 = tensor<4x8x12xf32, #S0>
!s1 = tensor<4x8x12xf32, #S1>

// The whole table, one op per entry.
// CHECK-LABEL: func.func @table
func.func @table(%i: !i, %r: !r, %s: !s0, %p: !p) {
  // CHECK: dist.replicate %{{.*}} {tp} : tensor<4x8x12xf32, #dist.layout<>> -> tensor<4x8x12xf32, #dist.layout<replicated = {tp}>>
  %0 = dist.replicate %i {tp} : !i -> !r
  // CHECK: dist.slice
  %1 = dist.slice %i {tp} : !i -> !s0
  // CHECK: dist.to_partial
  %2 = dist.to_partial %i {tp} : !i -> !p
  // CHECK: dist.assume_invariant
  %3 = dist.assume_invariant %r {tp} : !r -> !i
  // CHECK: dist.slice
  %4 = dist.slice %r {tp} : !r -> !s0
  // CHECK: dist.to_partial
  %5 = dist.to_partial %r {tp} : !r -> !p
  // CHECK: dist.all_gather
  %6 = dist.all_gather %s {tp} : !s0 -> !i
  // CHECK: dist.all_gather
  %7 = dist.all_gather %s {tp} : !s0 -> !r
  // CHECK: dist.all_to_all
  %8 = dist.all_to_all %s {tp} : !s0 -> !s1
  // CHECK: dist.to_partial
  %9 = dist.to_partial %s {tp} : !s0 -> !p
  // CHECK: dist.all_reduce
  %10 = dist.all_reduce %p {tp} : !p -> !i
  // CHECK: dist.all_reduce
  %11 = dist.all_reduce %p {tp} : !p -> !r
  // CHECK: dist.reduce_scatter
  %12 = dist.reduce_scatter %p {tp} : !p -> !s0
  return
}

// Axes in the order of the dimension they leave, which need not be the mesh's.
// CHECK-LABEL: func.func @order
func.func @order(%x: tensor<8x64xf32, #dist.layout<[{dp}, {cp, tp}]>>) {
  // CHECK: dist.all_gather %{{.*}} {tp} :
  %0 = dist.all_gather %x {tp} : tensor<8x64xf32, #dist.layout<[{dp}, {cp, tp}]>> -> tensor<8x64xf32, #dist.layout<[{dp}, {cp}], replicated = {tp}>>
  // CHECK: dist.all_gather %{{.*}} {cp, tp} :
  %1 = dist.all_gather %x {cp, tp} : tensor<8x64xf32, #dist.layout<[{dp}, {cp, tp}]>> -> tensor<8x64xf32, #dist.layout<[{dp}, {}]>>
  return
}

// Padding comes and goes with the pieces.
// CHECK-LABEL: func.func @padding
func.func @padding(%x: tensor<97x8xf32, #P>, %y: tensor<97x8xf32, #dist.layout<[{tp, pad 100}, {}]>>) {
  // CHECK: dist.reduce_scatter
  %0 = dist.reduce_scatter %x {tp} : tensor<97x8xf32, #P> -> tensor<97x8xf32, #dist.layout<[{tp, pad 100}, {}]>>
  // CHECK: dist.all_gather
  %1 = dist.all_gather %y {tp} : tensor<97x8xf32, #dist.layout<[{tp, pad 100}, {}]>> -> tensor<97x8xf32, #dist.layout<replicated = {tp}>>
  return
}

// Maxima reduce as well.
// CHECK-LABEL: func.func @maximum
func.func @maximum(%x: tensor<4x8xf32, #dist.layout<partial = {tp max}>>) {
  // CHECK: dist.all_reduce
  %0 = dist.all_reduce %x {tp} : tensor<4x8xf32, #dist.layout<partial = {tp max}>> -> tensor<4x8xf32, #dist.layout<>>
  return
}
