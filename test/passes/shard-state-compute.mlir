// Matrices that are computed with in bf16 have a copy, made after the optimizer.
// RUN: mega-opt %s --mega-shard-state | FileCheck %s
// RUN: mega-opt %s --mega-shard-state --mega-verify-state --mega-lower-to-exec | FileCheck %s --check-prefix EXEC

!x = tensor<2x5x8xbf16>
!t = tensor<2x5xi32>

tfm.shared @wte = "wte.weight" init(normal, 0.02) : tensor<11x8xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.use @wte : tensor<11x8xbf16>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xbf16> -> !x
  tfm.yield %e : !x
}
tfm.block @layer(%x: !x) -> !x {
  %g = tfm.param "norm" init(ones) : tensor<8xf32>
  %w = tfm.param "q" init(normal, 0.02) : tensor<8x8xbf16>
  %n = tfm.rms_norm %x, %g epsilon(1.0e-5) : !x, tensor<8xf32>
  %q = tfm.linear %n, %w : !x, tensor<8x8xbf16> -> !x
  tfm.yield %q : !x
}
tfm.function @layer.eval(%x: !x) -> !x attributes {block = "layer"} {
  %w = tfm.param "q" init(normal, 0.02) : tensor<8x8xbf16>
  %q = tfm.linear %x, %w : !x, tensor<8x8xbf16> -> !x
  tfm.return %q : !x
}
tfm.model @m max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat @layer times 2(%x) prefix "h" : !x
}

// Members are stored in f32.
// CHECK: tfm.bucket @decayed_bf16 decay elements(256) at(0) compute(bf16, 0) {
// CHECK-NEXT: tfm.member "" "wte" at(0) {{.*}} : tensor<11x8xf32>
// CHECK-NEXT: tfm.member "layer" "q" at(128) {{.*}} : tensor<8x8xf32>
// CHECK: tfm.bucket @undecayed elements(128) at(256) {
// CHECK-LABEL: tfm.function @finish()
// CHECK: tfm.adamw @decayed_bf16
// CHECK: tfm.adamw @undecayed
// CHECK-NEXT: tfm.round_weights @decayed_bf16
// CHECK-NEXT: tfm.return

// EXEC-LABEL: exec.function @layer.eval
// EXEC: exec.state "weights" at 256 per_instance 128 : <8x8xbf16
// EXEC-LABEL: exec.function @finish
// EXEC: exec.launch "adamw"
// EXEC: exec.launch "adamw"
// EXEC: exec.launch "cast"({{.*}}) : !exec.buf<256xf32{{.*}}>, !exec.buf<256xbf16{{.*}}>
// EXEC-LABEL: exec.function @setup
// EXEC: exec.launch "cast"
