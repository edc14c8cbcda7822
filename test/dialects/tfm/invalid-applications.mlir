// Verifiers of tfm.call and tfm.repeat.
// RUN: mega-opt %s -split-input-file -verify-diagnostics

tfm.model @call_c1_undefined max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{no tfm.block named @embed}}
  %u = tfm.call @embed(%t) : (tensor<?x?xi32>) -> tensor<?x?xi32>
}

// -----

// expected-note@+1 {{block defined here}}
tfm.block @same(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
  tfm.yield %x : tensor<?x?xi32>
}
tfm.model @call_c1_of_another_signature max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{applies ('tensor<?x?xi32>') -> ('tensor<?x?x8xf32>') but @same is ('tensor<?x?xi32>') -> ('tensor<?x?xi32>')}}
  %u = tfm.call @same(%t) : (tensor<?x?xi32>) -> tensor<?x?x8xf32>
}

// -----

tfm.block @embed(%t: tensor<?x?xi32>) -> tensor<?x?x8xf32> {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : tensor<?x?xi32>, tensor<11x8xf32> -> tensor<?x?x8xf32>
  tfm.yield %e : tensor<?x?x8xf32>
}
tfm.model @call_c2 max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-note@+1 {{first call}}
  %x = tfm.call @embed(%t) : (tensor<?x?xi32>) -> tensor<?x?x8xf32>
  // expected-error@+1 {{@embed has parameters and is called twice; use tfm.repeat, or tfm.shared parameters}}
  %y = tfm.call @embed(%t) : (tensor<?x?xi32>) -> tensor<?x?x8xf32>
}

// -----

// A block without parameters of its own may be called any number of times.
tfm.block @same(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
  tfm.yield %x : tensor<?x?xi32>
}
tfm.model @call_c2_allows_blocks_without_parameters max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  %u = tfm.call @same(%t) : (tensor<?x?xi32>) -> tensor<?x?xi32>
  %v = tfm.call @same(%u) : (tensor<?x?xi32>) -> tensor<?x?xi32>
}

// -----

tfm.model @repeat_r1_undefined max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{no tfm.block named @layer}}
  %y = tfm.repeat @layer times 2(%t) prefix "h" : tensor<?x?xi32>
}

// -----

tfm.block @a(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
  tfm.yield %x : tensor<?x?xi32>
}
// expected-note@+1 {{block defined here}}
tfm.block @b(%x: tensor<?x?xi32>, %y: tensor<?x?xi32>) -> tensor<?x?xi32> {
  tfm.yield %x : tensor<?x?xi32>
}
tfm.model @repeat_r1_every_block_of_the_cycle max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{applies ('tensor<?x?xi32>') -> ('tensor<?x?xi32>') but @b is ('tensor<?x?xi32>', 'tensor<?x?xi32>') -> ('tensor<?x?xi32>')}}
  %y = tfm.repeat [@a x2, @b] times 3(%t) prefix "h" : tensor<?x?xi32>
}

// -----

tfm.block @a(%x: tensor<?x?xi32>) -> tensor<?x?xi32> {
  tfm.yield %x : tensor<?x?xi32>
}
tfm.model @repeat_r2_times max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{repeats 0 times, expected at least 1}}
  %y = tfm.repeat @a times 0(%t) prefix "h" : tensor<?x?xi32>
}

// -----

tfm.model @repeat_r2_too_many_times max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{repeats 4611686018427387904 times, expected at most 4096}}
  %y = tfm.repeat @a times 4611686018427387904(%t) prefix "h" : tensor<?x?xi32>
}

// -----

tfm.model @repeat_r2_negative_times max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{repeats -3 times, expected at least 1}}
  %y = tfm.repeat @a times -3(%t) prefix "h" : tensor<?x?xi32>
}

// -----

tfm.model @repeat_r2_count max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{a block of the cycle occurs 0 times, expected at least 1}}
  %y = tfm.repeat [@a x0, @b] times 3(%t) prefix "h" : tensor<?x?xi32>
}

// -----

tfm.model @repeat_r2_no_blocks max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{needs a count for each of its blocks}}
  %y = "tfm.repeat"(%t) <{blocks = [], counts = array<i64>, from = 0 : i64, operandSegmentSizes = array<i32: 1, 0>, prefix = "h", times = 2 : i64}>
    : (tensor<?x?xi32>) -> tensor<?x?xi32>
}

// -----

tfm.model @repeat_numbers_from_zero max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{numbers its applications from -1}}
  %y = tfm.repeat @a times 3(%t) prefix "h" from -1 : tensor<?x?xi32>
}
