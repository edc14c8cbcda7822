// RUN: mega-opt %s --mega-bind-shapes="batch=3 sequence=5" | FileCheck %s
// RUN: mega-opt %s --mega-bind-shapes | FileCheck %s --check-prefix=DEFAULT

// Batch and sequence are bound in arguments, results and signatures.
// CHECK-LABEL: tfm.block @signatures_and_values_are_bound(
// CHECK-SAME: %{{.*}}: tensor<3x5xi32>) -> tensor<3x5x8xf32>
// One row of max_sequence tokens is the default.
// DEFAULT: tfm.block @signatures_and_values_are_bound(%{{.*}}: tensor<1x7xi32>) -> tensor<1x7x8xf32>
tfm.block @signatures_and_values_are_bound(%t: tensor<?x?xi32>) -> tensor<?x?x8xf32> {
  // Parameters were static before.
  // CHECK: tfm.param "w" init(ones) : tensor<11x8xf32>
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  // CHECK: tfm.embedding {{.*}} -> tensor<3x5x8xf32>
  %e = tfm.embedding %t, %w : tensor<?x?xi32>, tensor<11x8xf32> -> tensor<?x?x8xf32>
  // CHECK: tfm.split_heads {{.*}} -> tensor<3x5x2x4xf32>
  %h = tfm.split_heads %e : tensor<?x?x8xf32> -> tensor<?x?x2x4xf32>
  %m = tfm.merge_heads %h : tensor<?x?x2x4xf32> -> tensor<?x?x8xf32>
  // CHECK: tfm.yield %{{.*}} : tensor<3x5x8xf32>
  tfm.yield %m : tensor<?x?x8xf32>
}

// CHECK-LABEL: tfm.model @m
tfm.model @m max_sequence(7) {
  // CHECK: tfm.input "tokens" : tensor<3x5xi32>
  %t = tfm.input "tokens" : tensor<?x?xi32>
  // CHECK: tfm.call @signatures_and_values_are_bound(%{{.*}}) : (tensor<3x5xi32>) -> tensor<3x5x8xf32>
  %x = tfm.call @signatures_and_values_are_bound(%t) : (tensor<?x?xi32>) -> tensor<?x?x8xf32>
  // A count is a scalar: it has neither.
  // CHECK: tfm.count_valid {{.*}} -> tensor<i64>
  %n = tfm.count_valid %t ignore(0) : tensor<?x?xi32> -> tensor<i64>
}
