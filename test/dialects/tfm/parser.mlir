// Edge cases of the custom formats: init(...) and cycles of blocks.
// RUN: mega-opt %s | mega-opt | FileCheck %s

!x = tensor<?x?x8xf32>
!p = tensor<?x?xi32>

// CHECK-LABEL: tfm.block @initial_values
tfm.block @initial_values() {
  // CHECK: init(zeros) :
  %a = tfm.param "a" init(zeros) : tensor<8xf32>
  // CHECK: init(ones) :
  %b = tfm.param "b" init(ones) : tensor<8xf32>
  // CHECK: init(normal, 0.005773502691896258) :
  %c = tfm.param "c" init(normal, 0.005773502691896258) : tensor<8xf32>
  // Numbers are printed in the shortest form that reads back, with a fraction.
  // CHECK: init(constant, -3.0) :
  %d = tfm.param "d" init(constant, -3.0) : tensor<8xf32>
  // CHECK: init(constant, 1.0e-300) :
  %e = tfm.param "e" init(constant, 1.0e-300) : tensor<8xf32>
  tfm.yield
}

tfm.block @sliding(%x: !x, %p: !p) -> !x {
  tfm.yield %x : !x
}
tfm.block @full(%x: !x, %p: !p) -> !x {
  tfm.yield %x : !x
}
tfm.block @plain(%x: !p) -> !p {
  tfm.yield %x : !p
}
tfm.block @two(%x: !p, %y: !p, %z: !p) -> (!p, !p) {
  tfm.yield %x, %y : !p, !p
}
tfm.block @embed(%p: !p) -> !x {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %p, %w : !p, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}

// CHECK-LABEL: tfm.model @cycles
tfm.model @cycles max_sequence(8) {
  %p = tfm.input "tokens" : !p
  %x = tfm.call @embed(%p) : (!p) -> !x
  // CHECK: tfm.repeat [@sliding x5, @full] times 26(%{{.*}}) with (%tokens) prefix "model.layers" from 3 : tensor<?x?x8xf32> with tensor<?x?xi32>
  %a = tfm.repeat [@sliding x5, @full] times 26 (%x) with (%p) prefix "model.layers" from 3 : !x with !p
  // A cycle of one block that occurs once is that block.
  // CHECK: tfm.repeat @full times 1(%{{.*}}) with (%tokens) prefix "h" :
  %b = tfm.repeat [@full] times 1 (%a) with (%p) prefix "h" from 0 : !x with !p
  // CHECK: tfm.repeat [@full x2] times 3(
  %c = tfm.repeat [@full x2] times 3 (%b) with (%p) prefix "h" from 1 : !x with !p
  // CHECK: tfm.repeat [@full, @full] times 2(
  %d = tfm.repeat [@full x1, @full] times 2 (%c) with (%p) prefix "g" : !x with !p
  // CHECK: tfm.repeat @plain times 2(%tokens) prefix "" {test.note} : tensor<?x?xi32>
  %e = tfm.repeat @plain times 2 (%p) prefix "" {test.note} : !p
  // CHECK: tfm.repeat @two times 2(%{{.*}}, %tokens) with (%tokens) prefix "t" : tensor<?x?xi32>, tensor<?x?xi32> with tensor<?x?xi32>
  %f:2 = tfm.repeat @two times 2 (%e, %p) with (%p) prefix "t" : !p, !p with !p
}
