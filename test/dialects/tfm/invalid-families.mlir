// Verifiers of what the model families add.
// RUN: mega-opt %s -split-input-file -verify-diagnostics

func.func @rope_scaling_of_an_unknown_kind(%x: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{unknown rope scaling 'longrope' (known: linear, llama3, yarn)}}
  %y = tfm.rope %x base(10000.0) scaling <longrope, factor(2.0)> : tensor<2x5x6x4xf32>
  return
}

// -----

func.func @rope_scaling_rs1_without_a_number(%x: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{llama3 scaling needs 'high(...)'}}
  %y = tfm.rope %x base(10000.0) scaling <llama3, factor(2.0), low(1.0), original(64.0)> : tensor<2x5x6x4xf32>
  return
}

// -----

func.func @rope_scaling_rs1_with_a_number_of_another_kind(%x: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{linear scaling has no 'beta_fast'}}
  %y = tfm.rope %x base(10000.0) scaling <linear, factor(2.0), beta_fast(32.0)> : tensor<2x5x6x4xf32>
  return
}

// -----

func.func @rope_scaling_rs1_with_a_number_twice(%x: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{'factor' is given twice}}
  %y = tfm.rope %x base(10000.0) scaling <linear, factor(2.0), factor(4.0)> : tensor<2x5x6x4xf32>
  return
}

// -----

func.func @rope_scaling_rs2_factor(%x: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{factor is 5.000000e-01, expected at least 1}}
  %y = tfm.rope %x base(10000.0) scaling <linear, factor(0.5)> : tensor<2x5x6x4xf32>
  return
}

// -----

func.func @rope_scaling_rs2_positive(%x: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{original is 0.000000e+00, expected a positive number}}
  %y = tfm.rope %x base(10000.0) scaling <llama3, factor(2.0), low(1.0), high(4.0), original(0)> : tensor<2x5x6x4xf32>
  return
}

// -----

func.func @rope_scaling_rs2_order(%x: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{low is 4.000000e+00, high 4.000000e+00, expected a lower and a higher number}}
  %y = tfm.rope %x base(10000.0) scaling <llama3, factor(2.0), low(4.0), high(4.0), original(64)> : tensor<2x5x6x4xf32>
  return
}

// -----

func.func @rope_scaling_rs2_order_of_yarn(%x: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{beta_slow is 3.200000e+01, beta_fast 1.000000e+00, expected a lower and a higher number}}
  %y = tfm.rope %x base(10000.0) scaling <yarn, factor(2.0), original(64), beta_fast(1.0), beta_slow(32.0), attention(1.0)> : tensor<2x5x6x4xf32>
  return
}

// -----

func.func @attention_a4(%q: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{the soft cap is -5.000000e+01, expected a positive number}}
  %y = tfm.attention %q, %q, %q causal scale(0.5) softcap(-50.0) : tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>
  return
}

// -----

func.func @cross_entropy_x3(%z: tensor<2x5x11xf32>, %l: tensor<2x5xi32>) {
  // expected-error@+1 {{the soft cap is -3.000000e+01, expected a positive number}}
  %s = tfm.cross_entropy %z, %l ignore(-100) softcap(-30.0) : tensor<2x5x11xf32>, tensor<2x5xi32> -> tensor<f32>
  return
}

// -----

func.func @scale_s1(%x: tensor<2x5x8xf32>) {
  // expected-error@+1 {{the factor is 0.000000e+00, expected a finite number other than 0}}
  %y = tfm.scale %x factor(0.0) : tensor<2x5x8xf32>
  return
}
