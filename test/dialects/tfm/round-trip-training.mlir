// What Differentiate and FuseKernels build: it prints and parses the same.
// RUN: mega-opt %s | mega-opt | FileCheck %s
// RUN: mega-opt %s -mlir-print-op-generic | mega-opt | FileCheck %s

!x = tensor<2x5x24xf32>
!v = tensor<24xf32>
!s = tensor<2x5xf32>
!h = tensor<2x5x6x4xf32>
!kv = tensor<2x5x2x4xf32>

// CHECK-LABEL: func.func @forward_variants_with_statistics
func.func @forward_variants_with_statistics(%x: !x, %g: !v, %q: !h, %k: !kv) {
  // CHECK: %{{.*}}, %{{.*}}, %{{.*}} = tfm.layer_norm_stats %{{.*}} epsilon(1.0e-05) : tensor<2x5x24xf32>, tensor<24xf32> -> tensor<2x5xf32>
  %a, %m, %r = tfm.layer_norm_stats %x, %g, %g epsilon(1.0e-5) : !x, !v -> !s
  // CHECK: tfm.rms_norm_stats %{{.*}} epsilon(1.0e-05) : tensor<2x5x24xf32>, tensor<24xf32> -> tensor<2x5xf32>
  %b, %r2 = tfm.rms_norm_stats %x, %g epsilon(1.0e-5) : !x, !v -> !s
  // CHECK: tfm.attention_stats %{{.*}} causal scale(0.5) dropout("p", 0.1) key(9) : tensor<2x5x6x4xf32>, tensor<2x5x2x4xf32> -> tensor<12x5xf32>
  %c, %l = tfm.attention_stats %q, %k, %k causal scale(0.5) dropout("p", 0.1) key(9) : !h, !kv -> tensor<12x5xf32>
  return
}

// CHECK-LABEL: func.func @fused_kernels
func.func @fused_kernels(%x: !x, %g: !v, %w: tensor<10x24xf32>, %u: tensor<7x24xf32>) {
  // CHECK: tfm.add_layer_norm %{{.*}} epsilon(1.0e-05) : tensor<2x5x24xf32>, tensor<24xf32> -> tensor<2x5xf32>
  %s, %y, %m, %r = tfm.add_layer_norm %x, %x, %g, %g epsilon(1.0e-5) : !x, !v -> !s
  // CHECK: tfm.add_rms_norm %{{.*}} epsilon(1.0e-05) : tensor<2x5x24xf32>, tensor<24xf32> -> tensor<2x5xf32>
  %s2, %y2, %r2 = tfm.add_rms_norm %x, %x, %g epsilon(1.0e-5) : !x, !v -> !s
  // CHECK: tfm.bias_gelu %{{.*}}, %{{.*}} erf : tensor<2x5x24xf32>, tensor<24xf32>
  %z, %t = tfm.bias_gelu %x, %g erf : !x, !v
  // CHECK: tfm.grouped_linear %{{.*}}, (%{{.*}}, %{{.*}}) : tensor<2x5x24xf32>, tensor<10x24xf32>, tensor<7x24xf32> -> tensor<2x5x10xf32>, tensor<2x5x7xf32>
  %a, %b = tfm.grouped_linear %x, (%w, %u)
    : !x, tensor<10x24xf32>, tensor<7x24xf32> -> tensor<2x5x10xf32>, tensor<2x5x7xf32>
  return
}

// CHECK-LABEL: func.func @gradients_of_linears
func.func @gradients_of_linears(%x: !x, %g: tensor<2x5x10xf32>, %h: tensor<2x5x7xf32>,
                                %w: tensor<10x24xf32>, %u: tensor<7x24xf32>) {
  // CHECK: tfm.linear_input_grad(%{{.*}}, %{{.*}}), (%{{.*}}, %{{.*}}) onto %{{.*}} group(0) :
  %a = tfm.linear_input_grad(%g, %h), (%w, %u) onto %x group(0)
    : (tensor<2x5x10xf32>, tensor<2x5x7xf32>, tensor<10x24xf32>, tensor<7x24xf32>, !x) -> !x
  // CHECK: tfm.linear_input_grad(%{{.*}}), (%{{.*}}) : (tensor<2x5x10xf32>, tensor<10x24xf32>) -> tensor<2x5x24xf32>
  %b = tfm.linear_input_grad(%g), (%w) : (tensor<2x5x10xf32>, tensor<10x24xf32>) -> !x
  // CHECK: tfm.linear_weight_grad %{{.*}}, (%{{.*}}, %{{.*}}) group(0) :
  %c, %d = tfm.linear_weight_grad %x, (%g, %h) group(0)
    : (!x, tensor<2x5x10xf32>, tensor<2x5x7xf32>) -> (tensor<10x24xf32>, tensor<7x24xf32>)
  // CHECK: tfm.bias_grad %{{.*}} : (tensor<2x5x10xf32>) -> tensor<10xf32>
  %e = tfm.bias_grad %g : (tensor<2x5x10xf32>) -> tensor<10xf32>
  return
}

// CHECK-LABEL: func.func @gradients_of_norms_and_tables
func.func @gradients_of_norms_and_tables(%x: !x, %g: !v, %s: !s, %t: tensor<2x5xi32>) {
  // CHECK: tfm.layer_norm_grad {{.*}} : (tensor<2x5x24xf32>, tensor<2x5x24xf32>, tensor<24xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5x24xf32>) ->
  %a, %b, %c = tfm.layer_norm_grad %x, %x, %g, %s, %s, %x : (!x, !x, !v, !s, !s, !x) -> (!x, !v, !v)
  // CHECK: tfm.rms_norm_grad {{.*}} : (tensor<2x5x24xf32>, tensor<2x5x24xf32>, tensor<24xf32>, tensor<2x5xf32>) ->
  %d, %e = tfm.rms_norm_grad %x, %x, %g, %s : (!x, !x, !v, !s) -> (!x, !v)
  // CHECK: tfm.embedding_grad %{{.*}} -> tensor<11x24xf32>
  %f = tfm.embedding_grad %t, %x : (tensor<2x5xi32>, !x) -> tensor<11x24xf32>
  // CHECK: tfm.positions_grad %{{.*}} -> tensor<13x24xf32>
  %h = tfm.positions_grad %x : (!x) -> tensor<13x24xf32>
  return
}

// CHECK-LABEL: func.func @gradients_of_the_rest
func.func @gradients_of_the_rest(%x: !x, %q: !h, %k: !kv, %l: tensor<12x5xf32>, %g: !v) {
  // CHECK: tfm.gelu_grad %{{.*}}, %{{.*}} tanh : tensor<2x5x24xf32>
  %a = tfm.gelu_grad %x, %x tanh : !x
  // CHECK: tfm.silu_grad %{{.*}}, %{{.*}} : tensor<2x5x24xf32>
  %b = tfm.silu_grad %x, %x : !x
  // CHECK: tfm.gated_grad gelu_erf %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x5x24xf32>
  %c, %d = tfm.gated_grad gelu_erf %x, %x, %x : !x
  // CHECK: tfm.attention_grad %{{.*}} causal window(3) scale(0.5) dropout("p", 0.1) key(9) : tensor<2x5x6x4xf32>, tensor<2x5x2x4xf32>, tensor<12x5xf32> -> tensor<2x5x2x4xf32>
  %e, %f, %h = tfm.attention_grad %q, %q, %k, %k, %q, %l causal window(3) scale(0.5) dropout("p", 0.1) key(9)
    : !h, !kv, tensor<12x5xf32> -> !kv
  // CHECK: tfm.accumulate_gradient %{{.*}} into "ln_1.weight" : tensor<24xf32>
  tfm.accumulate_gradient %g into "ln_1.weight" : !v
  // CHECK: tfm.accumulate_gradient %{{.*}} into @wte : tensor<24xf32>
  tfm.accumulate_gradient %g into @wte : !v
  return
}
