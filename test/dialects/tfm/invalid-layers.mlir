// Verifiers of layers, without attention and head.
// RUN: mega-opt %s -split-input-file -verify-diagnostics

func.func @embedding_e1(%t: tensor<2x5xi32>, %w: tensor<11x8xf32>) {
  // expected-error@+1 {{looks up 'tensor<2x5xi32>' in 'tensor<11x8xf32>' but the result is 'tensor<2x5x11xf32>'}}
  %e = tfm.embedding %t, %w : tensor<2x5xi32>, tensor<11x8xf32> -> tensor<2x5x11xf32>
  return
}

// -----

func.func @add_positions_p1_features(%x: tensor<2x5x8xf32>, %w: tensor<13x7xf32>) {
  // expected-error@+1 {{x is 'tensor<2x5x8xf32>' but the table 'tensor<13x7xf32>'}}
  %y = tfm.add_positions %x, %w : tensor<2x5x8xf32>, tensor<13x7xf32> -> tensor<2x5x8xf32>
  return
}

// -----

func.func @add_positions_p1_rows(%x: tensor<2x5x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{a sequence of 5 is longer than the position table of 4}}
  %y = tfm.add_positions %x, %w : tensor<2x5x8xf32>, tensor<4x8xf32> -> tensor<2x5x8xf32>
  return
}

// -----

func.func @add_positions_keeps_the_type(%x: tensor<2x5x8xf32>, %w: tensor<5x8xf32>) {
  // expected-error@+1 {{x is 'tensor<2x5x8xf32>' but the result 'tensor<2x4x8xf32>'}}
  %y = tfm.add_positions %x, %w : tensor<2x5x8xf32>, tensor<5x8xf32> -> tensor<2x4x8xf32>
  return
}

// -----

func.func @layer_norm_n1(%x: tensor<2x5x8xf32>, %g: tensor<7xf32>) {
  // expected-error@+1 {{normalises 8 features but gamma has 7}}
  %y = tfm.layer_norm %x, %g, %g epsilon(1.0e-5) : tensor<2x5x8xf32>, tensor<7xf32>
  return
}

// -----

func.func @layer_norm_n2(%x: tensor<2x5x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{epsilon is 0.000000e+00, expected a positive number}}
  %y = tfm.layer_norm %x, %g, %g epsilon(0.0) : tensor<2x5x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @rms_norm_n1(%x: tensor<2x5x6x4xf32>, %g: tensor<6xf32>) {
  // expected-error@+1 {{normalises 4 features but gamma has 6}}
  %y = tfm.rms_norm %x, %g epsilon(1.0e-5) : tensor<2x5x6x4xf32>, tensor<6xf32>
  return
}

// -----

func.func @rms_norm_n2(%x: tensor<2x5x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{epsilon is -1.000000e+00, expected a positive number}}
  %y = tfm.rms_norm %x, %g epsilon(-1.0) : tensor<2x5x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @rms_norm_of_rank_3_or_4(%x: tensor<5x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{x has 2 dimensions, expected 3 or 4}}
  %y = tfm.rms_norm %x, %g epsilon(1.0e-5) : tensor<5x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @linear_l1(%x: tensor<2x5x8xf32>, %w: tensor<6x7xf32>) {
  // expected-error@+1 {{x has 8 features but the weight 'tensor<6x7xf32>' takes 7}}
  %y = tfm.linear %x, %w : tensor<2x5x8xf32>, tensor<6x7xf32> -> tensor<2x5x6xf32>
  return
}

// -----

func.func @linear_l2(%x: tensor<2x5x8xf32>, %w: tensor<6x8xf32>) {
  // expected-error@+1 {{the result has 8 features but the weight 'tensor<6x8xf32>' makes 6}}
  %y = tfm.linear %x, %w : tensor<2x5x8xf32>, tensor<6x8xf32> -> tensor<2x5x8xf32>
  return
}

// -----

func.func @linear_keeps_batch_and_sequence(%x: tensor<2x5x8xf32>, %w: tensor<6x8xf32>) {
  // expected-error@+1 {{result 'tensor<5x2x6xf32>' and x 'tensor<2x5x8xf32>' differ in batch or sequence}}
  %y = tfm.linear %x, %w : tensor<2x5x8xf32>, tensor<6x8xf32> -> tensor<5x2x6xf32>
  return
}

// -----

func.func @add_bias_a1(%x: tensor<2x5x8xf32>, %b: tensor<7xf32>) {
  // expected-error@+1 {{x has 8 features but the bias 7}}
  %y = tfm.add_bias %x, %b : tensor<2x5x8xf32>, tensor<7xf32>
  return
}

// -----

func.func @grouped_linear_g1(%x: tensor<2x5x8xf32>, %w: tensor<6x8xf32>) {
  // expected-error@+1 {{the result has 5 features but the weight 'tensor<6x8xf32>' makes 6}}
  %a, %b = tfm.grouped_linear %x, (%w, %w)
    : tensor<2x5x8xf32>, tensor<6x8xf32>, tensor<6x8xf32> -> tensor<2x5x6xf32>, tensor<2x5x5xf32>
  return
}

// -----

func.func @grouped_linear_g1_empty(%x: tensor<2x5x8xf32>) {
  // expected-error@+1 {{has 0 weights and 0 results}}
  "tfm.grouped_linear"(%x) : (tensor<2x5x8xf32>) -> ()
  return
}
