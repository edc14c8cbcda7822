// RUN: mega-opt %s -canonicalize | FileCheck %s

// On one vocabulary shard the local maximum is the global one.
// CHECK-LABEL: func.func @a_rescale_to_the_same_maximum_folds
// CHECK-SAME: (%[[SUM:.*]]: tensor<2x5xf32>, %{{.*}}: tensor<2x5xf32>)
// CHECK-NOT: tfm.head_rescale
// CHECK: return %[[SUM]]
func.func @a_rescale_to_the_same_maximum_folds(%sum: tensor<2x5xf32>, %max: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %r = tfm.head_rescale %sum, %max, %max : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  return %r : tensor<2x5xf32>
}

// CHECK-LABEL: func.func @a_rescale_to_another_maximum_stays
// CHECK: tfm.head_rescale
func.func @a_rescale_to_another_maximum_stays(%sum: tensor<2x5xf32>, %a: tensor<2x5xf32>, %b: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %r = tfm.head_rescale %sum, %a, %b : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  return %r : tensor<2x5xf32>
}

// CHECK-LABEL: func.func @unused_parameters_and_layers_go
// CHECK-NEXT: return
func.func @unused_parameters_and_layers_go(%x: tensor<2x5x8xf32>) {
  %w = tfm.param "w" init(ones) : tensor<8x8xf32>
  %y = tfm.linear %x, %w : tensor<2x5x8xf32>, tensor<8x8xf32> -> tensor<2x5x8xf32>
  return
}

// CHECK-LABEL: func.func @accumulations_stay
// CHECK: tfm.accumulate_gradient
func.func @accumulations_stay(%g: tensor<8xf32>) {
  tfm.accumulate_gradient %g into "b" : tensor<8xf32>
  return
}
