// What mega-bind-shapes refuses, at 2 rows of 5 tokens.
// RUN: mega-opt %s --mega-bind-shapes="batch=2 sequence=5" -split-input-file -verify-diagnostics

// expected-error@+1 {{has no tfm.model}}
module {
}

// -----

// expected-error@+1 {{--seq-length 5 is not between 1 and max_sequence = 4}}
tfm.model @longer_than_the_model_allows max_sequence(4) {
}

// -----

// max_sequence is fine, but the position table is shorter.
tfm.block @longer_than_the_position_table(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %w = tfm.param "wpe" init(ones) : tensor<4x8xf32>
  // expected-error@+1 {{a sequence of 5 is longer than the position table of 4}}
  %y = tfm.add_positions %x, %w : tensor<?x?x8xf32>, tensor<4x8xf32> -> tensor<?x?x8xf32>
  tfm.yield %y : tensor<?x?x8xf32>
}
tfm.model @m max_sequence(8) {
}

// -----

// expected-error@+1 {{'tensor<?x?x?xf32>': only batch and sequence, the first two dimensions, are open, and they are open together}}
tfm.block @only_batch_and_sequence_are_open(%x: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  tfm.yield %x : tensor<?x?x?xf32>
}
tfm.model @m max_sequence(8) {
}

// -----

// expected-error@+1 {{'tensor<?x5x8xf32>': only batch and sequence}}
tfm.block @open_together(%x: tensor<?x5x8xf32>) -> tensor<?x5x8xf32> {
  tfm.yield %x : tensor<?x5x8xf32>
}
tfm.model @m max_sequence(8) {
}

// -----

// A model that states its own sizes must not contradict the flags.
tfm.model @fixed_inputs max_sequence(8) {
  // expected-error@+1 {{is 'tensor<3x5xi32>', but the flags ask for 2 rows of 5 tokens; leave both open: tensor<?x?xi32>}}
  %t = tfm.input "tokens" : tensor<3x5xi32>
}
