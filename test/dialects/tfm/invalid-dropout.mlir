// RUN: mega-opt %s -split-input-file -verify-diagnostics

func.func @dropout_d1_one(%x: tensor<2x5x8xf32>) {
  // expected-error@+1 {{p is 1.000000e+00, expected 0 <= p < 1}}
  %y = tfm.dropout "a" %x p(1.0) : tensor<2x5x8xf32>
  return
}

// -----

func.func @dropout_d1_negative(%x: tensor<2x5x8xf32>) {
  // expected-error@+1 {{p is -1.000000e-01, expected 0 <= p < 1}}
  %y = tfm.dropout "a" %x p(-0.1) : tensor<2x5x8xf32>
  return
}

// -----

tfm.block @dropout_d2(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %y = tfm.dropout "a" %x p(0.1) : tensor<2x5x8xf32>
  // expected-error@+1 {{a dropout named "a" exists already; the two would use one mask}}
  %z = tfm.dropout "a" %y p(0.1) : tensor<2x5x8xf32>
  tfm.yield %z : tensor<2x5x8xf32>
}

// -----

!h = tensor<2x5x6x4xf32>
tfm.block @dropout_d2_of_attention(%x: tensor<2x5x8xf32>, %h: !h) -> tensor<2x5x8xf32> {
  %y = tfm.dropout "a" %x p(0.1) : tensor<2x5x8xf32>
  // expected-error@+1 {{a dropout named "a" exists already}}
  %z = tfm.attention %h, %h, %h causal scale(0.5) dropout("a", 0.1) : !h, !h
  tfm.yield %y : tensor<2x5x8xf32>
}

// -----

func.func @dropout_d3(%x: tensor<2x5x8xf32>, %p: tensor<2x5xi32>) {
  // expected-error@+1 {{has positions or segments; give both, or neither}}
  %y = "tfm.dropout"(%x, %p) <{name = "d", p = 0.5, operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<2x5x8xf32>, tensor<2x5xi32>) -> tensor<2x5x8xf32>
  return
}

// -----

func.func @dropout_d3_shape(%x: tensor<2x5x8xf32>, %p: tensor<2x5xi32>, %s: tensor<2x4xi32>) {
  // expected-error@+1 {{segments are 'tensor<2x4xi32>', expected one for each row of 'tensor<2x5x8xf32>'}}
  %y = tfm.dropout "d" %x at %p in %s p(0.5) : tensor<2x5x8xf32>, tensor<2x5xi32>, tensor<2x4xi32>
  return
}
