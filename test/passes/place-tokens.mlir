// Inputs for the places of tokens reach the ops that look at positions.
// RUN: mega-opt %s --mega-place-tokens=packed | FileCheck %s

!t = tensor<?x?xi32>
!x = tensor<?x?x8xf32>
!h = tensor<?x?x2x4xf32>

// Positions only.
// CHECK: tfm.block @embed(%{{.*}}: tensor<?x?xi32>, %[[P:.*]]: tensor<?x?xi32>) ->
// CHECK: tfm.add_positions %{{.*}}, %{{.*}} at %[[P]] :
tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %p = tfm.param "p" init(ones) : tensor<16x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  %y = tfm.add_positions %e, %p : !x, tensor<16x8xf32> -> !x
  tfm.yield %y : !x
}
// CHECK: tfm.block @attend(%{{.*}}: tensor<?x?x8xf32>, %[[P:.*]]: tensor<?x?xi32>, %[[S:.*]]: tensor<?x?xi32>) ->
// CHECK: tfm.rope %{{.*}} at %[[P]] base(10000.0) :
// CHECK: tfm.attention %{{.*}}, %{{.*}}, %{{.*}} at %[[P]] in %[[S]], %[[P]] in %[[S]] causal scale(0.5) :
tfm.block @attend(%x: !x) -> !x {
  %q = tfm.split_heads %x : !x -> !h
  %r = tfm.rope %q base(10000.0) : !h
  %a = tfm.attention %r, %r, %q causal scale(0.5) : !h, !h
  %y = tfm.merge_heads %a : !h -> !x
  tfm.yield %y : !x
}
// The blocks of a cycle take the same arguments.
// CHECK: tfm.block @plain(%{{.*}}: tensor<?x?x8xf32>, %{{.*}}: tensor<?x?xi32>, %{{.*}}: tensor<?x?xi32>) ->
tfm.block @plain(%x: !x) -> !x {
  %y = tfm.silu %x : !x
  tfm.yield %y : !x
}
// Nothing here looks at positions.
// CHECK: tfm.block @alone(%{{.*}}: tensor<?x?x8xf32>) ->
tfm.block @alone(%x: !x) -> !x {
  %y = tfm.silu %x : !x
  tfm.yield %y : !x
}

// CHECK: tfm.model @m
// CHECK-NEXT: %tokens = tfm.input "tokens"
// CHECK-NEXT: %positions = tfm.input "positions" : tensor<?x?xi32>
// CHECK: %segment_ids = tfm.input "segment_ids" : tensor<?x?xi32>
// CHECK: tfm.call @embed(%tokens, %positions) : (tensor<?x?xi32>, tensor<?x?xi32>) ->
// CHECK: tfm.repeat [@plain x2, @attend] times 6(%{{.*}}) with (%positions, %segment_ids) prefix "h" : tensor<?x?x8xf32> with tensor<?x?xi32>, tensor<?x?xi32>
// CHECK: tfm.call @alone(%{{.*}}) : (tensor<?x?x8xf32>) ->
tfm.model @m max_sequence(16) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat [@plain x2, @attend] times 6(%x) prefix "h" : !x
  %z = tfm.call @alone(%y) : (!x) -> !x
}
