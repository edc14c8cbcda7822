// RUN: mega-opt %s --mega-annotate-layouts | FileCheck %s

// CHECK: tfm.shared @wte = "wte" init(ones) : tensor<11x8xf32, #dist.layout<>>
tfm.shared @wte = "wte" init(ones) : tensor<11x8xf32>

// CHECK-LABEL: tfm.block @every_value_is_invariant_on_one_rank(
// CHECK-SAME: tensor<2x5xi32, #dist.layout<>>) -> tensor<2x5x8xf32, #dist.layout<>>
tfm.block @every_value_is_invariant_on_one_rank(%t: tensor<2x5xi32>) -> tensor<2x5x8xf32> {
  // CHECK: tfm.use @wte : tensor<11x8xf32, #dist.layout<>>
  %w = tfm.use @wte : tensor<11x8xf32>
  // CHECK: tfm.embedding {{.*}} -> tensor<2x5x8xf32, #dist.layout<>>
  %e = tfm.embedding %t, %w : tensor<2x5xi32>, tensor<11x8xf32> -> tensor<2x5x8xf32>
  tfm.yield %e : tensor<2x5x8xf32>
}

// CHECK-LABEL: func.func @a_layout_that_is_there_stays(
// CHECK-SAME: tensor<2x6x8xf32, #dist.layout<[{}, {tp}, {}]>>)
func.func @a_layout_that_is_there_stays(%x: tensor<2x6x8xf32, #dist.layout<[{}, {tp}, {}]>>) {
  return
}
