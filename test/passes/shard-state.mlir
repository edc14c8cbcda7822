// RUN: mega-opt %s --mega-shard-state | FileCheck %s

!x = tensor<2x5x8xf32>
!m = tensor<8x8xf32>
!k = tensor<4x8xf32>
!p = tensor<2x5x4xf32>
!v = tensor<8xf32>
!t = tensor<2x5xi32>

tfm.shared @wte = "wte.weight" init(normal, 0.02) : tensor<11x8xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.use @wte : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}

tfm.block @layer(%x: !x) -> !x {
  %g = tfm.param "norm" init(ones) : !v
  %wq = tfm.param "q" init(normal, 0.02) : !m
  %wo = tfm.param "o" init(normal, 0.01) : !m
  %bo = tfm.param "o.bias" init(zeros) : !v
  %wk = tfm.param "k" init(normal, 0.02) : !k
  %wv = tfm.param "v" init(normal, 0.02) : !k
  %n = tfm.rms_norm %x, %g epsilon(1.0e-5) : !x, !v
  %q = tfm.linear %n, %wq group(0) : !x, !m -> !x
  %k = tfm.linear %n, %wk group(0) : !x, !k -> !p
  %v = tfm.linear %n, %wv group(0) : !x, !k -> !p
  %o = tfm.linear %q, %wo : !x, !m -> !x
  %y = tfm.add_bias %o, %bo : !x, !v
  tfm.yield %y : !x
}

tfm.model @m max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat @layer times 2(%x) prefix "h" : !x
  %z = tfm.repeat @layer times 1(%y) prefix "g" from 5 : !x
}

// Matrices decay.
// CHECK-LABEL: tfm.bucket @decayed decay elements(704) at(0) {
// A shared parameter has no block, one instance and its own name.
// CHECK-NEXT: tfm.member "" "wte" at(0) stride(0) instances(1) logical "wte.weight" init(normal, 0.02) prefixes [""] runs [0, 0, 1] : tensor<11x8xf32>
// 88 elements end at the next multiple of 64. The weights of a group follow
// their first without padding, whatever the order of declaration; applications
// follow at one stride and keep their names.
// CHECK-NEXT: tfm.member "layer" "q" at(128) stride(192) instances(3) logical "q" init(normal, 0.02) prefixes ["h", "g"] runs [0, 0, 2, 5, 2, 1] : tensor<8x8xf32>
// CHECK-NEXT: tfm.member "layer" "k" at(192) stride(192) instances(3)
// CHECK-NEXT: tfm.member "layer" "v" at(224) stride(192) instances(3)
// CHECK-NEXT: tfm.member "layer" "o" at(256) stride(192) instances(3)
// CHECK-NEXT: }

// Vectors do not, and lie behind: 8 elements each, aligned to 64.
// CHECK-LABEL: tfm.bucket @undecayed elements(384) at(704) {
// CHECK-NEXT: tfm.member "layer" "norm" at(704) stride(128) instances(3)
// CHECK-NEXT: tfm.member "layer" "o.bias" at(768) stride(128) instances(3)
// CHECK-NEXT: }

// One norm over all gradients, then one optimizer step for each bucket.
// CHECK-LABEL: tfm.function @finish()
// CHECK-NEXT: %[[A:.*]] = tfm.bucket_gradient @decayed : tensor<704xf32
// CHECK-NEXT: %[[B:.*]] = tfm.bucket_gradient @undecayed : tensor<384xf32
// CHECK-NEXT: %[[S:.*]] = tfm.sum_squares %[[A]], %[[B]]
// CHECK-NEXT: tfm.record "gradient_square_sum", %[[S]]
// CHECK-NEXT: %[[C:.*]] = tfm.clip_scale %[[S]]
// CHECK-NEXT: tfm.adamw @decayed, %[[A]], %[[C]]
// CHECK-NEXT: tfm.adamw @undecayed, %[[B]], %[[C]]
// CHECK-NEXT: tfm.return
