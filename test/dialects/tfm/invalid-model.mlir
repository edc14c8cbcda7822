// Verifiers of parameters, blocks and models. The letter in a name is the
// constraint of the op's description.
// RUN: mega-opt %s -split-input-file -verify-diagnostics

// (U1)
tfm.block @use_u1_undefined() {
  // expected-error@+1 {{no tfm.shared named @wte}}
  %w = tfm.use @wte : tensor<11x8xf32>
  tfm.yield
}

// -----

// (U1)
// expected-note@+1 {{declared here}}
tfm.shared @wte = "wte" init(ones) : tensor<11x8xf32>
tfm.block @use_u1_of_another_shape() {
  // expected-error@+1 {{reads 'tensor<8x11xf32>' but @wte is 'tensor<11x8xf32>'}}
  %w = tfm.use @wte : tensor<8x11xf32>
  tfm.yield
}

// -----

tfm.block @param_p1_dynamic() {
  // expected-error@+1 {{a parameter is a static vector or matrix, not 'tensor<?x8xf32>'}}
  %w = tfm.param "w" init(ones) : tensor<?x8xf32>
  tfm.yield
}

// -----

tfm.block @param_p1_rank() {
  // expected-error@+1 {{a parameter is a static vector or matrix, not 'tensor<2x3x4xf32>'}}
  %w = tfm.param "w" init(ones) : tensor<2x3x4xf32>
  tfm.yield
}

// -----

tfm.block @param_p1_empty() {
  // expected-error@+1 {{a parameter is a static vector or matrix, not 'tensor<0x8xf32>'}}
  %w = tfm.param "w" init(ones) : tensor<0x8xf32>
  tfm.yield
}

// -----

tfm.block @param_p2() {
  %w = tfm.param "w" init(ones) : tensor<8xf32>
  // expected-error@+1 {{a parameter "w" exists already}}
  %v = tfm.param "w" init(zeros) : tensor<8xf32>
  tfm.yield
}

// -----

tfm.block @block_b1(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  // expected-error@+1 {{yields ('tensor<?x?x8xf32>', 'tensor<?x?x8xf32>') but @block_b1 has results ('tensor<?x?x8xf32>')}}
  tfm.yield %x, %x : tensor<?x?x8xf32>, tensor<?x?x8xf32>
}

// -----

// expected-error@+1 {{must end in tfm.yield}}
tfm.block @block_b1_without_a_terminator() {
  %w = tfm.param "w" init(ones) : tensor<8xf32>
}

// -----

func.func @yield_outside_a_block() {
  // expected-error@+1 {{expects parent op 'tfm.block'}}
  tfm.yield
}

// -----

tfm.model @model_m1 max_sequence(8) {
  // expected-error@+1 {{cannot stand in a tfm.model; put it in a tfm.block and call that}}
  %w = tfm.param "w" init(ones) : tensor<8xf32>
}

// -----

tfm.model @model_m2 max_sequence(8) {
  %a = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{an input "tokens" exists already}}
  %b = tfm.input "tokens" : tensor<?x?xi32>
}

// -----

func.func @input_outside_a_model() {
  // expected-error@+1 {{expects parent op 'tfm.model'}}
  %a = tfm.input "tokens" : tensor<?x?xi32>
  return
}

// -----

tfm.model @loss_term_t1_not_counted max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  %s, %n = tfm.call @sums(%t) : (tensor<?x?xi32>) -> (tensor<f32>, tensor<i64>)
  // expected-error@+1 {{the count must be a tfm.count_valid of an input, so that it is known before the first backward}}
  tfm.loss_term "lm", %s, %n : tensor<f32>, tensor<i64>
}

// -----

tfm.model @loss_term_t1_not_of_an_input max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  %s, %u = tfm.call @sums(%t) : (tensor<?x?xi32>) -> (tensor<f32>, tensor<?x?xi32>)
  %n = tfm.count_valid %u ignore(0) : tensor<?x?xi32> -> tensor<i64>
  // expected-error@+1 {{the count must be a tfm.count_valid of an input}}
  tfm.loss_term "lm", %s, %n : tensor<f32>, tensor<i64>
}

// -----

tfm.model @loss_term_t2 max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  %s = tfm.call @sums(%t) : (tensor<?x?xi32>) -> tensor<f32>
  %n = tfm.count_valid %t ignore(0) : tensor<?x?xi32> -> tensor<i64>
  tfm.loss_term "lm", %s, %n : tensor<f32>, tensor<i64>
  // expected-error@+1 {{a loss term "lm" exists already}}
  tfm.loss_term "lm", %s, %n : tensor<f32>, tensor<i64>
}
