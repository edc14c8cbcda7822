// The collectives of a Llama layer per micro-batch, and nothing else: two
// all_reduce each way; along the sequence two all_gather and two reduce_scatter
// each way, and two all_gather more in the backward, where what was gathered is
// gathered again instead of kept.
// RUN: mega-opt %s "--mega-annotate-layouts=tp=2" --mega-insert-collectives --mega-verify-layouts --canonicalize --mega-choose-recompute --mega-differentiate --canonicalize --mega-verify-layouts | FileCheck %s
// RUN: mega-opt %s "--mega-annotate-layouts=tp=2 dp=3" --mega-insert-collectives=sequence-parallel --mega-verify-layouts --canonicalize --mega-choose-recompute --mega-differentiate --canonicalize --mega-verify-layouts | FileCheck %s --check-prefix SP

!t = tensor<6x8xi32>
!x = tensor<6x8x24xf32>
!h = tensor<6x8x4x6xf32>
!kv = tensor<6x8x2x6xf32>
!p = tensor<6x8x12xf32>
!f = tensor<6x8x20xf32>
!v = tensor<24xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "w" init(normal, 0.02) : tensor<11x24xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x24xf32> -> !x
  tfm.yield %e : !x
}
tfm.block @layer(%x: !x) -> !x {
  %g1 = tfm.param "g1" init(ones) : !v
  %wq = tfm.param "q" init(normal, 0.02) : tensor<24x24xf32>
  %bq = tfm.param "q.bias" init(zeros) : !v
  %wk = tfm.param "k" init(normal, 0.02) : tensor<12x24xf32>
  %wv = tfm.param "v" init(normal, 0.02) : tensor<12x24xf32>
  %qn = tfm.param "q_norm" init(ones) : tensor<6xf32>
  %wo = tfm.param "o" init(normal, 0.02) : tensor<24x24xf32>
  %bo = tfm.param "o.bias" init(zeros) : !v
  %n = tfm.rms_norm %x, %g1 epsilon(1.0e-5) : !x, !v
  %q0 = tfm.linear %n, %wq : !x, tensor<24x24xf32> -> !x
  %q1 = tfm.add_bias %q0, %bq : !x, !v
  %q2 = tfm.split_heads %q1 : !x -> !h
  %q3 = tfm.rms_norm %q2, %qn epsilon(1.0e-5) : !h, tensor<6xf32>
  %q = tfm.rope %q3 base(10000.0) : !h
  %k0 = tfm.linear %n, %wk : !x, tensor<12x24xf32> -> !p
  %k1 = tfm.split_heads %k0 : !p -> !kv
  %k = tfm.rope %k1 base(10000.0) : !kv
  %v0 = tfm.linear %n, %wv : !x, tensor<12x24xf32> -> !p
  %v = tfm.split_heads %v0 : !p -> !kv
  %a0 = tfm.attention %q, %k, %v causal scale(0.4) : !h, !kv
  %a = tfm.merge_heads %a0 : !h -> !x
  %o0 = tfm.linear %a, %wo : !x, tensor<24x24xf32> -> !x
  %o = tfm.add_bias %o0, %bo : !x, !v
  %y = tfm.add %x, %o : !x
  %g2 = tfm.param "g2" init(ones) : !v
  %wg = tfm.param "gate" init(normal, 0.02) : tensor<20x24xf32>
  %wu = tfm.param "up" init(normal, 0.02) : tensor<20x24xf32>
  %wd = tfm.param "down" init(normal, 0.02) : tensor<24x20xf32>
  %n2 = tfm.rms_norm %y, %g2 epsilon(1.0e-5) : !x, !v
  %gate = tfm.linear %n2, %wg : !x, tensor<20x24xf32> -> !f
  %up = tfm.linear %n2, %wu : !x, tensor<20x24xf32> -> !f
  %u = tfm.gated silu %gate, %up : !f
  %d = tfm.linear %u, %wd : !f, tensor<24x20xf32> -> !x
  %z = tfm.add %y, %d : !x
  tfm.yield %z : !x
}
tfm.block @head(%x: !x, %l: !t) -> tensor<f32> {
  %w = tfm.param "lm_head" init(normal, 0.02) : tensor<11x24xf32>
  %m, %s, %t = tfm.head_stats %x, %w, %l ignore(-100) : !x, tensor<11x24xf32>, !t
    -> tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>
  %r = tfm.head_rescale %s, %m, %m : tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>
  %sum = tfm.head_loss %m, %r, %t, %l ignore(-100) : tensor<6x8xf32>, !t -> tensor<f32>
  tfm.yield %sum : tensor<f32>
}
tfm.model @m max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %l = tfm.input "labels" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat @layer times 2(%x) prefix "h" : !x
  %s = tfm.call @head(%y, %l) : (!x, !t) -> tensor<f32>
  %n = tfm.count_valid %l ignore(-100) : !t -> tensor<i64>
  tfm.loss_term "lm", %s, %n : tensor<f32>, tensor<i64>
}

// CHECK: dist.mesh = #dist.mesh<tp = 2>
// A table cut by vocabulary, padded from 11 to 12 rows, makes a sum.
// CHECK-LABEL: tfm.function @embed.forward
// CHECK: tfm.embedding {{.*}} tensor<11x24xf32, #dist.layout<[{tp, pad 12}, {}]>> -> tensor<6x8x24xf32, #dist.layout<partial = {tp}>>
// CHECK: dist.all_reduce
// Its gradient is cut alike: no collective.
// CHECK-LABEL: tfm.function @embed.backward
// CHECK-NOT: dist.all_reduce
// CHECK: tfm.embedding_grad {{.*}} -> tensor<11x24xf32, #dist.layout<[{tp, pad 12}, {}]>>

// CHECK-LABEL: tfm.function @layer.forward
// CHECK-NOT: dist.{{all|reduce}}
// CHECK: dist.all_reduce
// CHECK-NOT: dist.{{all|reduce}}
// A row-parallel bias is added once, after the reduction.
// CHECK: tfm.add_bias {{.*}} : tensor<6x8x24xf32, #dist.layout<>>, tensor<24xf32, #dist.layout<>>
// CHECK: dist.all_reduce
// CHECK-NOT: dist.{{all|reduce}}
// CHECK-LABEL: tfm.function @layer.backward
// CHECK-NOT: dist.{{all|reduce}}
// CHECK: dist.all_reduce
// CHECK-NOT: dist.{{all|reduce}}
// Norms of heads see their own heads only: a sum, to be reduced at step end.
// CHECK: tfm.accumulate_gradient {{.*}} into "q_norm" : tensor<6xf32, #dist.layout<partial = {tp}>>
// CHECK-NOT: dist.{{all|reduce}}
// CHECK: dist.all_reduce
// CHECK-NOT: dist.{{all|reduce}}
// Without sequence parallelism the norm's gradient is complete.
// CHECK: tfm.accumulate_gradient {{.*}} into "g1" : tensor<24xf32, #dist.layout<>>
// CHECK-LABEL: tfm.block @head

// The head: the maximum, then the sums.
// CHECK-LABEL: tfm.function @head.forward
// CHECK: dist.all_reduce %{{.*}} {tp} : tensor<6x8xf32, #dist.layout<partial = {tp max}>> -> tensor<6x8xf32, #dist.layout<>>
// CHECK-COUNT-2: dist.all_reduce %{{.*}} {tp} : tensor<6x8xf32, #dist.layout<partial = {tp}>>
// CHECK-NOT: dist.all_reduce
// CHECK-LABEL: tfm.function @head.backward

// SP: dist.mesh = #dist.mesh<tp = 2, dp = 3>
// SP-LABEL: tfm.function @embed.forward
// SP: dist.reduce_scatter
// SP-LABEL: tfm.function @layer.forward
// SP-NOT: dist.{{all|reduce}}
// SP: dist.all_gather
// SP-NOT: dist.{{all|reduce}}
// SP: dist.reduce_scatter
// SP-NOT: dist.{{all|reduce}}
// SP: dist.all_gather
// SP-NOT: dist.{{all|reduce}}
// SP: dist.reduce_scatter
// SP-NOT: dist.{{all|reduce}}
// SP-LABEL: tfm.function @layer.backward
// SP-NOT: dist.{{all|reduce}}
// SP: dist.all_gather %arg0 {tp}
// SP-NOT: dist.{{all|reduce}}
// SP: dist.all_gather %arg{{.*}} {tp}
// SP-NOT: dist.{{all|reduce}}
// SP: dist.reduce_scatter
// SP-NOT: dist.{{all|reduce}}
// SP: tfm.accumulate_gradient {{.*}} into "o.bias" : tensor<24xf32, #dist.layout<partial = {tp, dp}>>
// SP-NOT: dist.{{all|reduce}}
// SP: dist.all_gather
// SP-NOT: dist.{{all|reduce}}
// SP: dist.all_gather %arg{{.*}} {tp}
// SP-NOT: dist.{{all|reduce}}
// SP: dist.reduce_scatter
// SP-NOT: dist.{{all|reduce}}
// SP: tfm.accumulate_gradient {{.*}} into "g1" : tensor<24xf32, #dist.layout<partial = {tp, dp}>>
// SP-LABEL: tfm.block @head
// The loss is a sum over the replicas, reduced once per step.
// SP-LABEL: tfm.function @head.forward
// SP-SAME: -> (tensor<f32, #dist.layout<partial = {dp}>>
