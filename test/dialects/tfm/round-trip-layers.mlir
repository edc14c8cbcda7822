// What a layer computes: what is printed parses to the same.
// RUN: mega-opt %s | mega-opt | FileCheck %s
// RUN: mega-opt %s -mlir-print-op-generic | mega-opt | FileCheck %s

!ids = tensor<?x?xi32>
!x = tensor<?x?x24xf32>
!h = tensor<?x?x6x4xf32>
!kv = tensor<?x?x2x4xf32>
!v = tensor<24xf32>

// CHECK-LABEL: func.func @embeddings
func.func @embeddings(%t: !ids, %wte: tensor<11x24xf32>, %wpe: tensor<13x24xf32>) {
  // CHECK: tfm.embedding %{{.*}}, %{{.*}} : tensor<?x?xi32>, tensor<11x24xf32> -> tensor<?x?x24xf32>
  %e = tfm.embedding %t, %wte : !ids, tensor<11x24xf32> -> !x
  // CHECK: tfm.add_positions %{{.*}}, %{{.*}} : tensor<?x?x24xf32>, tensor<13x24xf32> -> tensor<?x?x24xf32>
  %y = tfm.add_positions %e, %wpe : !x, tensor<13x24xf32> -> !x
  return
}

// CHECK-LABEL: func.func @norms
func.func @norms(%x: !x, %h: !h, %g: !v, %d: tensor<4xf32>) {
  // CHECK: tfm.layer_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon(1.0e-05) : tensor<?x?x24xf32>, tensor<24xf32>
  %a = tfm.layer_norm %x, %g, %g epsilon(1.0e-5) : !x, !v
  // CHECK: tfm.rms_norm %{{.*}}, %{{.*}} epsilon(1.5e-06) : tensor<?x?x24xf32>, tensor<24xf32>
  %b = tfm.rms_norm %x, %g epsilon(1.5e-6) : !x, !v
  // CHECK: tfm.rms_norm %{{.*}}, %{{.*}} epsilon(0.001) : tensor<?x?x6x4xf32>, tensor<4xf32>
  %c = tfm.rms_norm %h, %d epsilon(0.001) : !h, tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @linears
func.func @linears(%x: !x, %w: tensor<10x24xf32>, %b: !v) {
  // CHECK: tfm.linear %{{.*}}, %{{.*}} : tensor<?x?x24xf32>, tensor<10x24xf32> -> tensor<?x?x10xf32>
  %a = tfm.linear %x, %w : !x, tensor<10x24xf32> -> tensor<?x?x10xf32>
  // CHECK: tfm.linear %{{.*}}, %{{.*}} group(3) : tensor<?x?x24xf32>, tensor<10x24xf32> -> tensor<?x?x10xf32>
  %c = tfm.linear %x, %w group(3) : !x, tensor<10x24xf32> -> tensor<?x?x10xf32>
  // CHECK: tfm.add_bias %{{.*}}, %{{.*}} : tensor<?x?x24xf32>, tensor<24xf32>
  %d = tfm.add_bias %x, %b : !x, !v
  return
}

// CHECK-LABEL: func.func @activations
func.func @activations(%x: !x, %y: !x) {
  // CHECK: tfm.gelu %{{.*}} tanh : tensor<?x?x24xf32>
  %a = tfm.gelu %x tanh : !x
  // CHECK: tfm.gelu %{{.*}} erf : tensor<?x?x24xf32>
  %b = tfm.gelu %x erf : !x
  // CHECK: tfm.silu %{{.*}} : tensor<?x?x24xf32>
  %c = tfm.silu %x : !x
  // CHECK: tfm.gated silu %{{.*}}, %{{.*}} : tensor<?x?x24xf32>
  %d = tfm.gated silu %x, %y : !x
  // CHECK: tfm.gated gelu_tanh
  %e = tfm.gated gelu_tanh %x, %y : !x
  // CHECK: tfm.gated gelu_erf
  %f = tfm.gated gelu_erf %x, %y : !x
  // CHECK: tfm.add %{{.*}}, %{{.*}} : tensor<?x?x24xf32>
  %g = tfm.add %x, %y : !x
  // CHECK: tfm.dropout "mlp" %{{.*}} p(0.1) : tensor<?x?x24xf32>
  %h = tfm.dropout "mlp" %x p(0.1) : !x
  // CHECK: tfm.dropout "mlp" %{{.*}} p(0.0) key(-7) : tensor<?x?x24xf32>
  %i = tfm.dropout "mlp" %x p(0.0) key(-7) : !x
  return
}

// CHECK-LABEL: func.func @heads
func.func @heads(%x: !x, %h: !h, %k: !kv) {
  // CHECK: tfm.split_heads %{{.*}} : tensor<?x?x24xf32> -> tensor<?x?x6x4xf32>
  %a = tfm.split_heads %x : !x -> !h
  // CHECK: tfm.merge_heads %{{.*}} : tensor<?x?x6x4xf32> -> tensor<?x?x24xf32>
  %b = tfm.merge_heads %a : !h -> !x
  // CHECK: tfm.rope_table base(10000.0) : tensor<13x4xf32>
  %t = tfm.rope_table base(10000.0) : tensor<13x4xf32>
  // CHECK: tfm.rope %{{.*}} base(5.0e+05) : tensor<?x?x6x4xf32>
  %c = tfm.rope %h base(500000.0) : !h
  // CHECK: tfm.rope %{{.*}} base(10000.0) inverse : tensor<?x?x6x4xf32>
  %d = tfm.rope %h base(10000.0) inverse : !h
  // CHECK: tfm.attention %{{.*}}, %{{.*}}, %{{.*}} scale(0.5) : tensor<?x?x6x4xf32>, tensor<?x?x2x4xf32>
  %e = tfm.attention %h, %k, %k scale(0.5) : !h, !kv
  // CHECK: tfm.attention %{{.*}} causal window(7) scale(0.3535533905932738) dropout("probs", 0.1) key(5)
  %f = tfm.attention %h, %k, %k causal window(7) scale(0.35355339059327379) dropout("probs", 0.1) key(5) : !h, !kv
  return
}
