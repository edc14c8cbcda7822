// Ops with the places of tokens in their documents.
// RUN: mega-opt %s | mega-opt | FileCheck %s

!i = tensor<2x5xi32>
!x = tensor<2x5x24xf32>
!h = tensor<2x5x6x4xf32>
!k = tensor<2x5x2x4xf32>
!l = tensor<2x6x5xf32>

// CHECK-LABEL: @packed
func.func @packed(%x: !x, %w: tensor<8x24xf32>, %q: !h, %k: !k, %p: !i, %s: !i) {
  // CHECK: tfm.add_positions %{{.*}}, %{{.*}} at %[[P:.*]] : tensor<2x5x24xf32>, tensor<8x24xf32>, tensor<2x5xi32> -> tensor<2x5x24xf32>
  %y = tfm.add_positions %x, %w at %p : !x, tensor<8x24xf32>, !i -> !x
  // CHECK: tfm.rope %{{.*}} at %[[P]] base(10000.0) inverse : tensor<2x5x6x4xf32>, tensor<2x5xi32>
  %r = tfm.rope %q at %p base(10000.0) inverse : !h, !i
  // CHECK: tfm.attention %{{.*}}, %{{.*}}, %{{.*}} at %[[P]] in %[[S:.*]], %[[P]] in %[[S]] causal window(3) scale(0.5) : tensor<2x5x6x4xf32>, tensor<2x5x2x4xf32>, tensor<2x5xi32>, tensor<2x5xi32>, tensor<2x5xi32>, tensor<2x5xi32>
  %a = tfm.attention %q, %k, %k at %p in %s, %p in %s causal window(3) scale(0.5) : !h, !k, !i, !i, !i, !i
  // CHECK: tfm.attention_stats %{{.*}}, %{{.*}}, %{{.*}} at %[[P]] in %[[S]], %[[P]] in %[[S]] causal scale(0.5) : {{.*}}, tensor<2x5xi32>, tensor<2x5xi32>, tensor<2x5xi32>, tensor<2x5xi32> -> tensor<2x6x5xf32>
  %b, %l = tfm.attention_stats %q, %k, %k at %p in %s, %p in %s causal scale(0.5) : !h, !k, !i, !i, !i, !i -> !l
  // CHECK: tfm.attention_grad {{.*}} at %[[P]] in %[[S]], %[[P]] in %[[S]] causal scale(0.5) : {{.*}}, tensor<2x5xi32>, tensor<2x5xi32>, tensor<2x5xi32>, tensor<2x5xi32> -> tensor<2x5x2x4xf32>
  %gq, %gk, %gv = tfm.attention_grad %a, %q, %k, %k, %b, %l at %p in %s, %p in %s causal scale(0.5) : !h, !k, !l, !i, !i, !i, !i -> !k
  // CHECK: tfm.positions_grad %{{.*}}, %[[P]] : (tensor<2x5x24xf32>, tensor<2x5xi32>) -> tensor<8x24xf32>
  %gw = tfm.positions_grad %y, %p : (!x, !i) -> tensor<8x24xf32>
  return
}
