// Gradients, counters and the optimizer: memory that lives through a step.
// RUN: mega-opt %s --mega-lower-to-exec | FileCheck %s

!x = tensor<2x5x8xf32>
!m = tensor<8x8xf32>
!g = tensor<128xf32>

tfm.bucket @decayed decay elements(128) at(64) {
  tfm.member "layer" "w" at(64) stride(64) instances(2) logical "w" init(ones) prefixes ["h"] runs [0, 0, 2] : !m
}

// A GEMM accumulates onto the gradient where it lies: beta is 1.
// CHECK-LABEL: exec.function @layer.backward
// CHECK: %[[G:.*]] = exec.state "gradients" at 256 per_instance 256 : <8x8xf32>
// CHECK: exec.launch "gemm"(%{{.*}}, %{{.*}}, %[[G]]) integers (1, 0, 1)
tfm.function @layer.backward(%g: !x, %x: !x) attributes {block = "layer"} {
  %w = tfm.linear_weight_grad %x, (%g) : (!x, !x) -> !m
  tfm.accumulate_gradient %w into "w" : !m
  tfm.return
}

// CHECK-LABEL: exec.function @step
tfm.function @step(%labels: tensor<6x5xi32>) {
  // CHECK-DAG: %[[GRADIENT:.*]] = exec.state "gradients" at 256 : <128xf32>
  // CHECK-DAG: %[[COUNT:.*]] = exec.state "counters" at {{.*}} : <i64>
  // CHECK: exec.launch "zero"(%[[GRADIENT]])
  tfm.zero_gradient @decayed
  // A recorded value is made where it is kept.
  // CHECK: exec.launch "count_valid"(%{{.*}}, %[[COUNT]]) integers (-100, 0)
  %n = tfm.count_valid %labels ignore(-100) : tensor<6x5xi32> -> tensor<i64>
  tfm.record "lm.count", %n : tensor<i64>
  %g = tfm.bucket_gradient @decayed : !g
  // CHECK: exec.launch "sum_squares"(%{{.*}}, %[[SQUARES:.*]]) integers (0)
  %s = tfm.sum_squares %g : !g -> tensor<f64>
  // CHECK: exec.launch "clip_scale"(%[[SQUARES]], %[[SCALE:.*]])
  %c = tfm.clip_scale %s : tensor<f64> -> tensor<f32>
  // Parameters, gradients, moments, variances; 1: with decay.
  // CHECK: exec.launch "adamw"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[SCALE]]) integers (1)
  tfm.adamw @decayed, %g, %c : !g, tensor<f32>
  tfm.return
}
// CHECK: exec.counter "lm.count" at 0 : !exec.buf<i64>
