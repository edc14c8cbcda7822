// RUN: mega-opt %s --mega-lower-to-exec -split-input-file -verify-diagnostics

!x = tensor<2x5x8xf32>

tfm.function @dropouts_have_keys(%x: !x) -> !x {
  // expected-error@+1 {{has no key; run mega-differentiate first}}
  %y = tfm.dropout "a" %x p(0.1) : !x
  tfm.return %y : !x
}

// -----

!h = tensor<2x5x6x4xf32>

tfm.function @attention_dropouts_have_keys(%q: !h) -> !h {
  // expected-error@+1 {{has no dropout key; run mega-differentiate first}}
  %y, %l = tfm.attention_stats %q, %q, %q causal scale(0.5) dropout("a", 0.1) : !h, !h -> tensor<12x5xf32>
  tfm.return %y : !h
}

// -----

!x = tensor<2x5x8xf32>

tfm.function @layer(%x: !x) -> !x attributes {block = "layer"} {
  // expected-error@+1 {{in no bucket}}
  %b = tfm.param "b" init(ones) : tensor<8xf32>
  %y = tfm.add_bias %x, %b : !x, tensor<8xf32>
  tfm.return %y : !x
}

// -----

!x = tensor<2x5x11xf32>
!l = tensor<2x5xi32>

tfm.function @ops_have_a_lowering(%z: !x, %l: !l) -> tensor<f32> {
  // expected-error@+1 {{has no lowering (LowerToExec)}}
  %s = tfm.cross_entropy %z, %l ignore(-100) : !x, !l -> tensor<f32>
  tfm.return %s : tensor<f32>
}

// -----

!x = tensor<2x5x8xf32>

tfm.function @layer.forward(%x: !x) -> (!x, !x) attributes {block = "layer", saved_results = 1 : i64} {
  %y = tfm.silu %x : !x
  tfm.return %y, %x : !x, !x
}
// expected-error@+1 {{reads 2 saved values but its forward keeps 1}}
tfm.function @layer.backward(%g: !x, %x: !x, %y: !x) -> !x attributes {block = "layer", saved_arguments = 2 : i64} {
  %z = tfm.silu_grad %g, %x : !x
  tfm.return %z : !x
}

// -----

!x = tensor<2x5x8xf32>

tfm.function @layer.backward(%g: !x) -> (!x, !x) attributes {block = "layer", saved_results = 1 : i64} {
  tfm.return %g, %g : !x, !x
}
// expected-error@+1 {{reads 2 saved values but its backward keeps 1}}
tfm.function @layer.weight(%x: !x, %g: !x) attributes {block = "layer", saved_arguments = 2 : i64} {
  tfm.return
}

// -----

tfm.function @buckets_exist() {
  // expected-error@+1 {{no tfm.bucket named @decayed}}
  tfm.zero_gradient @decayed
  tfm.return
}

// -----

tfm.function @sums_of_squares_are_over_buckets(%g: tensor<64xf32>) -> tensor<f64> {
  // expected-error@+1 {{operand 0 is no gradient of a bucket}}
  %s = tfm.sum_squares %g : tensor<64xf32> -> tensor<f64>
  tfm.return %s : tensor<f64>
}
