// RUN: mega-opt %s --mega-shard-state --mega-verify-state -split-input-file -verify-diagnostics

// Logical names key initial values and checkpoints.
!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>

tfm.block @embed(%t: !t) -> !x {
  // expected-note@+1 {{first parameter}}
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}
tfm.block @other(%x: !x) -> !x {
  // expected-error@+1 {{two parameters are named "w"}}
  %w = tfm.param "w" init(ones) : tensor<8x8xf32>
  %y = tfm.linear %x, %w : !x, tensor<8x8xf32> -> !x
  tfm.yield %y : !x
}
tfm.model @logical_names_are_unique max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.call @other(%x) : (!x) -> !x
}

// -----

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}
tfm.block @layer(%x: !x) -> !x {
  // expected-error@+2 {{two parameters are named "h.2.b"}}
  // expected-note@+1 {{first parameter}}
  %b = tfm.param "b" init(ones) : tensor<8xf32>
  %y = tfm.add_bias %x, %b : !x, tensor<8xf32>
  tfm.yield %y : !x
}
tfm.model @applications_of_one_prefix_are_counted_on max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat @layer times 3(%x) prefix "h" : !x
  %z = tfm.repeat @layer times 2(%y) prefix "h" from 2 : !x
}

// -----

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}
tfm.block @layer(%x: !x) -> !x {
  %b = tfm.param "b" init(ones) : tensor<8xf32>
  %y = tfm.add_bias %x, %b : !x, tensor<8xf32>
  tfm.yield %y : !x
}
tfm.model @other_indices_are_other_names max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat @layer times 3(%x) prefix "h" : !x
  %z = tfm.repeat @layer times 2(%y) prefix "h" from 3 : !x
}
