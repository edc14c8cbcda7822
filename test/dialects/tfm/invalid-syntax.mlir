// What the custom formats refuse to parse.
// RUN: mega-opt %s -split-input-file -verify-diagnostics

tfm.block @an_unknown_initializer() {
  // expected-error@+1 {{unknown initializer 'uniform' (known: zeros, ones, normal, constant)}}
  %a = tfm.param "a" init(uniform, 0.1) : tensor<8xf32>
  tfm.yield
}

// -----

tfm.block @a_normal_without_its_deviation() {
  // expected-error@+1 {{expected ','}}
  %a = tfm.param "a" init(normal) : tensor<8xf32>
  tfm.yield
}

// -----

tfm.block @ones_take_no_number() {
  // expected-error@+1 {{expected ')'}}
  %a = tfm.param "a" init(ones, 2.0) : tensor<8xf32>
  tfm.yield
}

// -----

tfm.model @a_count_that_is_no_count max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{expected a count such as x5}}
  %y = tfm.repeat [@a five, @b] times 3(%t) prefix "h" : tensor<?x?xi32>
}

// -----

tfm.model @a_cycle_without_blocks max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{expected valid '@'-identifier for symbol name}}
  %y = tfm.repeat [] times 3(%t) prefix "h" : tensor<?x?xi32>
}

// -----

tfm.model @carried_values_and_types_differ_in_number max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{number of operands and types do not match: got 1 operands and 2 types}}
  %y:2 = tfm.repeat @a times 3(%t) prefix "h" : tensor<?x?xi32>, tensor<?x?xi32>
}

// -----

tfm.model @invariants_need_types max_sequence(8) {
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // expected-error@+1 {{number of operands and types do not match: got 1 operands and 0 types}}
  %y = tfm.repeat @a times 3(%t) with (%t) prefix "h" : tensor<?x?xi32>
}

// -----

func.func @a_dropout_needs_its_name(%q: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{invalid kind of attribute specified}}
  %y = tfm.attention %q, %q, %q causal scale(0.5) dropout(0.1) : tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>
  return
}
