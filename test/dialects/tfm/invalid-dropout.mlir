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
