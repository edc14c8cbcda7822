// Parameters, blocks, models: what is printed parses to the same.
// RUN: mega-opt %s | mega-opt | FileCheck %s
// RUN: mega-opt %s -mlir-print-op-generic | mega-opt | FileCheck %s

!ids = tensor<?x?xi32>
!x = tensor<?x?x8xf32>

// CHECK: tfm.shared @wte = "wte.weight" init(normal, 0.02) : tensor<11x8xf32>
tfm.shared @wte = "wte.weight" init(normal, 0.02) : tensor<11x8xf32>

// CHECK-LABEL: tfm.block @values_are_named_after_parameters(
// CHECK-SAME: %{{.*}}: tensor<?x?xi32>) -> tensor<?x?x8xf32> {
tfm.block @values_are_named_after_parameters(%t: !ids) -> !x {
  // CHECK: %wte = tfm.use @wte : tensor<11x8xf32>
  %w = tfm.use @wte : tensor<11x8xf32>
  // CHECK: %ln_1.bias = tfm.param "ln_1.bias" init(zeros) : tensor<8xf32>
  %c = tfm.param "ln_1.bias" init(zeros) : tensor<8xf32>
  %e = tfm.embedding %t, %w : !ids, tensor<11x8xf32> -> !x
  %y = tfm.add_bias %e, %c : !x, tensor<8xf32>
  // CHECK: tfm.yield %{{.*}} : tensor<?x?x8xf32>
  tfm.yield %y : !x
}

tfm.block @sliding(%x: !x, %t: !ids) -> !x {
  tfm.yield %x : !x
}

tfm.block @a_block_may_have_attributes(%x: !x {test.name = "x"}, %t: !ids)
    -> !x attributes {test.note = 1 : i64} {
  tfm.yield %x : !x
}
// CHECK-LABEL: tfm.block @a_block_may_have_attributes(
// CHECK-SAME: tensor<?x?x8xf32> {test.name = "x"}
// CHECK-SAME: attributes {test.note = 1 : i64}

// CHECK-LABEL: tfm.block @a_block_may_yield_nothing() {
// CHECK-NEXT: tfm.yield
tfm.block @a_block_may_yield_nothing() {
  tfm.yield
}

tfm.block @head(%x: !x, %l: !ids) -> tensor<f32> {
  %w = tfm.use @wte : tensor<11x8xf32>
  %z = tfm.linear %x, %w : !x, tensor<11x8xf32> -> tensor<?x?x11xf32>
  %s = tfm.cross_entropy %z, %l ignore(-100) : tensor<?x?x11xf32>, !ids -> tensor<f32>
  tfm.yield %s : tensor<f32>
}

// CHECK-LABEL: tfm.model @a_model max_sequence(13) {
tfm.model @a_model max_sequence(13) {
  // CHECK: %tokens = tfm.input "tokens" : tensor<?x?xi32>
  %tokens = tfm.input "tokens" : !ids
  // CHECK: %labels = tfm.input "labels" : tensor<?x?xi32>
  %labels = tfm.input "labels" : !ids
  // CHECK: tfm.call @values_are_named_after_parameters(%tokens) : (tensor<?x?xi32>) -> tensor<?x?x8xf32>
  %x = tfm.call @values_are_named_after_parameters(%tokens) : (!ids) -> !x
  // CHECK: tfm.repeat @sliding times 3(%{{.*}}) with (%tokens) prefix "h" : tensor<?x?x8xf32> with tensor<?x?xi32>
  %y = tfm.repeat @sliding times 3(%x) with (%tokens) prefix "h" : !x with !ids
  // CHECK: tfm.call @head(%{{.*}}, %labels)
  %sum = tfm.call @head(%y, %labels) : (!x, !ids) -> tensor<f32>
  // CHECK: tfm.count_valid %labels ignore(-100) : tensor<?x?xi32> -> tensor<i64>
  %count = tfm.count_valid %labels ignore(-100) : !ids -> tensor<i64>
  // CHECK: tfm.loss_term "lm", %{{.*}}, %{{.*}} weight(0.25) : tensor<f32>, tensor<i64>
  tfm.loss_term "lm", %sum, %count weight(0.25) : tensor<f32>, tensor<i64>
  // CHECK: tfm.loss_term "same", %{{.*}}, %{{.*}} : tensor<f32>, tensor<i64>
  tfm.loss_term "same", %sum, %count weight(1.0) : tensor<f32>, tensor<i64>
  // CHECK: tfm.output "hidden", %{{.*}} : tensor<?x?x8xf32>
  tfm.output "hidden", %y : !x
}
