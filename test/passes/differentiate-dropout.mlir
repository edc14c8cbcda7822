// RUN: mega-opt %s --mega-differentiate | FileCheck %s

!x = tensor<2x5x8xf32>
!h = tensor<2x5x6x4xf32>

tfm.block @forward_and_backward_use_one_mask(%x: !x) -> !x {
  %y = tfm.dropout "a" %x p(0.1) : !x
  %z = tfm.dropout "b" %y p(0.2) : !x
  tfm.yield %z : !x
}
// CHECK-LABEL: tfm.function @forward_and_backward_use_one_mask.eval(%arg0: tensor<2x5x8xf32>)
// CHECK-NEXT: tfm.return %arg0
// CHECK-LABEL: tfm.function @forward_and_backward_use_one_mask.forward
// CHECK: tfm.dropout "a" %{{.*}} p(0.1) key([[A:-?[0-9]+]])
// CHECK-NOT: key([[A]])
// CHECK: tfm.dropout "b" %{{.*}} p(0.2) key([[B:-?[0-9]+]])
// The mask is made again, so nothing is saved.
// CHECK: tfm.return %{{[^,]*}} : tensor<2x5x8xf32>
// CHECK-LABEL: tfm.function @forward_and_backward_use_one_mask.backward
// CHECK: tfm.dropout "b" %{{.*}} p(0.2) key([[B]])
// CHECK: tfm.dropout "a" %{{.*}} p(0.1) key([[A]])

// The same name in another block is another mask.
tfm.block @keys_depend_on_the_block(%x: !x) -> !x {
  %y = tfm.dropout "a" %x p(0.1) : !x
  tfm.yield %y : !x
}
// CHECK-LABEL: tfm.function @keys_depend_on_the_block.forward
// CHECK-NOT: key([[A]])
// CHECK: tfm.dropout "a" %{{.*}} p(0.1) key(

tfm.block @probabilities_drop_alike(%q: !h) -> !h {
  %y = tfm.attention %q, %q, %q causal scale(0.5) dropout("probs", 0.1) : !h, !h
  tfm.yield %y : !h
}
// CHECK-LABEL: tfm.function @probabilities_drop_alike.eval
// CHECK-NOT: dropout
// CHECK-LABEL: tfm.function @probabilities_drop_alike.forward
// CHECK: tfm.attention_stats {{.*}} dropout("probs", 0.1) key([[P:-?[0-9]+]])
// CHECK-LABEL: tfm.function @probabilities_drop_alike.backward
// CHECK: tfm.attention_grad {{.*}} dropout("probs", 0.1) key([[P]])
