// What the model families add to layers: what is printed parses to the same.
// RUN: mega-opt %s | mega-opt | FileCheck %s
// RUN: mega-opt %s -mlir-print-op-generic | mega-opt | FileCheck %s

!x = tensor<?x?x24xf32>
!h = tensor<?x?x6x4xf32>
!kv = tensor<?x?x2x4xf32>
!v = tensor<24xf32>

// CHECK-LABEL: func.func @norms_with_an_offset
func.func @norms_with_an_offset(%x: !x, %h: !h, %g: !v, %d: tensor<4xf32>) {
  // CHECK: tfm.rms_norm %{{.*}}, %{{.*}} epsilon(1.0e-06) offset(1.0) : tensor<?x?x24xf32>, tensor<24xf32>
  %a = tfm.rms_norm %x, %g epsilon(1.0e-6) offset(1.0) : !x, !v
  // A whole number is a number; an offset of 0 is none.
  // CHECK: tfm.rms_norm %{{.*}}, %{{.*}} epsilon(1.0) : tensor<?x?x6x4xf32>, tensor<4xf32>
  %b = tfm.rms_norm %h, %d epsilon(1) offset(0) : !h, tensor<4xf32>
  // CHECK: offset(-0.5)
  %c = tfm.rms_norm %x, %g epsilon(1.0e-6) offset(-0.5) : !x, !v
  return
}

// CHECK-LABEL: func.func @scaled_rotations
func.func @scaled_rotations(%q: !h) {
  // CHECK: tfm.rope %{{.*}} base(10000.0) scaling <linear, factor(8.0)> : tensor<?x?x6x4xf32>
  %a = tfm.rope %q base(10000.0) scaling <linear, factor(8)> : !h
  // Numbers in any order; printed in one.
  // CHECK: tfm.rope %{{.*}} base(5.0e+05) scaling <llama3, factor(32.0), low(1.0), high(4.0), original(8192.0)> inverse : tensor<?x?x6x4xf32>
  %b = tfm.rope %q base(500000.0) scaling <llama3, original(8192), high(4.0), low(1.0), factor(32.0)> inverse : !h
  // CHECK: tfm.rope_table base(10000.0) scaling <yarn, factor(4.0), original(32768.0), beta_fast(32.0), beta_slow(1.0), attention(1.1386)> : tensor<5x4xf32>
  %t = tfm.rope_table base(10000.0) scaling <yarn, factor(4.0), original(32768), beta_fast(32.0), beta_slow(1.0), attention(1.1386)> : tensor<5x4xf32>
  return
}

// CHECK-LABEL: func.func @softcaps
func.func @softcaps(%q: !h, %k: !kv, %z: tensor<?x?x11xf32>, %l: tensor<?x?xi32>) {
  // CHECK: tfm.attention %{{.*}}, %{{.*}}, %{{.*}} causal window(3) scale(0.5) softcap(50.0) dropout("attn", 0.1) : tensor<?x?x6x4xf32>, tensor<?x?x2x4xf32>
  %a = tfm.attention %q, %k, %k causal window(3) scale(0.5) softcap(50.0) dropout("attn", 0.1) : !h, !kv
  // CHECK: tfm.cross_entropy %{{.*}}, %{{.*}} ignore(-100) softcap(30.0) :
  %s = tfm.cross_entropy %z, %l ignore(-100) softcap(30.0) : tensor<?x?x11xf32>, tensor<?x?xi32> -> tensor<f32>
  return
}

// CHECK-LABEL: func.func @scales
func.func @scales(%x: !x) {
  // CHECK: tfm.scale %{{.*}} factor(4.898979485566356) : tensor<?x?x24xf32>
  %y = tfm.scale %x factor(4.898979485566356) : !x
  return
}

// CHECK-LABEL: tfm.block @remembers_little
// CHECK-SAME: attributes {recompute = #tfm.recompute<full>}
tfm.block @remembers_little(%x: !x) -> !x attributes {recompute = #tfm.recompute<full>} {
  tfm.yield %x : !x
}

// CHECK: tfm.bucket @decayed decay elements(64) at(128) compute(bf16, 0) {
tfm.bucket @decayed decay elements(64) at(128) compute(bf16, 0) {
}
