// Forward, backward and eval function of a block: what is saved, what is passed
// again, where gradients go.
// RUN: mega-opt %s --mega-differentiate | FileCheck %s

!x = tensor<2x5x8xf32>
!m = tensor<8x8xf32>
!t = tensor<2x5xi32>

tfm.shared @wte = "wte" init(ones) : tensor<11x8xf32>

// The block stays for reading.
// CHECK-LABEL: tfm.block @only_what_the_backward_asks_for_is_saved
tfm.block @only_what_the_backward_asks_for_is_saved(%x: !x) -> !x {
  %w = tfm.param "w" init(ones) : !m
  %y = tfm.linear %x, %w : !x, !m -> !x
  %z = tfm.silu %y : !x
  %s = tfm.add %z, %x : !x
  tfm.yield %s : !x
}
// CHECK-LABEL: tfm.function @only_what_the_backward_asks_for_is_saved.eval(
// CHECK-SAME: attributes {block = "only_what_the_backward_asks_for_is_saved", saved_arguments = 0 : i64, saved_results = 0 : i64}
// The linear needs x, the silu its input; the sum needs nothing.
// CHECK-LABEL: tfm.function @only_what_the_backward_asks_for_is_saved.forward(
// CHECK-SAME: %[[X:.*]]: tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>)
// CHECK-SAME: saved_arguments = 0 : i64, saved_results = 2 : i64}
// CHECK: %[[Y:.*]] = tfm.linear %[[X]]
// CHECK: %[[S:.*]] = tfm.add
// CHECK: tfm.return %[[S]], %[[X]], %[[Y]]
// CHECK-LABEL: tfm.function @only_what_the_backward_asks_for_is_saved.backward(
// CHECK-SAME: %[[G:.*]]: tensor<2x5x8xf32>, %[[X:.*]]: tensor<2x5x8xf32>, %[[Y:.*]]: tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
// CHECK-SAME: saved_arguments = 2 : i64, saved_results = 0 : i64}
// A parameter is read again, not saved.
// CHECK: %w = tfm.param "w"
// CHECK: %[[GY:.*]] = tfm.silu_grad %[[G]], %[[Y]]
// CHECK: %[[GX:.*]] = tfm.linear_input_grad(%[[GY]]), (%w)
// CHECK: %[[R:.*]] = tfm.add %[[G]], %[[GX]]
// CHECK: %[[GW:.*]] = tfm.linear_weight_grad %[[X]], (%[[GY]])
// CHECK: tfm.accumulate_gradient %[[GW]] into "w"
// CHECK: tfm.return %[[R]] : tensor<2x5x8xf32>

tfm.block @ids_are_passed_again_and_have_no_gradient(%t: !t) -> !x {
  %w = tfm.use @wte : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : !t, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}
// CHECK-LABEL: tfm.function @ids_are_passed_again_and_have_no_gradient.forward
// CHECK-SAME: saved_results = 0 : i64}
// CHECK-LABEL: tfm.function @ids_are_passed_again_and_have_no_gradient.backward(
// CHECK-SAME: %[[G:.*]]: tensor<2x5x8xf32>, %[[T:.*]]: tensor<2x5xi32>) attributes
// CHECK-SAME: saved_arguments = 0 : i64
// CHECK: %[[GW:.*]] = tfm.embedding_grad %[[T]], %[[G]]
// A shared parameter is named by its symbol.
// CHECK: tfm.accumulate_gradient %[[GW]] into @wte
// CHECK: tfm.return
// CHECK-NEXT: }

tfm.block @a_parameter_used_twice_accumulates_twice(%x: !x) -> !x {
  %w = tfm.param "w" init(ones) : !m
  %y = tfm.linear %x, %w : !x, !m -> !x
  %z = tfm.linear %y, %w : !x, !m -> !x
  tfm.yield %z : !x
}
// CHECK-LABEL: tfm.function @a_parameter_used_twice_accumulates_twice.backward
// It is read once.
// CHECK: tfm.param "w"
// CHECK-NOT: tfm.param
// CHECK: tfm.accumulate_gradient %{{.*}} into "w"
// CHECK: tfm.accumulate_gradient %{{.*}} into "w"
// CHECK-NOT: tfm.accumulate_gradient
// CHECK: tfm.return

tfm.block @gradients_of_several_uses_add_up(%x: !x) -> !x {
  %a = tfm.silu %x : !x
  %b = tfm.gelu %x erf : !x
  %y = tfm.gated silu %a, %b : !x
  tfm.yield %y : !x
}
// CHECK-LABEL: tfm.function @gradients_of_several_uses_add_up.backward
// CHECK: %[[A:.*]], %[[B:.*]] = tfm.gated_grad
// CHECK-DAG: %[[GB:.*]] = tfm.gelu_grad %[[B]], %{{.*}} erf
// CHECK-DAG: %[[GA:.*]] = tfm.silu_grad %[[A]],
// CHECK: %[[R:.*]] = tfm.add %[[GB]], %[[GA]]
// CHECK: tfm.return %[[R]]

tfm.block @rope_is_transposed_by_rotating_back(%x: tensor<2x5x2x4xf32>) -> tensor<2x5x2x4xf32> {
  %y = tfm.rope %x base(10000.0) : tensor<2x5x2x4xf32>
  tfm.yield %y : tensor<2x5x2x4xf32>
}
// CHECK-LABEL: tfm.function @rope_is_transposed_by_rotating_back.forward
// CHECK-SAME: saved_results = 0 : i64}
// CHECK-LABEL: tfm.function @rope_is_transposed_by_rotating_back.backward
// CHECK: tfm.rope %{{.*}} base(10000.0) inverse
