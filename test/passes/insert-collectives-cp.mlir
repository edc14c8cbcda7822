// Sequences over ranks: three ways to the keys of the others.
// RUN: mega-opt %s --pass-pipeline='builtin.module(mega-place-tokens{cp=2},mega-annotate-layouts{cp=2 tp=2},mega-insert-collectives{cp-method=gather})' | FileCheck %s --check-prefixes=CHECK,GATHER
// RUN: mega-opt %s --pass-pipeline='builtin.module(mega-place-tokens{cp=2},mega-annotate-layouts{cp=2 tp=2},mega-insert-collectives{cp-method=ring})' | FileCheck %s --check-prefixes=CHECK,RING
// RUN: mega-opt %s --pass-pipeline='builtin.module(mega-place-tokens{cp=2},mega-annotate-layouts{cp=2 tp=2},mega-insert-collectives{cp-method=all-to-all})' | FileCheck %s --check-prefixes=CHECK,TRADE
// RUN: mega-opt %s --pass-pipeline='builtin.module(mega-place-tokens{cp=2 packed},mega-annotate-layouts{cp=2},mega-insert-collectives{cp-method=gather})' | FileCheck %s --check-prefix=PACKED

!t = tensor<4x16xi32>
!x = tensor<4x16x32xf32>
!h = tensor<4x16x4x8xf32>
!w = tensor<32x32xf32>

// Places of tokens are whole, everything else is cut.
// CHECK: tfm.block @layer(%arg0: tensor<4x16x32xf32, #dist.layout<[{}, {cp zigzag}, {}]>>, %[[P:.*]]: tensor<4x16xi32, #dist.layout<>>, %[[S:.*]]: tensor<4x16xi32, #dist.layout<>>) -> tensor<4x16x32xf32, #dist.layout<[{}, {cp zigzag}, {}]>>
// CHECK: tfm.param "n" init(ones) : tensor<32xf32, #dist.layout<replicated = {cp}>>
// CHECK: tfm.param "q" init(ones) : tensor<32x32xf32, #dist.layout<[{tp}, {}], replicated = {cp}>>
// Rows of a packed batch are balanced by the data: contiguous here.
// PACKED: tfm.block @layer(%arg0: tensor<4x16x32xf32, #dist.layout<[{}, {cp}, {}]>>
tfm.block @layer(%x: !x) -> !x {
  %n = tfm.param "n" init(ones) : tensor<32xf32>
  %wq = tfm.param "q" init(ones) : !w
  %wk = tfm.param "k" init(ones) : !w
  %wo = tfm.param "o" init(ones) : !w
  %y = tfm.rms_norm %x, %n epsilon(1.0e-5) : !x, tensor<32xf32>
  %q0 = tfm.linear %y, %wq : !x, !w -> !x
  %q = tfm.split_heads %q0 : !x -> !h
  %k0 = tfm.linear %y, %wk : !x, !w -> !x
  %k = tfm.split_heads %k0 : !x -> !h
  // The heads that tp cuts are cut further, and the sequence is whole.
  // TRADE: %[[Q:.*]] = dist.all_to_all %{{.*}} {cp} : tensor<4x16x4x8xf32, #dist.layout<[{}, {cp zigzag}, {tp}, {}]>> -> tensor<4x16x4x8xf32, #dist.layout<[{}, {}, {tp, cp}, {}]>>
  // TRADE: %[[K:.*]] = dist.all_to_all %{{.*}} {cp}
  // TRADE: %[[A:.*]] = tfm.attention %[[Q]], %[[K]], %[[K]] at %[[P]] in %[[S]], %[[P]] in %[[S]] causal
  // TRADE: %[[O:.*]] = dist.all_to_all %[[A]] {cp} : {{.*}} -> tensor<4x16x4x8xf32, #dist.layout<[{}, {cp zigzag}, {tp}, {}]>>
  // TRADE: tfm.merge_heads %[[O]]

  // Keys and values, here one, are gathered once; queries know their places.
  // GATHER: %[[K:.*]] = dist.all_gather %{{.*}} {cp} : {{.*}} -> tensor<4x16x4x8xf32, #dist.layout<[{}, {}, {tp}, {}], replicated = {cp}>>
  // GATHER-NOT: all_gather
  // GATHER: %[[QP:.*]] = dist.slice %[[P]] {cp} : tensor<4x16xi32, #dist.layout<>> -> tensor<4x16xi32, #dist.layout<[{}, {cp zigzag}]>>
  // GATHER: %[[QS:.*]] = dist.slice %[[S]] {cp}
  // GATHER: tfm.attention %{{.*}}, %[[K]], %[[K]] at %[[QP]] in %[[QS]], %[[P]] in %[[S]] causal

  // RING-NOT: all_gather
  // RING: %[[QP:.*]] = dist.slice %[[P]] {cp}
  // RING: %[[QS:.*]] = dist.slice %[[S]] {cp}
  // RING: tfm.attention %{{.*}}, %[[K:.*]], %[[K]] at %[[QP]] in %[[QS]], %[[P]] in %[[S]] ring causal
  %a = tfm.attention %q, %k, %k causal scale(0.5) : !h, !h
  %m = tfm.merge_heads %a : !h -> !x
  %o = tfm.linear %m, %wo : !x, !w -> !x
  // A dropout counts tokens by their places.
  // CHECK: tfm.dropout "d" %{{.*}} at %{{.*}} in %{{.*}} p(0.5) :
  %d = tfm.dropout "d" %o p(0.5) : !x
  tfm.yield %d : !x
}
tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "e" init(ones) : tensor<11x32xf32>
  %y = tfm.embedding %t, %w : !t, tensor<11x32xf32> -> !x
  tfm.yield %y : !x
}
tfm.block @head(%x: !x, %l: !t) -> tensor<f32> {
  %w = tfm.param "w" init(ones) : tensor<11x32xf32>
  %max, %sum, %target = tfm.head_stats %x, %w, %l ignore(-100) : !x, tensor<11x32xf32>, !t -> tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
  %s = tfm.head_rescale %sum, %max, %max : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
  %loss = tfm.head_loss %max, %s, %target, %l ignore(-100) : tensor<4x16xf32>, !t -> tensor<f32>
  tfm.yield %loss : tensor<f32>
}
// Labels are cut like tokens; what counts is a sum over cp.
// CHECK: %labels = tfm.input "labels" : tensor<4x16xi32, #dist.layout<[{}, {cp zigzag}]>>
// CHECK: %positions = tfm.input "positions" : tensor<4x16xi32, #dist.layout<>>
// CHECK: %segment_ids = tfm.input "segment_ids" : tensor<4x16xi32, #dist.layout<>>
tfm.model @m max_sequence(16) {
  %t = tfm.input "tokens" : !t
  %l = tfm.input "labels" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.call @layer(%x) : (!x) -> !x
  %loss = tfm.call @head(%y, %l) : (!x, !t) -> tensor<f32>
  // CHECK: tfm.count_valid %labels ignore(-100) : {{.*}} -> tensor<i64, #dist.layout<partial = {cp}>>
  %n = tfm.count_valid %l ignore(-100) : !t -> tensor<i64>
  tfm.loss_term "lm", %loss, %n : tensor<f32>, tensor<i64>
}
