// RUN: mega-opt %s --mega-group-linears | FileCheck %s

!x = tensor<2x5x8xf32>
!m = tensor<8x8xf32>
!k = tensor<4x8xf32>
!p = tensor<2x5x4xf32>

tfm.shared @tied = "tied" init(ones) : !m

// CHECK-LABEL: tfm.block @linears_of_one_input_are_a_group
tfm.block @linears_of_one_input_are_a_group(%x: !x) -> (!x, !p, !p, !x, !x) {
  %wq = tfm.param "q" init(ones) : !m
  %wk = tfm.param "k" init(ones) : !k
  %wv = tfm.param "v" init(ones) : !k
  %wg = tfm.param "gate" init(ones) : !m
  %wu = tfm.param "up" init(ones) : !m
  // CHECK: tfm.linear %{{.*}}, %q group(0)
  // CHECK: tfm.linear %{{.*}}, %k group(0)
  // CHECK: tfm.linear %{{.*}}, %v group(0)
  %q = tfm.linear %x, %wq : !x, !m -> !x
  %k = tfm.linear %x, %wk : !x, !k -> !p
  %v = tfm.linear %x, %wv : !x, !k -> !p
  // CHECK: tfm.linear %{{.*}}, %gate group(1)
  // CHECK: tfm.linear %{{.*}}, %up group(1)
  %g = tfm.linear %q, %wg : !x, !m -> !x
  %u = tfm.linear %q, %wu : !x, !m -> !x
  tfm.yield %q, %k, %v, %g, %u : !x, !p, !p, !x, !x
}

// CHECK-LABEL: tfm.block @one_linear_is_no_group
// CHECK-NOT: group(
tfm.block @one_linear_is_no_group(%x: !x) -> !x {
  %w = tfm.param "w" init(ones) : !m
  %y = tfm.linear %x, %w : !x, !m -> !x
  tfm.yield %y : !x
}

// CHECK-LABEL: tfm.block @shared_weights_lie_elsewhere
// CHECK-NOT: group(
tfm.block @shared_weights_lie_elsewhere(%x: !x) -> (!x, !x) {
  %w = tfm.param "w" init(ones) : !m
  %s = tfm.use @tied : !m
  %y = tfm.linear %x, %w : !x, !m -> !x
  %z = tfm.linear %x, %s : !x, !m -> !x
  tfm.yield %y, %z : !x, !x
}

// CHECK-LABEL: tfm.block @a_weight_used_twice_has_two_neighbours
// CHECK-NOT: group(
tfm.block @a_weight_used_twice_has_two_neighbours(%x: !x) -> (!x, !x) {
  %w = tfm.param "w" init(ones) : !m
  %y = tfm.linear %x, %w : !x, !m -> !x
  %z = tfm.linear %y, %w : !x, !m -> !x
  tfm.yield %y, %z : !x, !x
}

// Only this pass knows what can be a group: marks of others go.
// CHECK-LABEL: tfm.block @marks_of_others_go
tfm.block @marks_of_others_go(%x: !x) -> (!x, !x, !x) {
  %a = tfm.param "a" init(ones) : !m
  %b = tfm.param "b" init(ones) : !m
  %s = tfm.use @tied : !m
  // CHECK: tfm.linear %{{.*}}, %a group(0)
  // CHECK: tfm.linear %{{.*}}, %b group(0)
  %y = tfm.linear %x, %a group(7) : !x, !m -> !x
  %z = tfm.linear %x, %b group(8) : !x, !m -> !x
  // CHECK: tfm.linear %{{.*}}, %tied : tensor
  %t = tfm.linear %y, %s group(0) : !x, !m -> !x
  tfm.yield %y, %z, %t : !x, !x, !x
}
