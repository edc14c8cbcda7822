// Which parameters are cut, by structure and not by name.
// RUN: mega-opt %s "--mega-annotate-layouts=tp=4" -split-input-file -verify-diagnostics | FileCheck %s

!x = tensor<2x8x24xf32>
!f = tensor<2x8x20xf32>
// CHECK-LABEL: tfm.block @pairs
tfm.block @pairs(%x: !x) -> !x {
  // CHECK: tfm.param "first" {{.*}} #dist.layout<[{tp}, {}]>>
  %a = tfm.param "first" init(ones) : tensor<20x24xf32>
  // CHECK: tfm.param "second" {{.*}} #dist.layout<[{}, {tp}]>>
  %b = tfm.param "second" init(ones) : tensor<24x20xf32>
  // Nothing pairs with it: its features go into a sum.
  // CHECK: tfm.param "alone" {{.*}} #dist.layout<>>
  %c = tfm.param "alone" init(ones) : tensor<24x24xf32>
  %y = tfm.linear %x, %a : !x, tensor<20x24xf32> -> !f
  %g = tfm.gelu %y tanh : !f
  %z = tfm.linear %g, %b : !f, tensor<24x20xf32> -> !x
  %s = tfm.add %x, %z : !x
  %o = tfm.linear %s, %c : !x, tensor<24x24xf32> -> !x
  %r = tfm.add %s, %o : !x
  tfm.yield %r : !x
}

// -----

!x = tensor<2x8x24xf32>
!f = tensor<2x8x20xf32>
// What the model says itself stays.
// CHECK-LABEL: tfm.block @asked_for
tfm.block @asked_for(%x: !x) -> !x {
  // CHECK: tfm.param "first" {{.*}} #dist.layout<[{}, {tp}]>>
  %a = tfm.param "first" init(ones) : tensor<20x24xf32, #dist.layout<[{}, {tp}]>>
  %b = tfm.param "second" init(ones) : tensor<24x20xf32>
  %y = tfm.linear %x, %a : !x, tensor<20x24xf32, #dist.layout<[{}, {tp}]>> -> !f
  %z = tfm.linear %y, %b : !f, tensor<24x20xf32> -> !x
  tfm.yield %z : !x
}

// -----

!x = tensor<2x8x24xf32>
!h = tensor<2x8x6x4xf32>
tfm.block @heads(%x: !x) -> !x {
  %a = tfm.param "q" init(ones) : tensor<24x24xf32>
  %b = tfm.param "o" init(ones) : tensor<24x24xf32>
  %q0 = tfm.linear %x, %a : !x, tensor<24x24xf32> -> !x
  %q = tfm.split_heads %q0 : !x -> !h
  // expected-error@+1 {{--tp 4 does not divide 6 heads into parts of whole groups of the 6 key/value heads (legal: 1, 2, 3, 6)}}
  %v = tfm.attention %q, %q, %q causal scale(0.5) : !h, !h
  %m = tfm.merge_heads %v : !h -> !x
  %o = tfm.linear %m, %b : !x, tensor<24x24xf32> -> !x
  tfm.yield %o : !x
}
