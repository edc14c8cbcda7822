// RUN: mega-opt %s --mega-verify-layouts -split-input-file -verify-diagnostics

func.func @every_value_has_a_layout(%x: tensor<2x5x8xf32, #dist.layout<>>) {
  %y = tfm.silu %x : tensor<2x5x8xf32, #dist.layout<>>
  return
}

// -----

tfm.model @results_need_one max_sequence(8) {
  // expected-error@+1 {{has a value of type 'tensor<2x5xi32>' without a layout after the shard phase}}
  %t = tfm.input "tokens" : tensor<2x5xi32>
}

// -----

// expected-error@+1 {{has a value of type 'tensor<2x5x8xf32>' without a layout after the shard phase}}
tfm.block @arguments_need_one(%x: tensor<2x5x8xf32>) {
  tfm.yield
}
