// RUN: mega-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(mega-annotate-layouts{tp=4},mega-insert-collectives{sequence-parallel})'

// Sequences are not padded: one error, with lengths that would do.
!x = tensor<2x10x24xf32>
// expected-error@+1 {{--sp cuts sequences of 10 over --tp 4, which does not divide them (nearest: 8, 12)}}
tfm.block @linears(%x: !x) -> !x {
  %a = tfm.param "a" init(ones) : tensor<24x24xf32>
  %b = tfm.param "b" init(ones) : tensor<24x24xf32>
  %h = tfm.linear %x, %a : !x, tensor<24x24xf32> -> !x
  %y = tfm.linear %h, %b : !x, tensor<24x24xf32> -> !x
  tfm.yield %y : !x
}

// -----

!x = tensor<2x3x24xf32>
// expected-error@+1 {{--sp cuts sequences of 3 over --tp 4, which does not divide them (nearest: 4)}}
tfm.block @short(%x: !x) -> !x {
  tfm.yield %x : !x
}
