// Ops that save statistics are replaced in the forward, not in eval.
// RUN: mega-opt %s --mega-differentiate | FileCheck %s

!x = tensor<2x5x8xf32>
!v = tensor<8xf32>
!h = tensor<2x5x6x4xf32>
!kv = tensor<2x5x2x4xf32>
!s = tensor<2x5xf32>

tfm.block @layer_norm(%x: !x) -> !x {
  %g = tfm.param "g" init(ones) : !v
  %b = tfm.param "b" init(zeros) : !v
  %y = tfm.layer_norm %x, %g, %b epsilon(1.0e-5) : !x, !v
  tfm.yield %y : !x
}
// CHECK-LABEL: tfm.function @layer_norm.eval
// CHECK: tfm.layer_norm %
// CHECK-LABEL: tfm.function @layer_norm.forward(%arg0: tensor<2x5x8xf32>)
// CHECK-SAME: saved_results = 3 : i64
// CHECK: %[[Y:.*]], %[[M:.*]], %[[R:.*]] = tfm.layer_norm_stats %arg0
// The statistics of each of the 2 * 5 rows.
// CHECK: tfm.return %[[Y]],
// CHECK-SAME: %[[M]]
// CHECK-SAME: tensor<2x5xf32>, tensor<2x5xf32>
// CHECK-LABEL: tfm.function @layer_norm.backward
// CHECK: %[[GX:.*]], %[[GG:.*]], %[[GB:.*]] = tfm.layer_norm_grad
// CHECK-DAG: tfm.accumulate_gradient %[[GG]] into "g"
// CHECK-DAG: tfm.accumulate_gradient %[[GB]] into "b"
// CHECK: tfm.return %[[GX]]

tfm.block @rms_norm_of_heads(%x: !h) -> !h {
  %g = tfm.param "g" init(ones) : tensor<4xf32>
  %y = tfm.rms_norm %x, %g epsilon(1.0e-5) : !h, tensor<4xf32>
  tfm.yield %y : !h
}
// One statistic per row and head.
// CHECK-LABEL: tfm.function @rms_norm_of_heads.forward
// CHECK: tfm.rms_norm_stats {{.*}} -> tensor<2x5x6xf32>

tfm.block @attention(%q: !h, %k: !kv, %v: !kv) -> !h {
  %y = tfm.attention %q, %k, %v causal scale(0.5) : !h, !kv
  tfm.yield %y : !h
}
// CHECK-LABEL: tfm.function @attention.eval
// CHECK: tfm.attention %
// CHECK-LABEL: tfm.function @attention.forward
// CHECK: tfm.attention_stats {{.*}} -> tensor<2x6x5xf32>
// CHECK-LABEL: tfm.function @attention.backward
// CHECK: %[[Q:.*]], %[[K:.*]], %[[V:.*]] = tfm.attention_grad %{{.*}} causal scale(0.5)
// CHECK: tfm.return %[[Q]], %[[K]], %[[V]]

tfm.block @the_maximum_of_the_head_is_inactive(%x: !x, %l: tensor<2x5xi32>) -> tensor<f32> {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %m, %s, %t = tfm.head_stats %x, %w, %l ignore(-100) : !x, tensor<11x8xf32>, tensor<2x5xi32> -> !s, !s, !s
  %y = tfm.head_loss %m, %s, %t, %l ignore(-100) : !s, tensor<2x5xi32> -> tensor<f32>
  tfm.yield %y : tensor<f32>
}
// The seed first, then the labels, which are passed again; x, maximum and sum
// come from the frame, the target logit does not.
// CHECK-LABEL: tfm.function @the_maximum_of_the_head_is_inactive.backward(
// CHECK-SAME: %[[SEED:[^:]*]]: tensor<f32>, %[[L:[^:]*]]: tensor<2x5xi32>,
// CHECK-SAME: saved_arguments = 3 : i64
// CHECK: %[[GS:.*]], %[[GT:.*]] = tfm.head_loss_grad %[[SEED]], %{{.*}}, %[[L]]
// CHECK: %[[GX:.*]], %[[GW:.*]] = tfm.head_stats_grad %{{.*}}, %w, %[[L]], %{{.*}}, %[[GS]], %[[GT]]
// CHECK: tfm.accumulate_gradient %[[GW]] into "w"
// CHECK: tfm.return %[[GX]]
