// What is computed in bf16, and what stays f32.
// RUN: mega-opt %s --mega-assign-precision=precision=bf16 | FileCheck %s
// RUN: mega-opt %s --mega-assign-precision | FileCheck %s --check-prefix FP32
// RUN: not mega-opt %s --mega-assign-precision=precision=fp16 2>&1 | FileCheck %s --check-prefix UNKNOWN

// FP32-NOT: bf16
// UNKNOWN: --precision fp16 is not one of fp32, bf16

!x = tensor<2x5x8xf32>
!h = tensor<2x5x2x4xf32>
!v = tensor<8xf32>
!t = tensor<2x5xi32>

// A shared parameter states the type it is stored in; its uses that of the copy.
// CHECK: tfm.shared @wte = "wte.weight" init(normal, 0.02) : tensor<11x8xf32>
tfm.shared @wte = "wte.weight" init(normal, 0.02) : tensor<11x8xf32>

// CHECK-LABEL: tfm.block @embed
// CHECK-SAME: (%{{.*}}: tensor<2x5xi32>) -> tensor<2x5x8xbf16>
tfm.block @embed(%t: !t) -> !x {
  // CHECK: tfm.use @wte : tensor<11x8xbf16>
  %w = tfm.use @wte : tensor<11x8xf32>
  // CHECK: tfm.embedding %{{.*}}, %{{.*}} : tensor<2x5xi32>, tensor<11x8xbf16> -> tensor<2x5x8xbf16>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  // sqrt(8) = 2.828427 is 2.828125 in bf16.
  // CHECK: tfm.scale %{{.*}} factor(2.828125) : tensor<2x5x8xbf16>
  %s = tfm.scale %e factor(2.8284271247461903) : !x
  tfm.yield %s : !x
}

// CHECK-LABEL: tfm.block @layer
tfm.block @layer(%x: !x) -> !x {
  // Vectors are read as they are stored.
  // CHECK: tfm.param "norm" init(ones) : tensor<8xf32>
  %g = tfm.param "norm" init(ones) : !v
  // CHECK: tfm.param "q" init(ones) : tensor<8x8xbf16>
  %w = tfm.param "q" init(ones) : tensor<8x8xf32>
  // CHECK: tfm.rms_norm %{{.*}}, %{{.*}} epsilon(1.0e-05) : tensor<2x5x8xbf16>, tensor<8xf32>
  %n = tfm.rms_norm %x, %g epsilon(1.0e-5) : !x, !v
  // CHECK: tfm.linear %{{.*}}, %{{.*}} : tensor<2x5x8xbf16>, tensor<8x8xbf16> -> tensor<2x5x8xbf16>
  %q = tfm.linear %n, %w : !x, tensor<8x8xf32> -> !x
  // CHECK: tfm.split_heads %{{.*}} : tensor<2x5x8xbf16> -> tensor<2x5x2x4xbf16>
  %h = tfm.split_heads %q : !x -> !h
  %y = tfm.merge_heads %h : !h -> !x
  tfm.yield %y : !x
}

// CHECK-LABEL: tfm.block @head
// CHECK-SAME: -> tensor<f32>
tfm.block @head(%x: !x, %l: !t) -> tensor<f32> {
  %w = tfm.use @wte : tensor<11x8xf32>
  %z = tfm.linear %x, %w : !x, tensor<11x8xf32> -> tensor<2x5x11xf32>
  // The sum of a loss is f32.
  // CHECK: tfm.cross_entropy {{.*}} -> tensor<f32>
  %s = tfm.cross_entropy %z, %l ignore(-100) : tensor<2x5x11xf32>, !t -> tensor<f32>
  tfm.yield %s : tensor<f32>
}

tfm.model @m max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  // CHECK: tfm.repeat @layer times 2(%{{.*}}) prefix "h" : tensor<2x5x8xbf16>
  %y = tfm.repeat @layer times 2(%x) prefix "h" : !x
  %s = tfm.call @head(%y, %t) : (!x, !t) -> tensor<f32>
}
