// What a backward leaves to a function of its own: gradients of weights that
// nothing else needs, and what only they need.
// RUN: mega-opt %s --mega-differentiate --mega-split-weight | FileCheck %s

!x = tensor<2x5x8xf32>
!m = tensor<8x8xf32>
!v = tensor<8xf32>
!t = tensor<2x5xi32>
!r = tensor<2x5xf32>

tfm.shared @wte = "wte" init(ones) : tensor<11x8xf32>

tfm.block @gradients_of_weights_move(%x: !x) -> !x {
  %w = tfm.param "w" init(ones) : !m
  %y = tfm.linear %x, %w : !x, !m -> !x
  %z = tfm.silu %y : !x
  %s = tfm.add %z, %x : !x
  tfm.yield %s : !x
}
// CHECK-LABEL: tfm.function @gradients_of_weights_move.forward(
// CHECK-SAME: saved_results = 2 : i64}
// The gradient of the linear's result depends on gradients: it is saved.
// CHECK-LABEL: tfm.function @gradients_of_weights_move.backward(
// CHECK-SAME: saved_arguments = 2 : i64, saved_results = 1 : i64}
// CHECK: %[[GY:.*]] = tfm.silu_grad
// CHECK: %[[GX:.*]] = tfm.linear_input_grad(%[[GY]])
// CHECK: %[[R:.*]] = tfm.add
// CHECK-NOT: tfm.linear_weight_grad
// CHECK: tfm.return %[[R]], %[[GY]] : tensor<2x5x8xf32>, tensor<2x5x8xf32>
// All of the frame is passed: x and y of the forward, then that of the backward.
// CHECK-LABEL: tfm.function @gradients_of_weights_move.weight(
// CHECK-SAME: %[[X:.*]]: tensor<2x5x8xf32>, %{{.*}}: tensor<2x5x8xf32>, %[[GY:.*]]: tensor<2x5x8xf32>)
// CHECK-SAME: block = "gradients_of_weights_move", saved_arguments = 3 : i64
// CHECK-NEXT: %[[GW:.*]] = tfm.linear_weight_grad %[[X]], (%[[GY]])
// CHECK-NEXT: tfm.accumulate_gradient %[[GW]] into "w"
// CHECK-NEXT: tfm.return

tfm.block @what_is_made_on_the_way_stays(%x: !x) -> !x {
  %g = tfm.param "g" init(ones) : !v
  %b = tfm.param "b" init(ones) : !v
  %y = tfm.layer_norm %x, %g, %b epsilon(1.0e-5) : !x, !v
  tfm.yield %y : !x
}
// CHECK-LABEL: tfm.function @what_is_made_on_the_way_stays.backward(
// CHECK-SAME: saved_results = 0 : i64}
// CHECK: tfm.layer_norm_grad
// CHECK: tfm.accumulate_gradient
// CHECK: tfm.accumulate_gradient
// CHECK-NOT: @what_is_made_on_the_way_stays.weight

// Nothing waits for an embedding: its backward saves what came, its weight takes
// the ids again.
tfm.block @all_of_it_waits(%t: !t) -> !x {
  %w = tfm.use @wte : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}
// CHECK-LABEL: tfm.function @all_of_it_waits.backward(
// CHECK-SAME: %[[G:.*]]: tensor<2x5x8xf32>, %{{.*}}: tensor<2x5xi32>) -> tensor<2x5x8xf32>
// CHECK-SAME: saved_results = 1 : i64}
// CHECK-NEXT: tfm.return %[[G]]
// CHECK-LABEL: tfm.function @all_of_it_waits.weight(
// CHECK-SAME: %[[T:.*]]: tensor<2x5xi32>, %[[G:.*]]: tensor<2x5x8xf32>)
// CHECK-SAME: saved_arguments = 1 : i64
// CHECK-NEXT: %[[GW:.*]] = tfm.embedding_grad %[[T]], %[[G]]
// CHECK-NEXT: tfm.accumulate_gradient %[[GW]] into @wte

// What follows from saved values alone is computed again, not saved.
tfm.block @computed_again_for_both(%x: !x) -> !x attributes {recompute = #tfm.recompute<selective>} {
  %w = tfm.param "w" init(ones) : !m
  %v = tfm.param "v" init(ones) : !m
  %y = tfm.linear %x, %w : !x, !m -> !x
  %z = tfm.silu %y : !x
  %u = tfm.silu %z : !x
  %o = tfm.linear %u, %v : !x, !m -> !x
  tfm.yield %o : !x
}
// CHECK-LABEL: tfm.function @computed_again_for_both.backward(
// CHECK: %[[Z:.*]] = tfm.silu
// CHECK-NOT: tfm.silu %
// CHECK: tfm.silu_grad {{.*}}, %[[Z]]
// CHECK-LABEL: tfm.function @computed_again_for_both.weight(
// CHECK: %[[Z:.*]] = tfm.silu
// CHECK: %[[U:.*]] = tfm.silu %[[Z]]
// CHECK: tfm.linear_weight_grad %[[U]]
