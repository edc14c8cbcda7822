// The linears of a group, forward and backward, in the order of their weights.
// RUN: mega-opt %s --mega-group-linears --mega-differentiate --mega-fuse-kernels | FileCheck %s

!x = tensor<2x5x8xf32>
!m = tensor<8x8xf32>
!k = tensor<4x8xf32>
!p = tensor<2x5x4xf32>

// CHECK-LABEL: tfm.function @attend.forward
// CHECK: %[[Y:.*]]:3 = tfm.grouped_linear %arg0, (%q, %k, %v)
// CHECK-NOT: tfm.linear
// CHECK-LABEL: tfm.function @attend.backward(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x5x8xf32>, %[[K:[^:]*]]: tensor<2x5x4xf32>, %[[V:[^:]*]]: tensor<2x5x4xf32>, %[[X:[^:]*]]: tensor<2x5x8xf32>)
// CHECK-DAG: %[[GX:.*]] = tfm.linear_input_grad(%[[Q]], %[[K]], %[[V]]), (%q, %k, %v)
// CHECK-DAG: %[[GW:.*]]:3 = tfm.linear_weight_grad %[[X]], (%[[Q]], %[[K]], %[[V]]) :
// CHECK-DAG: tfm.accumulate_gradient %[[GW]]#0 into "q"
// CHECK-DAG: tfm.accumulate_gradient %[[GW]]#1 into "k"
// CHECK-DAG: tfm.accumulate_gradient %[[GW]]#2 into "v"
// CHECK-NOT: tfm.add
// CHECK: tfm.return %[[GX]]
tfm.block @attend(%x: !x) -> (!x, !p, !p) {
  %wq = tfm.param "q" init(ones) : !m
  %wk = tfm.param "k" init(ones) : !k
  %wv = tfm.param "v" init(ones) : !k
  %q = tfm.linear %x, %wq : !x, !m -> !x
  %k = tfm.linear %x, %wk : !x, !k -> !p
  %v = tfm.linear %x, %wv : !x, !k -> !p
  tfm.yield %q, %k, %v : !x, !p, !p
}
