// RUN: mega-opt %s --mega-verify-model -split-input-file -verify-diagnostics

tfm.block @sum(%l: tensor<2x5xi32>) -> tensor<f32> {
  %x = tfm.param "x" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %l, %x : tensor<2x5xi32>, tensor<11x8xf32> -> tensor<2x5x8xf32>
  %m, %s, %t = tfm.head_stats %e, %x, %l ignore(-100)
    : tensor<2x5x8xf32>, tensor<11x8xf32>, tensor<2x5xi32> -> tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  %y = tfm.head_loss %m, %s, %t, %l ignore(-100) : tensor<2x5xf32>, tensor<2x5xi32> -> tensor<f32>
  tfm.yield %y : tensor<f32>
}
tfm.model @a_model_after_its_phase max_sequence(8) {
  %labels = tfm.input "labels" : tensor<2x5xi32>
  %s = tfm.call @sum(%labels) : (tensor<2x5xi32>) -> tensor<f32>
  %n = tfm.count_valid %labels ignore(-100) : tensor<2x5xi32> -> tensor<i64>
  tfm.loss_term "lm", %s, %n : tensor<f32>, tensor<i64>
}

// -----

// expected-error@+1 {{has 0 tfm.model ops, expected one}}
module {
}

// -----

// expected-error@+1 {{has 2 tfm.model ops, expected one}}
module {
  // expected-note@+1 {{model defined here}}
  tfm.model @a max_sequence(8) {
  }
  // expected-note@+1 {{model defined here}}
  tfm.model @b max_sequence(8) {
  }
}

// -----

// expected-error@+1 {{has no tfm.loss_term, so there is nothing to train}}
tfm.model @without_a_loss max_sequence(8) {
  %t = tfm.input "tokens" : tensor<2x5xi32>
}

// -----

// All violations are reported at once.
// expected-error@+1 {{has no tfm.loss_term}}
tfm.model @unknown_inputs max_sequence(8) {
  // expected-error@+1 {{the data loader has no input "image" (it has tokens, labels, positions, segment_ids)}}
  %t = tfm.input "image" : tensor<2x5xi32>
  // expected-error@+1 {{the data loader has no input "mask" (it has tokens, labels, positions, segment_ids)}}
  %u = tfm.input "mask" : tensor<2x5xi32>
}

// -----

// Shapes, joined heads, and nothing dropped silently: every block is applied,
// every parameter and shared parameter used.
// expected-error@+1 {{@open is never applied by the model; remove it or call it}}
tfm.block @open(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  // expected-error@+1 {{parameter "w" is never used}}
  %w = tfm.param "w" init(ones) : tensor<8xf32>
  // expected-error@+1 {{has a result of type 'tensor<?x?x8xf32>' after the model phase}}
  %y = tfm.silu %x : tensor<?x?x8xf32>
  tfm.yield %y : tensor<?x?x8xf32>
}
// expected-error@+1 {{@loss is never applied by the model; remove it or call it}}
tfm.block @loss(%z: tensor<2x5x11xf32>, %l: tensor<2x5xi32>) -> tensor<f32> {
  // expected-error@+1 {{was not joined with its head}}
  %s = tfm.cross_entropy %z, %l ignore(-100) : tensor<2x5x11xf32>, tensor<2x5xi32> -> tensor<f32>
  tfm.yield %s : tensor<f32>
}
// expected-error@+1 {{@lost is never used}}
tfm.shared @lost = "lost.weight" init(ones) : tensor<8xf32>
// expected-error@+1 {{has no tfm.loss_term}}
tfm.model @m max_sequence(8) {
}

// -----

tfm.block @names_are_printable(%l: tensor<2x5xi32>) -> tensor<2x5x8xf32> {
  // expected-error@+1 {{the parameter's name holds byte 32, expected printable ASCII}}
  %x = tfm.param "a table" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %l, %x : tensor<2x5xi32>, tensor<11x8xf32> -> tensor<2x5x8xf32>
  tfm.yield %e : tensor<2x5x8xf32>
}
tfm.block @sum(%e: tensor<2x5x8xf32>, %l: tensor<2x5xi32>) -> tensor<f32> {
  %x = tfm.param "x" init(ones) : tensor<11x8xf32>
  %m, %s, %t = tfm.head_stats %e, %x, %l ignore(-100)
    : tensor<2x5x8xf32>, tensor<11x8xf32>, tensor<2x5xi32> -> tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  %y = tfm.head_loss %m, %s, %t, %l ignore(-100) : tensor<2x5xf32>, tensor<2x5xi32> -> tensor<f32>
  tfm.yield %y : tensor<f32>
}
tfm.model @m max_sequence(8) {
  %labels = tfm.input "labels" : tensor<2x5xi32>
  %e = tfm.call @names_are_printable(%labels) : (tensor<2x5xi32>) -> tensor<2x5x8xf32>
  %s = tfm.call @sum(%e, %labels) : (tensor<2x5x8xf32>, tensor<2x5xi32>) -> tensor<f32>
  %n = tfm.count_valid %labels ignore(-100) : tensor<2x5xi32> -> tensor<i64>
  // expected-error@+1 {{the loss term's name has 0 characters, expected 1 to 512}}
  tfm.loss_term "", %s, %n : tensor<f32>, tensor<i64>
}

// -----

tfm.block @sum(%l: tensor<2x5xi32>) -> tensor<f32> {
  %x = tfm.param "x" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %l, %x : tensor<2x5xi32>, tensor<11x8xf32> -> tensor<2x5x8xf32>
  %m, %s, %t = tfm.head_stats %e, %x, %l ignore(-100)
    : tensor<2x5x8xf32>, tensor<11x8xf32>, tensor<2x5xi32> -> tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  %y = tfm.head_loss %m, %s, %t, %l ignore(-100) : tensor<2x5xf32>, tensor<2x5xi32> -> tensor<f32>
  tfm.yield %y : tensor<f32>
}
tfm.model @count_and_sum_are_of_the_same_labels max_sequence(8) {
  %labels = tfm.input "labels" : tensor<2x5xi32>
  %tokens = tfm.input "tokens" : tensor<2x5xi32>
  %s = tfm.call @sum(%labels) : (tensor<2x5xi32>) -> tensor<f32>
  // expected-error@+2 {{ignores label 0, the sum of loss term "lm" -100}}
  // expected-error@+1 {{counts other labels than the sum of loss term "lm" is of}}
  %n = tfm.count_valid %tokens ignore(0) : tensor<2x5xi32> -> tensor<i64>
  tfm.loss_term "lm", %s, %n : tensor<f32>, tensor<i64>
}
