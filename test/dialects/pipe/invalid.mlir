// Constraints of calls (C), schedules (S), pipelines (P), stages (G), waits (W).
// RUN: mega-opt %s -split-input-file -verify-diagnostics

pipe.program @call_c1_undefined kind(forward) {
  // expected-error@+1 {{no function named @f}}
  pipe.call @f() : () -> ()
}

// -----

tfm.function @f(%x: tensor<2x5xi32>) {
  tfm.return
}
pipe.program @call_c1_other_operands kind(forward) {
  %t = pipe.input "tokens" : tensor<2x4xi32>
  // expected-error@+1 {{calls ('tensor<2x4xi32>') -> () but @f is ('tensor<2x5xi32>') -> ()}}
  pipe.call @f(%t) : (tensor<2x4xi32>) -> ()
}

// -----

// What a backward reads from the frame is no operand of its call.
tfm.function @f(%g: tensor<2x5x8xf32>, %saved: tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
    attributes {saved_arguments = 1 : i64} {
  %y = tfm.add %g, %saved : tensor<2x5x8xf32>
  tfm.return %y : tensor<2x5x8xf32>
}
pipe.program @call_c1_saved_arguments kind(backward) {
  %g = pipe.counter "g" : tensor<2x5x8xf32>
  // expected-error@+1 {{calls ('tensor<2x5x8xf32>') -> () but @f is ('tensor<2x5x8xf32>') -> ('tensor<2x5x8xf32>')}}
  pipe.call @f(%g) : (tensor<2x5x8xf32>) -> ()
}

// -----

tfm.function @f(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %y = tfm.add %x, %x : tensor<2x5x8xf32>
  tfm.return %y : tensor<2x5x8xf32>
}
pipe.program @call_c2 kind(forward) {
  %x = pipe.counter "x" : tensor<2x5x8xf32>
  // expected-error@+1 {{takes over operand 0, which has other uses}}
  %y = pipe.call @f(%x) : (tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %z = pipe.call @f(%x) : (tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
}

// -----

tfm.function @f() {
  tfm.return
}
pipe.program @call_count kind(forward) {
  // expected-error@+1 {{runs 0 times, expected at least once}}
  pipe.call @f() count(0) : () -> ()
}

// -----

tfm.function @f(%t: tensor<2x5xi32>) -> tensor<2x5x8xf32> {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : tensor<2x5xi32>, tensor<11x8xf32> -> tensor<2x5x8xf32>
  tfm.return %e : tensor<2x5x8xf32>
}
pipe.program @call_count_needs_a_chain kind(forward) {
  %t = pipe.input "tokens" : tensor<2x5xi32>
  // expected-error@+1 {{runs several times, but result 0 is not its next operand}}
  %x = pipe.call @f(%t) count(2) : (tensor<2x5xi32>) -> tensor<2x5x8xf32>
}

// -----

func.func @input_outside_a_program() {
  // expected-error@+1 {{expects parent op 'pipe.program'}}
  %t = pipe.input "tokens" : tensor<2x4xi32>
  return
}

// -----

// (S1)
// expected-error@+1 {{no pipe.program named @f}}
pipe.schedule @schedule_s1_undefined stage(0) micro_batches(1) [@f(0, 0)]

// -----

pipe.program @f kind(forward) {
}
// expected-error@+1 {{action 1 has micro-batch 2 of 2}}
pipe.schedule @schedule_s1_micro_batch stage(0) micro_batches(2) [@f(1, 0), @f(2, 0)]

// -----

pipe.program @f kind(forward) {
}
// expected-error@+1 {{action 0 has micro-batch -1 of 2}}
pipe.schedule @schedule_s1_negative_micro_batch stage(0) micro_batches(2) [@f(-1, 0)]

// -----

// expected-error@+1 {{expected ','}}
pipe.schedule @an_action_has_a_slot stage(0) micro_batches(2) [@f(0)]

// -----

// (P1)
pipe.pipeline @pipeline_p1_order parts([0]) micro_batches(1) {
  // expected-error@+1 {{is stage 1, expected 0}}
  pipe.stage 1 {
  }
}

// -----

// expected-error@+1 {{expects parent op 'pipe.pipeline'}}
pipe.stage 0 {
}

// -----

pipe.pipeline @pipeline_p1_others parts([0]) micro_batches(1) {
  // expected-error@+1 {{is no pipe.stage}}
  builtin.module {
  }
}

// -----

// (P2)
// expected-error@+1 {{splits weights but does not train}}
pipe.pipeline @pipeline_p2 parts([0]) micro_batches(1) splits_weight {
}

// -----

// (G1)
pipe.pipeline @stage_g1 parts([0]) micro_batches(1) {
  pipe.stage 0 {
    // expected-error@+1 {{is nothing that a stage does}}
    pipe.program @f kind(forward) {
    }
  }
}

// -----

// (G2)
pipe.pipeline @stage_g2 parts([0]) micro_batches(1) {
  pipe.stage 0 {
    // expected-note@+1 {{see existing symbol definition here}}
    pipe.collective @c communicator(0)
    // expected-error@+1 {{redefinition of symbol named 'c'}}
    pipe.collective @c communicator(1)
  }
}

// -----

// (W1): names of another stage do not count.
pipe.pipeline @wait_w1 parts([0, 1]) micro_batches(1) {
  pipe.stage 0 {
    pipe.collective @c communicator(0)
  }
  pipe.stage 1 {
    // expected-error@+1 {{nothing on this stage is named @c}}
    pipe.wait @c
  }
}

// -----

pipe.pipeline @wait_for_nothing parts([0]) micro_batches(1) {
  pipe.stage 0 {
    // expected-error@+1 {{nothing on this stage is named @c}}
    pipe.wait @c
  }
}
