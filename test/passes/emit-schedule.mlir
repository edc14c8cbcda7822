// Three micro-batches of one stage: programs, numbering, order of actions.
// RUN: mega-opt %s --mega-differentiate --mega-shard-state --mega-emit-schedule=micro-batches=3 | FileCheck %s

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>
!s = tensor<2x5xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "embed" init(ones) : !w
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
  %w = tfm.param "head" init(ones) : !w
  %m, %s, %t = tfm.head_stats %x, %w, %l ignore(-100) : !x, !w, !t -> !s, !s, !s
  %y = tfm.head_loss %m, %s, %t, %l ignore(-100) : !s, !t -> tensor<f32>
  tfm.yield %y : tensor<f32>
}
// The model and its blocks are gone; the module has the model's name.
// CHECK: module @cycle
// CHECK-NOT: tfm.block
// CHECK-NOT: tfm.model
tfm.model @cycle max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %l = tfm.input "labels" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat [@sliding x2, @full] times 5(%x) prefix "h" : !x
  %z = tfm.call @head(%y, %l) : (!x, !t) -> tensor<f32>
  %n = tfm.count_valid %l ignore(-100) : !t -> tensor<i64>
  tfm.loss_term "lm", %z, %n weight(0.5) : tensor<f32>, tensor<i64>
}

// CHECK-LABEL: tfm.function @loss.lm(%arg0: tensor<f32>)
// CHECK-NEXT: tfm.record "lm.sum", %arg0 add

// The labels of the whole step are counted before the first backward.
// CHECK-LABEL: tfm.function @prologue(%arg0: tensor<6x5xi32>)
// CHECK-NEXT: tfm.zero_gradient @decayed
// CHECK-NEXT: tfm.zero_counter "lm.sum"
// CHECK-NEXT: %[[N:.*]] = tfm.count_valid %arg0 ignore(-100) : tensor<6x5xi32>
// CHECK-NEXT: tfm.record "lm.count", %[[N]]
// CHECK-NEXT: %[[SEED:.*]] = tfm.loss_seed %[[N]] weight(0.5)
// CHECK-NEXT: tfm.record "lm.seed", %[[SEED]]

// CHECK-LABEL: pipe.program @step.prologue
// CHECK: pipe.input "labels" all : tensor<6x5xi32>

// A cycle makes one call for every run of one block; applications are numbered
// through the model, instances through the block.
// CHECK-LABEL: pipe.program @step.forward kind(
// CHECK: pipe.call @embed.forward(%tokens) : (tensor<2x5xi32>)
// CHECK-NEXT: %[[A:.*]] = pipe.call @sliding.forward(%{{.*}}) application(1) count(2) :
// CHECK-NEXT: %[[B:.*]] = pipe.call @full.forward(%[[A]]) application(3) :
// CHECK-NEXT: %[[C:.*]] = pipe.call @sliding.forward(%[[B]]) application(4) instance(2) count(2) :
// CHECK: pipe.call @head.forward(%[[C]], %labels) application(6)
// CHECK: pipe.call @loss.lm

// CHECK-LABEL: tfm.function @prologue.eval
// CHECK-NOT: tfm.zero_gradient
// CHECK-LABEL: pipe.program @step.forward.eval
// CHECK: pipe.call @sliding.eval(

// The backward starts from the seed and runs all in reverse; ids are passed
// again.
// CHECK-LABEL: pipe.program @step.backward kind(
// CHECK: %[[S:.*]] = pipe.counter "lm.seed"
// CHECK: %[[H:.*]] = pipe.call @head.backward(%[[S]], %labels) application(6) reverse
// CHECK-NEXT: %[[C:.*]] = pipe.call @sliding.backward(%[[H]]) application(4) instance(2) count(2) reverse
// CHECK-NEXT: %[[B:.*]] = pipe.call @full.backward(%[[C]]) application(3) reverse
// CHECK-NEXT: %[[A:.*]] = pipe.call @sliding.backward(%[[B]]) application(1) count(2) reverse
// CHECK: pipe.call @embed.backward(%[[A]], %tokens) reverse

// CHECK: pipe.schedule @train stage(0) micro_batches(3)
// CHECK-SAME: [@step.prologue(0, 0), @step.forward(0, 0), @step.backward(0, 0), @step.forward(1, 0), @step.backward(1, 0), @step.forward(2, 0), @step.backward(2, 0), @step.finish(0, 0)]
// CHECK: pipe.schedule @eval stage(0) micro_batches(3)
// CHECK-SAME: [@step.prologue.eval(0, 0), @step.forward.eval(0, 0), @step.forward.eval(1, 0), @step.forward.eval(2, 0)]

// Ids are below the vocabulary.
// CHECK: exec.input "tokens" limit(11) : !exec.buf<2x5xi32>
// CHECK: exec.input "labels" limit(11) : !exec.buf<2x5xi32>
// CHECK: exec.loss_term "lm" weight(0.5) ignore(-100)
