// Places of tokens are inputs: a backward takes them again, whole or in pieces,
// and nothing of them is saved.
// RUN: mega-opt %s --mega-differentiate | FileCheck %s

#I = #dist.layout<>
#S = #dist.layout<[{}, {tp}]>
#SX = #dist.layout<[{}, {tp}, {}]>
#R = #dist.layout<replicated = {tp}>
!i = tensor<2x6xi32, #I>
!s = tensor<2x6xi32, #S>
!x = tensor<2x6x8xf32, #SX>
!w = tensor<7x8xf32, #R>
!h = tensor<2x6x2x4xf32, #I>

module attributes {dist.mesh = #dist.mesh<tp = 2>} {

// CHECK-LABEL: tfm.function @embed.backward(
// CHECK-SAME: saved_arguments = 0
// CHECK: %[[C:.*]] = dist.slice %arg1 {tp}
// CHECK: tfm.positions_grad %arg0, %[[C]] :
tfm.block @embed(%x: !x, %p: !i) -> !x {
  %w = tfm.param "w" init(ones) : !w
  %c = dist.slice %p {tp} : !i -> !s
  %y = tfm.add_positions %x, %w at %c : !x, !w, !s -> !x
  tfm.yield %y : !x
}

// CHECK-LABEL: tfm.function @attend.backward(
// CHECK-SAME: saved_arguments = 4
// CHECK: tfm.attention_grad {{.*}} at %arg1 in %arg2, %arg1 in %arg2 causal
// CHECK: tfm.rope %{{.*}} at %arg1 base(10000.0) inverse
tfm.block @attend(%q: !h, %p: !i, %s: !i) -> !h {
  %r = tfm.rope %q at %p base(10000.0) : !h, !i
  %y = tfm.attention %r, %r, %q at %p in %s, %p in %s causal scale(0.5) : !h, !h, !i, !i, !i, !i
  tfm.yield %y : !h
}
}
