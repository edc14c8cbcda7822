// Fewer key/value heads than tp, and features that tp does not divide.
// RUN: mega-opt %s --mega-annotate-layouts=tp=4 --mega-insert-collectives --mega-group-linears --mega-verify-layouts | FileCheck %s
// RUN: mega-opt %s --mega-annotate-layouts='tp=4 dp=2' --mega-insert-collectives=sequence-parallel --mega-group-linears --mega-verify-layouts | FileCheck %s --check-prefix SP

!x = tensor<4x8x24xf32>
!h = tensor<4x8x8x3xf32>
!kv = tensor<4x8x2x3xf32>

// Two axes for tp: one per key/value head, and the ranks that share it.
// CHECK: dist.mesh = #dist.mesh<tp:1 = 2, tp:0 = 2>
// SP: dist.mesh = #dist.mesh<tp:1 = 2, tp:0 = 2, dp = 2>

// CHECK-LABEL: tfm.block @attention
// Queries are cut over both, keys and values over one and replicated over the
// other, so that their gradients are sums over it.
// CHECK-DAG: tfm.param "q" {{.*}} : tensor<24x24xf32, #dist.layout<[{tp:0, tp:1}, {}]>>
// CHECK-DAG: tfm.param "k" {{.*}} : tensor<6x24xf32, #dist.layout<[{tp:0}, {}], replicated = {tp:1}>>
// One conversion for all three linears; k and v are a group, q is alone.
// CHECK: %[[N:.*]] = dist.replicate %{{.*}} {tp:1, tp:0}
// CHECK-NOT: = dist.
// CHECK: tfm.linear %[[N]], %{{.*}} group(0) :
// CHECK: tfm.attention %{{.*}} : tensor<4x8x8x3xf32, #dist.layout<[{}, {}, {tp:0, tp:1}, {}]>>, tensor<4x8x2x3xf32, #dist.layout<[{}, {}, {tp:0}, {}], replicated = {tp:1}>>
// CHECK: dist.all_reduce %{{.*}} {tp:1, tp:0}
// CHECK-NOT: = dist.
// CHECK: tfm.yield

// SP-LABEL: tfm.block @attention
// SP: dist.all_gather %{{.*}} {tp:0, tp:1}
// SP-NOT: = dist.
// SP: dist.reduce_scatter %{{.*}} {tp:0, tp:1}
// SP-NOT: = dist.
// SP: tfm.yield
tfm.block @attention(%x: !x) -> !x {
  %wq = tfm.param "q" init(ones) : tensor<24x24xf32>
  %wk = tfm.param "k" init(ones) : tensor<6x24xf32>
  %wv = tfm.param "v" init(ones) : tensor<6x24xf32>
  %wo = tfm.param "o" init(ones) : tensor<24x24xf32>
  %q0 = tfm.linear %x, %wq : !x, tensor<24x24xf32> -> !x
  %q = tfm.split_heads %q0 : !x -> !h
  %k0 = tfm.linear %x, %wk : !x, tensor<6x24xf32> -> tensor<4x8x6xf32>
  %k = tfm.split_heads %k0 : tensor<4x8x6xf32> -> !kv
  %v0 = tfm.linear %x, %wv : !x, tensor<6x24xf32> -> tensor<4x8x6xf32>
  %v = tfm.split_heads %v0 : tensor<4x8x6xf32> -> !kv
  %a = tfm.attention %q, %k, %v causal scale(0.5) : !h, !kv
  %m = tfm.merge_heads %a : !h -> !x
  %o = tfm.linear %m, %wo : !x, tensor<24x24xf32> -> !x
  tfm.yield %o : !x
}

// 18 features over 4 ranks: 5 each, of which the last two are zero.
// CHECK-LABEL: tfm.block @features
// CHECK: tfm.param "up" {{.*}} : tensor<18x24xf32, #dist.layout<[{tp:0, tp:1, pad 20}, {}]>>
// CHECK: tfm.param "down" {{.*}} : tensor<24x18xf32, #dist.layout<[{}, {tp:0, tp:1, pad 20}]>>
tfm.block @features(%x: !x) -> !x {
  %a = tfm.param "up" init(ones) : tensor<18x24xf32>
  %b = tfm.param "down" init(ones) : tensor<24x18xf32>
  %u = tfm.linear %x, %a : !x, tensor<18x24xf32> -> tensor<4x8x18xf32>
  %g = tfm.gelu %u tanh : tensor<4x8x18xf32>
  %o = tfm.linear %g, %b : tensor<4x8x18xf32>, tensor<24x18xf32> -> !x
  tfm.yield %o : !x
}
