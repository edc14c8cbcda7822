// RUN: mega-opt %s --mega-differentiate -split-input-file -verify-diagnostics

!x = tensor<2x5x8xf32>

tfm.block @a_value_is_yielded_once(%x: !x) -> (!x, !x) {
  %y = tfm.silu %x : !x
  // expected-error@+1 {{yields one value twice}}
  tfm.yield %y, %y : !x, !x
}

// -----

!x = tensor<2x5x8xf32>

// expected-error@+1 {{argument 1 does not influence any result}}
tfm.block @arguments_have_an_influence(%x: !x, %unused: !x) -> !x {
  %y = tfm.silu %x : !x
  tfm.yield %y : !x
}

// -----

!x = tensor<2x5x8xf32>

tfm.block @every_op_on_the_way_has_a_gradient(%x: !x) -> !x {
  %b = tfm.param "b" init(ones) : tensor<8xf32>
  // expected-error@+1 {{has no gradient (Differentiable)}}
  %y, %z = tfm.bias_gelu %x, %b tanh : !x, tensor<8xf32>
  tfm.yield %z : !x
}

// -----

// Without influence on a result no gradient is wanted.
!x = tensor<2x5x8xf32>

tfm.block @dead_ops_need_no_gradient(%x: !x) -> !x {
  %b = tfm.param "b" init(ones) : tensor<8xf32>
  %y, %z = tfm.bias_gelu %x, %b tanh : !x, tensor<8xf32>
  tfm.yield %x : !x
}
