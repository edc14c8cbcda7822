// Ids of an input are below the smallest table they index.
// RUN: mega-opt %s --mega-differentiate --mega-shard-state --mega-emit-schedule | FileCheck %s

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>
!s = tensor<2x5xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}
tfm.block @plain(%x: !x, %t: !t) -> !x {
  %y = tfm.silu %x : !x
  tfm.yield %y : !x
}
// The second block of the cycle knows fewer ids than the embedding.
tfm.block @extended(%x: !x, %t: !t) -> !x {
  %w = tfm.param "v" init(ones) : tensor<7x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<7x8xf32> -> !x
  %y = tfm.add %x, %e : !x
  tfm.yield %y : !x
}
tfm.block @head(%x: !x, %l: !t) -> tensor<f32> {
  %w = tfm.param "head" init(ones) : tensor<13x8xf32>
  %m, %s, %t = tfm.head_stats %x, %w, %l ignore(-100) : !x, tensor<13x8xf32>, !t -> !s, !s, !s
  %y = tfm.head_loss %m, %s, %t, %l ignore(-100) : !s, !t -> tensor<f32>
  tfm.yield %y : tensor<f32>
}
// CHECK-DAG: exec.input "tokens" limit(7)
// CHECK-DAG: exec.input "labels" limit(13)
tfm.model @m max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %l = tfm.input "labels" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat [@plain, @extended] times 4(%x) with (%t) prefix "h" : !x with !t
  %z = tfm.call @head(%y, %l) : (!x, !t) -> tensor<f32>
  %n = tfm.count_valid %l ignore(-100) : !t -> tensor<i64>
  tfm.loss_term "lm", %z, %n : tensor<f32>, tensor<i64>
}
