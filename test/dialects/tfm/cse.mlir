// RUN: mega-opt %s -cse | FileCheck %s

// Two dropouts of one value have different masks: their names keep them apart.
// CHECK-LABEL: func.func @dropouts_of_one_value_are_not_merged
// CHECK-DAG: tfm.dropout "a"
// CHECK-DAG: tfm.dropout "b"
func.func @dropouts_of_one_value_are_not_merged(%x: tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>, tensor<2x5x8xf32>) {
  %a = tfm.dropout "a" %x p(0.1) : tensor<2x5x8xf32>
  %b = tfm.dropout "b" %x p(0.1) : tensor<2x5x8xf32>
  return %a, %b : tensor<2x5x8xf32>, tensor<2x5x8xf32>
}

// CHECK-LABEL: func.func @equal_sums_are_merged
// CHECK: tfm.add
// CHECK-NOT: tfm.add
func.func @equal_sums_are_merged(%x: tensor<2x5x8xf32>, %y: tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>, tensor<2x5x8xf32>) {
  %a = tfm.add %x, %y : tensor<2x5x8xf32>
  %b = tfm.add %y, %x : tensor<2x5x8xf32>
  return %a, %b : tensor<2x5x8xf32>, tensor<2x5x8xf32>
}
