// Verifiers of cross entropy, functions and buckets.
// RUN: mega-opt %s -split-input-file -verify-diagnostics

func.func @cross_entropy_x1(%z: tensor<2x5x11xf32>, %l: tensor<2x4xi32>) {
  // expected-error@+1 {{logits 'tensor<2x5x11xf32>' and labels 'tensor<2x4xi32>' differ in batch or sequence}}
  %s = tfm.cross_entropy %z, %l ignore(-100) : tensor<2x5x11xf32>, tensor<2x4xi32> -> tensor<f32>
  return
}

// -----

tfm.function @function_f1(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  // expected-error@+1 {{returns () but @function_f1 has results ('tensor<2x5x8xf32>')}}
  tfm.return
}

// -----

// expected-error@+1 {{must end in tfm.return}}
tfm.function @function_f1_without_a_terminator(%x: tensor<2x5x8xf32>) {
  %y = tfm.add %x, %x : tensor<2x5x8xf32>
}

// -----

// expected-error@+1 {{saves 2 of 1 results}}
tfm.function @function_f2_results(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
    attributes {saved_results = 2 : i64} {
  tfm.return %x : tensor<2x5x8xf32>
}

// -----

// expected-error@+1 {{saves -1 of 0 results}}
tfm.function @function_f2_negative() attributes {saved_results = -1 : i64} {
  tfm.return
}

// -----

// expected-error@+1 {{has 2 saved of 1 arguments}}
tfm.function @function_f2_arguments(%x: tensor<2x5x8xf32>) attributes {saved_arguments = 2 : i64} {
  tfm.return
}

// -----

func.func @member_outside_a_bucket() {
  // expected-error@+1 {{expects parent op 'tfm.bucket'}}
  tfm.member "b" "w" at(0) stride(64) instances(1) logical "w" init(ones)
    prefixes [""] runs [0, 0, 1] : tensor<8xf32>
  return
}
