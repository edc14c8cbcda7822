// RUN: mega-opt %s --mega-fuse-semantics -split-input-file -verify-diagnostics | FileCheck %s

!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>
!z = tensor<2x5x11xf32>
!l = tensor<2x5xi32>

// CHECK-LABEL: tfm.block @head_and_loss_are_joined(
// CHECK-SAME: %[[X:.*]]: tensor<2x5x8xf32>, %[[L:.*]]: tensor<2x5xi32>)
tfm.block @head_and_loss_are_joined(%x: !x, %l: !l) -> tensor<f32> {
  // CHECK: %[[W:.*]] = tfm.param "w"
  %w = tfm.param "w" init(ones) : !w
  // CHECK-NOT: tfm.linear
  // CHECK: %[[MAX:.*]], %[[SUM:.*]], %[[TARGET:.*]] = tfm.head_stats %[[X]], %[[W]], %[[L]] ignore(-7)
  // CHECK: %[[R:.*]] = tfm.head_rescale %[[SUM]], %[[MAX]], %[[MAX]]
  // CHECK: %[[Y:.*]] = tfm.head_loss %[[MAX]], %[[R]], %[[TARGET]], %[[L]] ignore(-7)
  // CHECK-NOT: tfm.cross_entropy
  %z = tfm.linear %x, %w : !x, !w -> !z
  %s = tfm.cross_entropy %z, %l ignore(-7) : !z, !l -> tensor<f32>
  // CHECK: tfm.yield %[[Y]]
  tfm.yield %s : tensor<f32>
}

// -----

!x = tensor<2x5x8xf32>
!l = tensor<2x5xi32>

tfm.block @cross_entropy_x2_no_linear(%x: !x, %l: !l) -> tensor<f32> {
  %z = tfm.silu %x : !x
  // expected-error@+1 {{the logits must come from a tfm.linear, so that they never exist as a whole}}
  %s = tfm.cross_entropy %z, %l ignore(-100) : !x, !l -> tensor<f32>
  tfm.yield %s : tensor<f32>
}

// -----

!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>
!z = tensor<2x5x11xf32>
!l = tensor<2x5xi32>

tfm.block @cross_entropy_x2_another_use(%x: !x, %l: !l) -> (tensor<f32>, !z) {
  %w = tfm.param "w" init(ones) : !w
  %z = tfm.linear %x, %w : !x, !w -> !z
  // expected-error@+1 {{the logits have another use, so they would have to exist as a whole}}
  %s = tfm.cross_entropy %z, %l ignore(-100) : !z, !l -> tensor<f32>
  // expected-note@+1 {{other use}}
  tfm.yield %s, %z : tensor<f32>, !z
}
