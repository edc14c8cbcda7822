// What is kept and what is computed again.
// RUN: mega-opt %s --mega-differentiate | FileCheck %s

!x = tensor<2x5x8xf32>
!m = tensor<8x8xf32>
!v = tensor<8xf32>

// Kept: the input, results of matrix products. Computed again: what follows
// from them without one.
// CHECK-LABEL: tfm.block @selective
tfm.block @selective(%x: !x) -> !x attributes {recompute = #tfm.recompute<selective>} {
  %g = tfm.param "g" init(ones) : !v
  %w1 = tfm.param "w1" init(ones) : !m
  %w2 = tfm.param "w2" init(ones) : !m
  %n = tfm.rms_norm %x, %g epsilon(1.0e-5) : !x, !v
  %y = tfm.linear %n, %w1 : !x, !m -> !x
  %s = tfm.silu %y : !x
  %d = tfm.dropout "mlp" %s p(0.5) : !x
  %z = tfm.linear %d, %w2 : !x, !m -> !x
  %r = tfm.add %x, %z : !x
  tfm.yield %r : !x
}
// CHECK-LABEL: tfm.function @selective.forward(
// CHECK-SAME: saved_results = 2 : i64
// CHECK: %[[Y:.*]] = tfm.linear
// CHECK: tfm.dropout "mlp" %{{.*}} p(0.5) key([[KEY:.*]]) :
// CHECK: tfm.return %{{.*}}, %[[X:.*]], %[[Y]] :
// CHECK-LABEL: tfm.function @selective.backward(
// CHECK-SAME: %[[G:.*]]: tensor<2x5x8xf32>, %[[X:.*]]: tensor<2x5x8xf32>, %[[Y:.*]]: tensor<2x5x8xf32>)
// The same mask is drawn again.
// CHECK: %[[S:.*]] = tfm.silu %[[Y]]
// CHECK-NEXT: %[[D:.*]] = tfm.dropout "mlp" %[[S]] p(0.5) key([[KEY]]) :
// CHECK-NEXT: tfm.linear_weight_grad %[[D]]
// The norm again, once, for its statistics and its result.
// CHECK: %[[N:.*]], %[[R:.*]] = tfm.rms_norm_stats %[[X]]
// CHECK: tfm.linear_weight_grad %[[N]]
// CHECK: tfm.rms_norm_grad %{{.*}}, %[[X]], %{{.*}}, %[[R]] :

// Kept: the input.
// CHECK-LABEL: tfm.block @full
tfm.block @full(%x: !x) -> !x attributes {recompute = #tfm.recompute<full>} {
  %w1 = tfm.param "w1" init(ones) : !m
  %w2 = tfm.param "w2" init(ones) : !m
  %y = tfm.linear %x, %w1 : !x, !m -> !x
  %s = tfm.silu %y : !x
  %z = tfm.linear %s, %w2 : !x, !m -> !x
  tfm.yield %z : !x
}
// CHECK-LABEL: tfm.function @full.forward(
// CHECK-SAME: saved_results = 1 : i64
// CHECK-LABEL: tfm.function @full.backward(
// CHECK-SAME: %[[G:.*]]: tensor<2x5x8xf32>, %[[X:.*]]: tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
// CHECK: %[[Y:.*]] = tfm.linear %[[X]]
// CHECK-NEXT: %[[S:.*]] = tfm.silu %[[Y]]
// CHECK-NEXT: tfm.linear_weight_grad %[[S]]
// CHECK: tfm.silu_grad %{{.*}}, %[[Y]]
// The last linear is not needed again.
// CHECK-NOT: tfm.linear %
// CHECK: tfm.return
