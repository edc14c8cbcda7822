// Both stages of a pipeline: what their programs read and leave, transfers, the end of
// the step, and the order of all of it.
// RUN: mega-opt %s --mega-annotate-layouts=pp=2 --mega-differentiate --mega-partition-pipeline="pp=2 stage=0 stages='E 3L | 2L H'" --mega-shard-state --mega-emit-schedule="pp=2 micro-batches=3" | FileCheck %s --check-prefix=FIRST
// RUN: mega-opt %s --mega-annotate-layouts=pp=2 --mega-differentiate --mega-partition-pipeline="pp=2 stage=1 stages='E 3L | 2L H'" --mega-shard-state --mega-emit-schedule="pp=2 micro-batches=3" | FileCheck %s --check-prefix=LAST
// RUN: mega-opt %s --mega-annotate-layouts=pp=2 --mega-differentiate --mega-partition-pipeline="pp=2 stage=0 stages='E 3L | 2L H'" --mega-shard-state --mega-emit-schedule="pp=2 micro-batches=3 schedule=gpipe" | FileCheck %s --check-prefix=GPIPE
// RUN: mega-opt %s --mega-annotate-layouts=pp=3 --mega-differentiate --mega-partition-pipeline="pp=3 stage=1" --mega-emit-schedule="pp=3 micro-batches=1" | FileCheck %s --check-prefix=MIDDLE
// RUN: mega-opt %s --mega-annotate-layouts=pp=2 --mega-differentiate --mega-partition-pipeline="pp=2 vpp=2 stage=0 stages='E L | 2L | L | L H'" --mega-shard-state --mega-emit-schedule="pp=2 vpp=2 micro-batches=2" | FileCheck %s --check-prefix=CHUNKS

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>
!s = tensor<2x5xf32>

tfm.shared @table = "table" init(normal, 0.02) : !w
tfm.block @embed(%t: !t) -> !x {
  %w = tfm.use @table : !w
  %e = tfm.embedding %t, %w : !t, !w -> !x
  tfm.yield %e : !x
}
tfm.block @sliding(%x: !x) -> !x {
  %y = tfm.silu %x : !x
  tfm.yield %y : !x
}
tfm.block @full(%x: !x) -> !x {
  %y = tfm.gelu %x erf : !x
  tfm.yield %y : !x
}
tfm.block @head(%x: !x, %l: !t) -> tensor<f32> {
  %w = tfm.use @table : !w
  %m, %s, %t = tfm.head_stats %x, %w, %l ignore(-100) : !x, !w, !t -> !s, !s, !s
  %y = tfm.head_loss %m, %s, %t, %l ignore(-100) : !s, !t -> tensor<f32>
  tfm.yield %y : tensor<f32>
}
tfm.model @cycle max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %l = tfm.input "labels" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat [@sliding x2, @full] times 5(%x) prefix "h" : !x
  %z = tfm.call @head(%y, %l) : (!x, !t) -> tensor<f32>
  %n = tfm.count_valid %l ignore(-100) : !t -> tensor<i64>
  tfm.loss_term "lm", %z, %n weight(0.5) : tensor<f32>, tensor<i64>
}

// Both stages end up with the whole gradient of the table; it counts on the first.
// FIRST-LABEL: tfm.function @tie()
// FIRST-NEXT: %[[OWN:.*]] = tfm.bucket_gradient @decayed_tied
// FIRST-NEXT: %[[ALL:.*]] = tfm.sum_stages %[[OWN]] tie
// FIRST-NEXT: tfm.store_gradient @decayed_tied, %[[ALL]]
// FIRST-LABEL: tfm.function @norm()
// FIRST-NEXT: %[[G:.*]] = tfm.bucket_gradient @decayed_tied
// FIRST-NEXT: %[[SQUARES:.*]] = tfm.sum_squares %[[G]]
// FIRST-NEXT: tfm.record "gradient_square_sum", %[[SQUARES]]
// FIRST-LABEL: tfm.function @finish()
// FIRST: tfm.read_counter "gradient_square_sum"

// The first stage counts labels for the report; its backward has no seed.
// FIRST-LABEL: tfm.function @prologue(
// FIRST: tfm.record "lm.count"
// FIRST-NOT: tfm.loss_seed
// FIRST-LABEL: pipe.program @step.forward kind(forward) part(0)
// FIRST-NOT: pipe.boundary
// FIRST: %[[A:.*]] = pipe.call @embed.forward
// FIRST-NEXT: %[[B:.*]] = pipe.call @sliding.forward(%[[A]]) application(1) count(2)
// FIRST-NEXT: %[[C:.*]] = pipe.call @full.forward(%[[B]]) application(3)
// FIRST-NEXT: pipe.leave %[[C]]
// FIRST-LABEL: pipe.program @step.backward kind(backward) part(0)
// FIRST-NEXT: %[[D:.*]] = pipe.boundary
// FIRST-NEXT: %[[E:.*]] = pipe.call @full.backward(%[[D]]) application(3) reverse
// FIRST-NEXT: pipe.call @sliding.backward(%[[E]]) application(1) count(2) reverse
// FIRST: pipe.call @embed.backward
// FIRST-NOT: pipe.leave

// Losses and squares of all stages.
// FIRST-LABEL: tfm.function @sum()
// FIRST: tfm.read_counter "lm.sum"
// FIRST-NEXT: tfm.sum_stages %{{[0-9]+}} :
// FIRST-NEXT: tfm.record "lm.sum"
// FIRST-NEXT: tfm.read_counter "gradient_square_sum"
// FIRST-NEXT: tfm.sum_stages
// FIRST-NEXT: tfm.record "gradient_square_sum"

// Activations go in group 0, gradients in group 1, one stage further. The part of a
// transfer is the one whose result is moved.
// FIRST: exec.function @activation.send.launch
// FIRST: exec.launch "send_start"(%{{.*}}) integers (0, 1) : !exec.buf<2x5x8xf32>
// FIRST: pipe.program @activation.send kind(transfer) part(0)
// FIRST-NEXT: %[[F:.*]] = pipe.boundary : tensor<2x5x8xf32
// FIRST-NEXT: pipe.call @activation.send.launch(%[[F]])
// FIRST: exec.launch "receive_start"(%{{.*}}) integers (1, 1)
// FIRST: pipe.program @gradient.receive kind(transfer) part(1)
// FIRST: exec.launch "send_wait"(%{{.*}}) integers (0, 1)
// FIRST: pipe.program @activation.sent kind(transfer) part(0)
// FIRST: exec.launch "receive_wait"(%{{.*}}) integers (1, 1)
// FIRST: pipe.program @gradient.received kind(transfer) part(1)

// 1F1B: one forward ahead. Numbers are micro-batch, slot and buffer: two slots,
// and three buffers. A receive is posted before the run that precedes its own.
// FIRST: pipe.schedule @train stage(0) micro_batches(3) [@step.prologue(0, 0),
// FIRST-SAME: @step.forward(0, 0), @activation.send(0, 0),
// FIRST-SAME: @gradient.receive(0, 0, 1), @step.forward(1, 1, 2), @activation.send(1, 0, 2), @activation.sent(0, 0),
// FIRST-SAME: @gradient.received(0, 0, 1), @step.backward(0, 0, 1), @activation.sent(1, 0, 2),
// FIRST-SAME: @gradient.receive(1, 0), @step.forward(2, 0, 1), @activation.send(2, 0, 1),
// FIRST-SAME: @gradient.receive(2, 0, 2), @gradient.received(1, 0), @step.backward(1, 1), @activation.sent(2, 0, 1),
// FIRST-SAME: @gradient.received(2, 0, 2), @step.backward(2, 0, 2),
// FIRST-SAME: @step.tie(0, 0), @step.norm(0, 0), @step.sum(0, 0), @step.finish(0, 0)]

// Forwards only, in one slot; no gradients come.
// FIRST: pipe.schedule @eval stage(0) micro_batches(3) [@step.prologue.eval(0, 0),
// FIRST-NOT: gradient
// FIRST-SAME: @step.forward.eval(2, 0), @activation.send(2, 0), @activation.sent(1, 0, 1), @activation.sent(2, 0), @step.sum.eval(0, 0)]

// The table is no news in the norm.
// LAST-LABEL: tfm.function @norm()
// LAST-NEXT: tfm.zero_counter "gradient_square_sum"
// LAST-NEXT: tfm.return
// LAST-LABEL: tfm.function @prologue(
// LAST: tfm.loss_seed
// LAST-LABEL: pipe.program @step.forward kind(forward) part(1)
// LAST-NEXT: %[[A:.*]] = pipe.boundary
// LAST-NEXT: %[[B:.*]] = pipe.call @sliding.forward(%[[A]]) application(4) count(2)
// LAST: %[[C:.*]] = pipe.call @head.forward(%[[B]], %{{.*}}) application(6)
// LAST-NEXT: pipe.call @loss.lm(%[[C]])
// LAST-NOT: pipe.leave
// LAST-LABEL: pipe.program @step.backward kind(backward) part(1)
// LAST-NEXT: %[[D:.*]] = pipe.counter "lm.seed"
// LAST: %[[E:.*]] = pipe.call @head.backward(%[[D]], %{{.*}}) application(6) reverse
// LAST-NEXT: %[[F:.*]] = pipe.call @sliding.backward(%[[E]]) application(4) count(2) reverse
// LAST-NEXT: pipe.leave %[[F]]
// LAST: exec.launch "receive_start"(%{{.*}}) integers (0, 1)
// LAST: pipe.program @activation.receive kind(transfer) part(0)
// LAST: exec.launch "send_start"(%{{.*}}) integers (1, 1)
// LAST: pipe.program @gradient.send kind(transfer) part(1)

// Backward follows forward: one slot, two buffers.
// LAST: pipe.schedule @train stage(1) micro_batches(3) [@step.prologue(0, 0),
// LAST-SAME: @activation.receive(0, 0), @activation.received(0, 0), @step.forward(0, 0),
// LAST-SAME: @activation.receive(1, 0), @step.backward(0, 0, 1), @gradient.send(0, 0, 1),
// LAST-SAME: @activation.received(1, 0), @step.forward(1, 0), @gradient.sent(0, 0, 1),
// LAST-SAME: @activation.receive(2, 0), @step.backward(1, 0, 1), @gradient.send(1, 0, 1),
// LAST-SAME: @activation.received(2, 0), @step.forward(2, 0), @gradient.sent(1, 0, 1),
// LAST-SAME: @step.backward(2, 0), @gradient.send(2, 0), @gradient.sent(2, 0),
// LAST-SAME: @step.tie(0, 0), @step.norm(0, 0), @step.sum(0, 0), @step.finish(0, 0)]

// All forwards before the first backward, each in a slot of its own.
// GPIPE: pipe.schedule @train stage(0)
// GPIPE-NOT: @step.backward
// GPIPE-SAME: @step.forward(0, 0
// GPIPE-SAME: @step.forward(1, 1
// GPIPE-SAME: @step.forward(2, 2
// GPIPE-SAME: @step.backward(0, 0
// GPIPE-SAME: @step.backward(1, 1
// GPIPE-SAME: @step.backward(2, 2

// A stage in the middle has both neighbours: one place further and, of three, two.
// MIDDLE-NOT: tfm.function @tie
// MIDDLE-LABEL: pipe.program @step.forward kind(forward) part(1)
// MIDDLE-NEXT: pipe.boundary
// MIDDLE: pipe.leave
// MIDDLE-LABEL: pipe.program @step.backward kind(backward) part(1)
// MIDDLE-NEXT: pipe.boundary
// MIDDLE: pipe.leave
// MIDDLE-DAG: exec.launch "receive_start"(%{{.*}}) integers (0, 2)
// MIDDLE-DAG: exec.launch "send_start"(%{{.*}}) integers (0, 1)
// MIDDLE-DAG: exec.launch "receive_start"(%{{.*}}) integers (1, 1)
// MIDDLE-DAG: exec.launch "send_start"(%{{.*}}) integers (1, 2)
// MIDDLE: pipe.schedule @train stage(1)
// MIDDLE-NOT: @step.tie

// Programs of several chunks end in their number. Frames of a slot begin at 0 for
// every chunk, parameters go on.
// CHUNKS-LABEL: pipe.program @step.forward.0 kind(forward) part(0)
// CHUNKS: pipe.call @sliding.forward(%{{.*}}) application(1) :
// CHUNKS-NEXT: pipe.leave
// CHUNKS-LABEL: pipe.program @step.forward.1 kind(forward) part(2)
// CHUNKS-NEXT: pipe.boundary
// CHUNKS-NEXT: pipe.call @sliding.forward(%{{.*}}) application(4) instance(1) frame(0)
// CHUNKS-NEXT: pipe.leave
// CHUNKS-LABEL: pipe.program @step.backward.0 kind(backward) part(0)
// CHUNKS-LABEL: pipe.program @step.backward.1 kind(backward) part(2)
// CHUNKS-DAG: pipe.program @activation.send.0 kind(transfer) part(0)
// CHUNKS-DAG: pipe.program @activation.receive.1 kind(transfer) part(1)
// CHUNKS-DAG: pipe.program @activation.send.1 kind(transfer) part(2)
// CHUNKS-DAG: pipe.program @gradient.receive.1 kind(transfer) part(3)
// CHUNKS-DAG: pipe.program @gradient.send.1 kind(transfer) part(2)
// CHUNKS-DAG: pipe.program @gradient.receive.0 kind(transfer) part(1)
// Nothing comes to the first part, and no gradient leaves it.
// CHUNKS-NOT: @activation.receive.0
// CHUNKS-NOT: @gradient.send.0
// CHUNKS: pipe.schedule @train stage(0) micro_batches(2)
// CHUNKS-SAME: @step.forward.0(0, 0), {{.*}}@step.forward.0(1, 1, {{.*}}@step.forward.1(0, 2, {{.*}}@step.forward.1(1, 3), {{.*}}@step.backward.1(0, 2, {{.*}}@step.backward.1(1, 3, {{.*}}@step.backward.0(0, 0), {{.*}}@step.backward.0(1, 1,
