// RUN: mega-opt %s --mega-differentiate --mega-shard-state --mega-emit-schedule -split-input-file -verify-diagnostics

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : !w
  %e = tfm.embedding %t, %w : !t, !w -> !x
  tfm.yield %e : !x
}
tfm.model @results_are_used max_sequence(8) {
  %t = tfm.input "tokens" : !t
  // expected-error@+1 {{a result is never used}}
  %x = tfm.call @embed(%t) : (!t) -> !x
}

// -----

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : !w
  %e = tfm.embedding %t, %w : !t, !w -> !x
  tfm.yield %e : !x
}
tfm.block @layer(%x: !x) -> !x {
  %y = tfm.silu %x : !x
  tfm.yield %y : !x
}
tfm.model @an_activation_flows_into_one_block max_sequence(8) {
  %t = tfm.input "tokens" : !t
  // expected-error@+1 {{a result flows into 2 places; let one block take it and pass it on}}
  %x = tfm.call @embed(%t) : (!t) -> !x
  // expected-note@+1 {{used here}}
  %y = tfm.call @layer(%x) : (!x) -> !x
  // expected-note@+1 {{used here}}
  %z = tfm.call @layer(%x) : (!x) -> !x
}

// -----

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : !w
  %e = tfm.embedding %t, %w : !t, !w -> !x
  tfm.yield %e : !x
}
tfm.model @results_influence_the_loss max_sequence(8) {
  %t = tfm.input "tokens" : !t
  // expected-error@+1 {{a result is never used}}
  %x = tfm.call @embed(%t) : (!t) -> !x
  tfm.output "x", %x : !x
}

// -----

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>
!s = tensor<2x5xf32>

tfm.block @same(%t: !t) -> !t {
  tfm.yield %t : !t
}
tfm.block @all(%t: !t, %l: !t) -> tensor<f32> {
  %w = tfm.param "w" init(ones) : !w
  %x = tfm.embedding %t, %w : !t, !w -> !x
  %m, %s, %g = tfm.head_stats %x, %w, %l ignore(-100) : !x, !w, !t -> !s, !s, !s
  %y = tfm.head_loss %m, %s, %g, %l ignore(-100) : !s, !t -> tensor<f32>
  tfm.yield %y : tensor<f32>
}
tfm.model @integer_operands_are_inputs max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %l = tfm.input "labels" : !t
  %u = tfm.call @same(%t) : (!t) -> !t
  // expected-error@+1 {{an integer operand must be an input of the model}}
  %z = tfm.call @all(%u, %l) : (!t, !t) -> tensor<f32>
  %n = tfm.count_valid %l ignore(-100) : !t -> tensor<i64>
  tfm.loss_term "lm", %z, %n : tensor<f32>, tensor<i64>
}
