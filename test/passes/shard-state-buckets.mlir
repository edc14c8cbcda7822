// RUN: mega-opt %s --mega-shard-state -split-input-file -verify-diagnostics | FileCheck %s

!x = tensor<2x5x8xf32>
!t = tensor<2x5xi32>

// CHECK-LABEL: tfm.bucket @decayed decay
// CHECK-NOT: tfm.bucket @
// CHECK: tfm.adamw @decayed
// CHECK-NOT: tfm.adamw
tfm.block @without_vectors_there_is_one_bucket(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}
tfm.model @m max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @without_vectors_there_is_one_bucket(%t) : (!t) -> !x
}

// -----

// expected-error@+1 {{has no parameters}}
tfm.model @there_is_something_to_train max_sequence(8) {
  %t = tfm.input "tokens" : tensor<2x5xi32>
}
