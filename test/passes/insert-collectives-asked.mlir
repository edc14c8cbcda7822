// What a model asks for with dist.constrain, and --forbid-implicit-reshard.
// RUN: mega-opt %s --mega-annotate-layouts=tp=2 --mega-insert-collectives --mega-verify-layouts -split-input-file | FileCheck %s
// RUN: mega-opt %s --mega-annotate-layouts=tp=2 --mega-insert-collectives=forbid-implicit-reshard --mega-verify-layouts -split-input-file -verify-diagnostics | FileCheck %s --check-prefix ASKED
// RUN: mega-opt %s --mega-annotate-layouts --mega-insert-collectives=forbid-implicit-reshard -split-input-file | FileCheck %s --check-prefix ALONE

!x = tensor<2x8x24xf32>
!f = tensor<2x8x32xf32>

// One rank has nothing to convert.
// ALONE-NOT: dist.constrain
// ALONE-NOT: dist.all_reduce

// ASKED-LABEL: tfm.block @asked
// ASKED: tfm.linear
// ASKED: dist.all_reduce %{{.*}} {tp} : {{.*}} -> tensor<2x8x24xf32, #dist.layout<>>
// ASKED-NOT: dist.constrain
// ASKED: tfm.yield
tfm.block @asked(%x: !x) -> !x {
  %a = tfm.param "up" init(ones) : tensor<32x24xf32>
  %b = tfm.param "down" init(ones) : tensor<24x32xf32>
  %u = tfm.linear %x, %a : !x, tensor<32x24xf32> -> !f
  %s = tfm.linear %u, %b : !f, tensor<24x32xf32> -> !x
  %o = dist.constrain %s to <> : !x
  tfm.yield %o : !x
}

// -----

!x = tensor<2x8x24xf32>
!f = tensor<2x8x32xf32>

// Along the sequence here, whatever else the flags say.
// CHECK-LABEL: tfm.block @scattered
// CHECK: dist.reduce_scatter %{{.*}} {tp} : {{.*}} -> tensor<2x8x24xf32, #dist.layout<[{}, {tp}, {}]>>
// CHECK: tfm.gelu
// CHECK: dist.all_gather
tfm.block @scattered(%x: !x) -> !x {
  %a = tfm.param "up" init(ones) : tensor<32x24xf32>
  %b = tfm.param "down" init(ones) : tensor<24x32xf32>
  %u = tfm.linear %x, %a : !x, tensor<32x24xf32> -> !f
  %s = tfm.linear %u, %b : !f, tensor<24x32xf32> -> !x
  %t = dist.constrain %s to <[{}, {tp}, {}]> : !x
  // expected-note@+1 {{the value}}
  %g = tfm.gelu %t tanh : !x
  // expected-error@+1 {{needs <> where the value is <[{}, {tp}, {}]>, which takes all_gather that nobody asked for}}
  tfm.yield %g : !x
}
