// Repeated blocks get the flag's choice, what is called once keeps everything,
// what a model says itself wins.
// RUN: mega-opt %s --mega-choose-recompute=recompute=full | FileCheck %s
// RUN: not mega-opt %s --mega-choose-recompute=recompute=some 2>&1 | FileCheck %s --check-prefix UNKNOWN

// UNKNOWN: --recompute some is not one of none, selective, full

!x = tensor<2x5x8xf32>

// CHECK-LABEL: tfm.block @first
// CHECK-SAME: recompute = #tfm.recompute<none>
tfm.block @first(%t: tensor<2x5xi32>) -> !x {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : tensor<2x5xi32>, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}
// CHECK-LABEL: tfm.block @layer
// CHECK-SAME: recompute = #tfm.recompute<full>
tfm.block @layer(%x: !x) -> !x {
  tfm.yield %x : !x
}
// CHECK-LABEL: tfm.block @wide
// CHECK-SAME: recompute = #tfm.recompute<selective>
tfm.block @wide(%x: !x) -> !x attributes {recompute = #tfm.recompute<selective>} {
  tfm.yield %x : !x
}
tfm.model @m max_sequence(8) {
  %t = tfm.input "tokens" : tensor<2x5xi32>
  %x = tfm.call @first(%t) : (tensor<2x5xi32>) -> !x
  %y = tfm.repeat [@layer x2, @wide] times 5(%x) prefix "h" : !x
}
