// Programs, calls, schedules: what is printed parses to the same.
// RUN: mega-opt %s | mega-opt | FileCheck %s
// RUN: mega-opt %s -mlir-print-op-generic | mega-opt | FileCheck %s

!x = tensor<2x5x8xf32>
!t = tensor<2x5xi32>

tfm.function @embed.forward(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  tfm.return %e : !x
}
tfm.function @layer.forward(%x: !x) -> (!x, !x) attributes {saved_results = 1 : i64} {
  %y = tfm.add %x, %x : !x
  tfm.return %y, %x : !x, !x
}
tfm.function @count(%t: tensor<6x5xi32>) {
  tfm.return
}
tfm.function @seeded(%s: tensor<f32>) {
  tfm.return
}

// CHECK-LABEL: pipe.program @setup kind({{ ?}}setup) {
pipe.program @setup kind(setup) {
}

// CHECK-LABEL: pipe.program @prologue kind({{ ?}}prologue) {
pipe.program @prologue kind(prologue) {
  // CHECK: %tokens = pipe.input "tokens" all : tensor<6x5xi32>
  %t = pipe.input "tokens" all : tensor<6x5xi32>
  // CHECK: pipe.call @count(%tokens) : (tensor<6x5xi32>) -> ()
  pipe.call @count(%t) : (tensor<6x5xi32>) -> ()
}

// CHECK-LABEL: pipe.program @forward kind({{ ?}}forward) {
pipe.program @forward kind(forward) {
  // CHECK: %tokens = pipe.input "tokens" : tensor<2x5xi32>
  %t = pipe.input "tokens" : !t
  // CHECK: pipe.call @embed.forward(%tokens) : (tensor<2x5xi32>) -> tensor<2x5x8xf32>
  %x = pipe.call @embed.forward(%t) : (!t) -> !x
  // The callee's saved results are no results of the call.
  // CHECK: pipe.call @layer.forward(%{{.*}}) application(1) instance(2) count(3) reverse carry [256] : (tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %y = pipe.call @layer.forward(%x) application(1) instance(2) count(3) reverse carry [256] : (!x) -> !x
}

// CHECK-LABEL: pipe.program @backward kind({{ ?}}backward) {
pipe.program @backward kind(backward) {
  // CHECK: pipe.counter "lm.seed" : tensor<f32>
  %s = pipe.counter "lm.seed" : tensor<f32>
  pipe.call @seeded(%s) : (tensor<f32>) -> ()
}

// CHECK-LABEL: pipe.program @finish kind({{ ?}}finish) {
pipe.program @finish kind(finish) {
}

// CHECK: pipe.schedule @train stage(0) micro_batches(2) [@prologue(0, 0), @forward(0, 0), @forward(1, 1), @backward(1, 1), @backward(0, 0), @finish(0, 0)]
pipe.schedule @train stage(0) micro_batches(2) [@prologue(0, 0), @forward(0, 0), @forward(1, 1), @backward(1, 1), @backward(0, 0), @finish(0, 0)]
// CHECK: pipe.schedule @nothing stage(3) micro_batches(1) []
pipe.schedule @nothing stage(3) micro_batches(1) []

// CHECK-LABEL: pipe.pipeline @step parts([0, 1]) micro_batches(2) train splits_weight {
pipe.pipeline @step parts([0, 1]) micro_batches(2) train splits_weight {
  // CHECK: pipe.stage 0 {
  pipe.stage 0 {
    // CHECK: pipe.wait @later
    pipe.wait @later
    // CHECK: pipe.run forward part(0) micro_batch(1) slot(2) buffer(3)
    pipe.run forward part(0) micro_batch(1) slot(2) buffer(3)
    // CHECK: pipe.run weight part(0) micro_batch(-1)
    pipe.run weight part(0) micro_batch(-1)
    // CHECK: pipe.send @later forward part(0) micro_batch(1) to(1) communicator(2) queue(3) buffer(4) bytes(4294967296)
    pipe.send @later forward part(0) micro_batch(1) to(1) communicator(2) queue(3) buffer(4) bytes(4294967296)
    // CHECK: pipe.receive @g backward part(1) micro_batch(1) from(1) communicator(2) buffer(4)
    pipe.receive @g backward part(1) micro_batch(1) from(1) communicator(2) buffer(4)
  }
  // CHECK: pipe.stage 1 {
  pipe.stage 1 {
    // CHECK: pipe.collective @later communicator(0) queue(1)
    pipe.collective @later communicator(0) queue(1)
    // CHECK: pipe.collective @sum communicator(0)
    pipe.collective @sum communicator(0)
  }
}
// CHECK-LABEL: pipe.pipeline @evaluation parts([]) micro_batches(1) {
pipe.pipeline @evaluation parts([]) micro_batches(1) {
}
