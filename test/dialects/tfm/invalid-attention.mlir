// Verifiers of heads, rope and attention.
// RUN: mega-opt %s -split-input-file -verify-diagnostics

func.func @split_heads_h1(%x: tensor<2x5x24xf32>) {
  // expected-error@+1 {{'tensor<2x5x24xf32>' is not 'tensor<2x5x6x5xf32>' with its heads joined}}
  %y = tfm.split_heads %x : tensor<2x5x24xf32> -> tensor<2x5x6x5xf32>
  return
}

// -----

func.func @split_heads_h1_other_sequence(%x: tensor<2x5x24xf32>) {
  // expected-error@+1 {{'tensor<2x5x24xf32>' is not 'tensor<2x4x6x4xf32>' with its heads joined}}
  %y = tfm.split_heads %x : tensor<2x5x24xf32> -> tensor<2x4x6x4xf32>
  return
}

// -----

func.func @merge_heads_h1(%x: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{'tensor<2x5x20xf32>' is not 'tensor<2x5x6x4xf32>' with its heads joined}}
  %y = tfm.merge_heads %x : tensor<2x5x6x4xf32> -> tensor<2x5x20xf32>
  return
}

// -----

func.func @rope_r1(%x: tensor<2x5x6x3xf32>) {
  // expected-error@+1 {{rotates pairs, but head_dim is 3}}
  %y = tfm.rope %x base(10000.0) : tensor<2x5x6x3xf32>
  return
}

// -----

func.func @rope_r2(%x: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{base is 0.000000e+00, expected a positive number}}
  %y = tfm.rope %x base(0.0) : tensor<2x5x6x4xf32>
  return
}

// -----

func.func @attention_a1_head_dimension(%q: tensor<2x5x6x4xf32>, %k: tensor<2x5x2x3xf32>) {
  // expected-error@+1 {{query 'tensor<2x5x6x4xf32>' and key 'tensor<2x5x2x3xf32>' differ in batch, sequence or head dimension}}
  %y = tfm.attention %q, %k, %k causal scale(0.5) : tensor<2x5x6x4xf32>, tensor<2x5x2x3xf32>
  return
}

// -----

func.func @attention_a1_sequence(%q: tensor<2x5x6x4xf32>, %k: tensor<2x7x2x4xf32>) {
  // expected-error@+1 {{query 'tensor<2x5x6x4xf32>' and key 'tensor<2x7x2x4xf32>' differ in batch, sequence or head dimension}}
  %y = tfm.attention %q, %k, %k causal scale(0.5) : tensor<2x5x6x4xf32>, tensor<2x7x2x4xf32>
  return
}

// -----

func.func @attention_a1_heads(%q: tensor<2x5x6x4xf32>, %k: tensor<2x5x4x4xf32>) {
  // expected-error@+1 {{4 key/value heads do not divide 6 query heads}}
  %y = tfm.attention %q, %k, %k causal scale(0.5) : tensor<2x5x6x4xf32>, tensor<2x5x4x4xf32>
  return
}

// -----

func.func @attention_a1_no_heads(%q: tensor<2x5x6x4xf32>, %k: tensor<2x5x0x4xf32>) {
  // expected-error@+1 {{0 key/value heads do not divide 6 query heads}}
  %y = tfm.attention %q, %k, %k causal scale(0.5) : tensor<2x5x6x4xf32>, tensor<2x5x0x4xf32>
  return
}

// -----

func.func @attention_a2(%q: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{window is 0, expected at least 1}}
  %y = tfm.attention %q, %q, %q causal window(0) scale(0.5) : tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>
  return
}

// -----

func.func @attention_a2_negative(%q: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{window is -2, expected at least 1}}
  %y = tfm.attention %q, %q, %q causal window(-2) scale(0.5) : tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>
  return
}

// -----

func.func @attention_a3(%q: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{p is 1.000000e+00, expected 0 <= p < 1}}
  %y = tfm.attention %q, %q, %q causal scale(0.5) dropout("p", 1.0) : tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>
  return
}

// -----

func.func @attention_a5_keys(%q: tensor<2x5x6x4xf32>, %p: tensor<2x5xi32>) {
  // expected-error@+1 {{has some places of queries and keys, not all; give positions and segments of both, or none}}
  %y = "tfm.attention"(%q, %q, %q, %p, %p) <{causal, scale = 0.5, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0>}> : (tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>, tensor<2x5xi32>, tensor<2x5xi32>) -> tensor<2x5x6x4xf32>
  return
}

// -----

func.func @attention_a5_queries(%q: tensor<2x5x6x4xf32>, %p: tensor<2x5xi32>) {
  // expected-error@+1 {{has some places of queries and keys, not all; give positions and segments of both, or none}}
  %y = "tfm.attention"(%q, %q, %q, %p) <{causal, scale = 0.5, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 1>}> : (tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>, tensor<2x5xi32>) -> tensor<2x5x6x4xf32>
  return
}

// -----

func.func @attention_a6(%q: tensor<2x5x6x4xf32>) {
  // expected-error@+1 {{is a ring and has no places of queries and keys}}
  %y = tfm.attention %q, %q, %q ring causal scale(0.5) : tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>
  return
}

// -----

func.func @attention_a5_shape(%q: tensor<2x5x6x4xf32>, %p: tensor<2x5xi32>, %s: tensor<2x6xi32>) {
  // expected-error@+1 {{query segments are 'tensor<2x6xi32>', expected one for each row of 'tensor<2x5x6x4xf32>'}}
  %y = tfm.attention %q, %q, %q at %p in %s, %p in %p causal scale(0.5) : tensor<2x5x6x4xf32>, tensor<2x5x6x4xf32>, tensor<2x5xi32>, tensor<2x6xi32>, tensor<2x5xi32>, tensor<2x5xi32>
  return
}

// -----

func.func @rope_r3(%x: tensor<2x5x6x4xf32>, %p: tensor<3x5xi32>) {
  // expected-error@+1 {{positions are 'tensor<3x5xi32>', expected one for each row of 'tensor<2x5x6x4xf32>'}}
  %y = tfm.rope %x at %p base(10000.0) : tensor<2x5x6x4xf32>, tensor<3x5xi32>
  return
}

// -----

func.func @add_positions_p2(%x: tensor<2x5x8xf32>, %w: tensor<6x8xf32>, %p: tensor<2x4xi32>) {
  // expected-error@+1 {{positions are 'tensor<2x4xi32>', expected one for each row of 'tensor<2x5x8xf32>'}}
  %y = tfm.add_positions %x, %w at %p : tensor<2x5x8xf32>, tensor<6x8xf32>, tensor<2x4xi32> -> tensor<2x5x8xf32>
  return
}
