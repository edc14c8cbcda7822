// Cross entropy and the fused head: what is printed parses to the same.
// RUN: mega-opt %s | mega-opt | FileCheck %s
// RUN: mega-opt %s -mlir-print-op-generic | mega-opt | FileCheck %s

!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>
!l = tensor<2x5xi32>
!s = tensor<2x5xf32>

// CHECK-LABEL: func.func @logits_as_a_whole
func.func @logits_as_a_whole(%z: tensor<?x?x11xf32>, %l: tensor<?x?xi32>) {
  // CHECK: tfm.cross_entropy %{{.*}}, %{{.*}} ignore(-100) : tensor<?x?x11xf32>, tensor<?x?xi32> -> tensor<f32>
  %s = tfm.cross_entropy %z, %l ignore(-100) : tensor<?x?x11xf32>, tensor<?x?xi32> -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @logits_by_tiles
func.func @logits_by_tiles(%x: !x, %w: !w, %l: !l, %other: !s) {
  // CHECK: tfm.head_stats %{{.*}}, %{{.*}}, %{{.*}} ignore(-1) : tensor<2x5x8xf32>, tensor<11x8xf32>, tensor<2x5xi32> -> tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  %m, %s, %t = tfm.head_stats %x, %w, %l ignore(-1) : !x, !w, !l -> !s, !s, !s
  // CHECK: tfm.head_rescale %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  %r = tfm.head_rescale %s, %m, %other : !s, !s, !s
  // CHECK: tfm.head_loss %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} ignore(-1) : tensor<2x5xf32>, tensor<2x5xi32> -> tensor<f32>
  %y = tfm.head_loss %m, %r, %t, %l ignore(-1) : !s, !l -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @its_gradients
func.func @its_gradients(%x: !x, %w: !w, %l: !l, %s: !s, %seed: tensor<f32>) {
  // CHECK: tfm.head_loss_grad %{{.*}} {ignore = -1 : i64} : (tensor<f32>, tensor<2x5xf32>, tensor<2x5xi32>) -> (tensor<2x5xf32>, tensor<2x5xf32>)
  %gs, %gt = tfm.head_loss_grad %seed, %s, %l {ignore = -1 : i64} : (tensor<f32>, !s, !l) -> (!s, !s)
  // CHECK: tfm.head_rescale_grad
  %r = tfm.head_rescale_grad %gs, %s, %s : (!s, !s, !s) -> !s
  // CHECK: tfm.head_stats_grad %{{.*}} {ignore = -1 : i64}
  // CHECK-SAME: -> (tensor<2x5x8xf32>, tensor<11x8xf32>)
  %gx, %gw = tfm.head_stats_grad %x, %w, %l, %s, %r, %gt {ignore = -1 : i64}
    : (!x, !w, !l, !s, !s, !s) -> (!x, !w)
  return
}
