// A model says what is computed, not how exactly.
// RUN: mega-opt %s -split-input-file -verify-diagnostics --mega-assign-precision

// expected-error@+1 {{is 'tensor<2x5x8xbf16>': models are written in f32; --precision bf16 chooses what is computed in bf16}}
tfm.block @narrow(%x: tensor<2x5x8xbf16>) -> tensor<2x5x8xbf16> {
  // expected-error@+1 {{is 'tensor<2x5x8xbf16>': models are written in f32}}
  %y = tfm.silu %x : tensor<2x5x8xbf16>
  tfm.yield %y : tensor<2x5x8xbf16>
}

// -----

// expected-error@+1 {{is 'tensor<11x8xbf16>': models are written in f32}}
tfm.shared @wte = "wte" init(ones) : tensor<11x8xbf16>
