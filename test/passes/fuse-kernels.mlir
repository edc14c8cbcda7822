// RUN: mega-opt %s --mega-fuse-kernels | FileCheck %s

!x = tensor<2x5x8xf32>
!v = tensor<8xf32>
!s = tensor<2x5xf32>

// CHECK-LABEL: tfm.function @bias_and_gelu
// CHECK: %[[SUM:.*]], %[[Y:.*]] = tfm.bias_gelu %{{.*}}, %{{.*}} tanh
// CHECK-NOT: tfm.gelu
// The sum is there for the backward.
// CHECK: tfm.return %[[Y]], %[[SUM]]
tfm.function @bias_and_gelu(%x: !x, %b: !v) -> (!x, !x) {
  %z = tfm.add_bias %x, %b : !x, !v
  %y = tfm.gelu %z tanh : !x
  tfm.return %y, %z : !x, !x
}

// CHECK-LABEL: tfm.function @residual_sum_and_layer_norm
// CHECK: %[[SUM:.*]], %[[Y:.*]], %{{.*}}, %{{.*}} = tfm.add_layer_norm %arg0, %arg1, %arg2, %arg2 epsilon(1.0e-05)
// CHECK: tfm.return %[[Y]], %[[SUM]]
tfm.function @residual_sum_and_layer_norm(%x: !x, %r: !x, %g: !v) -> (!x, !x) {
  %s = tfm.add %x, %r : !x
  %y, %m, %d = tfm.layer_norm_stats %s, %g, %g epsilon(1.0e-5) : !x, !v -> !s
  tfm.return %y, %s : !x, !x
}

// CHECK-LABEL: tfm.function @residual_sum_and_rms_norm
// CHECK: tfm.add_rms_norm %arg0, %arg1, %arg2 epsilon(1.0e-05)
tfm.function @residual_sum_and_rms_norm(%x: !x, %r: !x, %g: !v) -> (!x, !x) {
  %s = tfm.add %x, %r : !x
  %y, %d = tfm.rms_norm_stats %s, %g epsilon(1.0e-5) : !x, !v -> !s
  tfm.return %y, %s : !x, !x
}

// The fused op stands at the norm, so nothing may read the sum before it.
// CHECK-LABEL: tfm.function @a_sum_that_is_read_before_stays
// CHECK: tfm.add %
// CHECK: tfm.silu
// CHECK: tfm.rms_norm_stats
tfm.function @a_sum_that_is_read_before_stays(%x: !x, %r: !x, %g: !v) -> (!x, !x) {
  %s = tfm.add %x, %r : !x
  %t = tfm.silu %s : !x
  %y, %d = tfm.rms_norm_stats %s, %g epsilon(1.0e-5) : !x, !v -> !s
  tfm.return %y, %t : !x, !x
}

// CHECK-LABEL: tfm.function @a_gradient_adds_onto_the_residual
// CHECK-NOT: tfm.add
// CHECK: %[[G:[^,]*]], %{{.*}} = tfm.rms_norm_grad %{{.*}}, %arg1 :
// CHECK: tfm.return %[[G]]
tfm.function @a_gradient_adds_onto_the_residual(%g: !x, %r: !x, %x: !x, %v: !v, %d: !s) -> !x {
  %gx, %gv = tfm.rms_norm_grad %g, %x, %v, %d : (!x, !x, !v, !s) -> (!x, !v)
  %y = tfm.add %r, %gx : !x
  tfm.return %y : !x
}

// CHECK-LABEL: tfm.function @a_gradient_with_another_use_stays
// CHECK: tfm.add
tfm.function @a_gradient_with_another_use_stays(%g: !x, %r: !x, %x: !x, %v: !v, %d: !s) -> (!x, !x) {
  %gx, %gv = tfm.rms_norm_grad %g, %x, %v, %d : (!x, !x, !v, !s) -> (!x, !v)
  %y = tfm.add %r, %gx : !x
  tfm.return %y, %gx : !x, !x
}

// x + norm(x): the kernel reads the gradient that it would add onto.
// CHECK-LABEL: tfm.function @a_gradient_does_not_add_onto_what_it_reads
// CHECK: tfm.rms_norm_grad
// CHECK: tfm.add
tfm.function @a_gradient_does_not_add_onto_what_it_reads(%g: !x, %x: !x, %v: !v, %d: !s) -> !x {
  %gx, %gv = tfm.rms_norm_grad %g, %x, %v, %d : (!x, !x, !v, !s) -> (!x, !v)
  %y = tfm.add %g, %gx : !x
  tfm.return %y : !x
}

// What it adds onto must exist before the gradient.
// CHECK-LABEL: tfm.function @the_residual_exists_where_the_gradient_is_computed
// CHECK: tfm.rms_norm_grad
// CHECK: tfm.silu
// CHECK: tfm.add
tfm.function @the_residual_exists_where_the_gradient_is_computed(%g: !x, %x: !x, %v: !v, %d: !s) -> !x {
  %gx, %gv = tfm.rms_norm_grad %g, %x, %v, %d : (!x, !x, !v, !s) -> (!x, !v)
  %r = tfm.silu %g : !x
  %y = tfm.add %r, %gx : !x
  tfm.return %y : !x
}

// CHECK-LABEL: tfm.function @a_linear_adds_onto_the_residual
// CHECK: tfm.linear_input_grad(%arg0), (%arg2) onto %arg1 :
// CHECK-NOT: tfm.add
tfm.function @a_linear_adds_onto_the_residual(%g: !x, %r: !x, %w: tensor<8x8xf32>) -> !x {
  %gx = tfm.linear_input_grad(%g), (%w) : (!x, tensor<8x8xf32>) -> !x
  %y = tfm.add %r, %gx : !x
  tfm.return %y : !x
}

// What the block reads elsewhere, too, comes first in the sum: the gradients of
// a group find each other behind it.
// CHECK-LABEL: tfm.function @rest_first.backward
// CHECK: tfm.linear_input_grad(%arg3, %arg2, %arg1), (%u, %w, %v) onto %arg0 group(0)
// CHECK-NOT: tfm.add
tfm.function @rest_first.backward(%r: !x, %a: !x, %b: !x, %c: !x) -> !x attributes {block = "rest_first"} {
  %v = tfm.param "v" init(ones) : tensor<8x8xf32>
  %w = tfm.param "w" init(ones) : tensor<8x8xf32>
  %u = tfm.param "u" init(ones) : tensor<8x8xf32>
  %ga = tfm.linear_input_grad(%a), (%v) group(0) : (!x, tensor<8x8xf32>) -> !x
  %ra = tfm.add %r, %ga : !x
  %gb = tfm.linear_input_grad(%b), (%w) group(0) : (!x, tensor<8x8xf32>) -> !x
  %rab = tfm.add %ra, %gb : !x
  %gc = tfm.linear_input_grad(%c), (%u) group(0) : (!x, tensor<8x8xf32>) -> !x
  %s = tfm.add %rab, %gc : !x
  tfm.return %s : !x
}
