// Functions, buckets and the step's own ops: they print and parse the same.
// RUN: mega-opt %s | mega-opt | FileCheck %s
// RUN: mega-opt %s -mlir-print-op-generic | mega-opt | FileCheck %s

!x = tensor<2x5x8xf32>
!g = tensor<128xf32>

// CHECK-LABEL: tfm.function @layer.forward(
// CHECK-SAME: -> (tensor<2x5x8xf32>, tensor<2x5x8xf32>) attributes {block = "layer", saved_results = 1 : i64}
tfm.function @layer.forward(%x: !x) -> (!x, !x) attributes {block = "layer", saved_results = 1 : i64} {
  %y = tfm.add %x, %x : !x
  // CHECK: tfm.return %{{.*}}, %{{.*}} : tensor<2x5x8xf32>, tensor<2x5x8xf32>
  tfm.return %y, %y : !x, !x
}

// CHECK-LABEL: tfm.bucket @decayed decay elements(128) at(0) {
tfm.bucket @decayed decay elements(128) at(0) {
  // CHECK: tfm.member "layer" "attn.q.weight" at(0) stride(64) instances(2)
  // CHECK-SAME: logical "attn.q.weight" init(normal, 0.02) prefixes ["h", "g"] runs [0, 0, 1, 4, 1, 1] : tensor<8x8xf32>
  tfm.member "layer" "attn.q.weight" at(0) stride(64) instances(2)
    logical "attn.q.weight" init(normal, 0.02) prefixes ["h", "g"] runs [0, 0, 1, 4, 1, 1] : tensor<8x8xf32>
}

// CHECK-LABEL: tfm.bucket @undecayed elements(0) at(128) {
tfm.bucket @undecayed elements(0) at(128) {
}

// CHECK-LABEL: tfm.function @step
tfm.function @step(%labels: tensor<6x5xi32>) {
  // CHECK: tfm.zero_gradient @decayed
  tfm.zero_gradient @decayed
  // CHECK: tfm.zero_counter "lm.sum"
  tfm.zero_counter "lm.sum"
  %n = tfm.count_valid %labels ignore(-100) : tensor<6x5xi32> -> tensor<i64>
  // CHECK: tfm.record "lm.count", %{{.*}} : tensor<i64>
  tfm.record "lm.count", %n : tensor<i64>
  // CHECK: tfm.loss_seed %{{.*}} weight(0.5) : tensor<i64> -> tensor<f32>
  %seed = tfm.loss_seed %n weight(0.5) : tensor<i64> -> tensor<f32>
  // CHECK: tfm.record "lm.seed", %{{.*}} add : tensor<f32>
  tfm.record "lm.seed", %seed add : tensor<f32>
  // CHECK: tfm.bucket_gradient @decayed : tensor<128xf32>
  %g = tfm.bucket_gradient @decayed : !g
  // CHECK: tfm.sum_squares %{{.*}}, %{{.*}} : tensor<128xf32>, tensor<128xf32> -> tensor<f64>
  %s = tfm.sum_squares %g, %g : !g, !g -> tensor<f64>
  // CHECK: tfm.clip_scale %{{.*}} : tensor<f64> -> tensor<f32>
  %c = tfm.clip_scale %s : tensor<f64> -> tensor<f32>
  // CHECK: tfm.adamw @decayed, %{{.*}}, %{{.*}} : tensor<128xf32>, tensor<f32>
  tfm.adamw @decayed, %g, %c : !g, tensor<f32>
  // CHECK: tfm.return
  tfm.return
}
