// Where a backward saves what its weight reads: over what it has read for the
// last time and the weight does not read, or behind what the forward saved.
// RUN: mega-opt %s -split-input-file --mega-lower-to-exec | FileCheck %s

!x = tensor<2x5x8xf32>
!m = tensor<8x8xf32>

tfm.bucket @decayed decay elements(64) at(0) {
  tfm.member "in_place" "w" at(0) stride(64) instances(1) logical "w" init(ones) prefixes [""] runs [0, 0, 1] : !m
}

// CHECK-LABEL: exec.function @in_place.forward block("in_place") frame(1024)
tfm.function @in_place.forward(%x: !x) -> (!x, !x, !x) attributes {block = "in_place", saved_results = 2 : i64} {
  %w = tfm.param "w" init(ones) : !m
  %y = tfm.linear %x, %w : !x, !m -> !x
  %z = tfm.silu %y : !x
  tfm.return %z, %x, %y : !x, !x, !x
}
// The gradient replaces y while it is read.
// CHECK-LABEL: exec.function @in_place.backward block("in_place") frame(1024)
// CHECK: %[[Y:.*]] = exec.alloc saved at 512 : <2x5x8xf32>
// CHECK: %[[GY:.*]] = exec.alloc saved at 512 : <2x5x8xf32>
// CHECK: exec.launch "silu_grad"(%{{.*}}, %[[Y]], %[[GY]])
tfm.function @in_place.backward(%g: !x, %x: !x, %y: !x) -> (!x, !x) attributes {block = "in_place", saved_arguments = 2 : i64, saved_results = 1 : i64} {
  %w = tfm.param "w" init(ones) : !m
  %gy = tfm.silu_grad %g, %y : !x
  %gx = tfm.linear_input_grad(%gy), (%w) : (!x, !m) -> !x
  tfm.return %gx, %gy : !x, !x
}
// CHECK-LABEL: exec.function @in_place.weight block("in_place")
// CHECK-DAG: %[[GY:.*]] = exec.alloc saved at 512 : <2x5x8xf32>
// CHECK-DAG: %[[X:.*]] = exec.alloc saved at 0 : <2x5x8xf32>
// CHECK: exec.launch "gemm"(%[[GY]], %[[X]], %{{.*}})
tfm.function @in_place.weight(%x: !x, %y: !x, %gy: !x) attributes {block = "in_place", saved_arguments = 3 : i64} {
  %gw = tfm.linear_weight_grad %x, (%gy) : (!x, !x) -> !m
  tfm.accumulate_gradient %gw into "w" : !m
  tfm.return
}

// -----

!x = tensor<2x5x8xf32>
!m = tensor<8x8xf32>

tfm.bucket @decayed decay elements(128) at(0) {
  tfm.member "after" "v" at(0) stride(128) instances(1) logical "v" init(ones) prefixes [""] runs [0, 0, 1] : !m
  tfm.member "after" "w" at(64) stride(128) instances(1) logical "w" init(ones) prefixes [""] runs [0, 0, 1] : !m
}

tfm.function @after.forward(%x: !x) -> (!x, !x, !x) attributes {block = "after", saved_results = 2 : i64} {
  %y = tfm.silu %x : !x
  tfm.return %y, %x, %y : !x, !x, !x
}
// What came is copied behind the forward's part. The product is over x, which
// silu_grad was the last to read; y stays for the weight.
// CHECK-LABEL: exec.function @after.backward block("after") frame(1536)
// CHECK: %[[G:.*]] = exec.argument 0
// CHECK: %[[CAME:.*]] = exec.alloc saved at 1024 : <2x5x8xf32>
// CHECK: %[[X:.*]] = exec.alloc saved at 0 : <2x5x8xf32>
// CHECK: %[[PRODUCT:.*]] = exec.alloc saved at 0 : <2x5x8xf32>
// CHECK: exec.launch "copy"(%[[G]], %[[CAME]])
// CHECK: exec.launch "silu_grad"(%[[G]], %[[X]], %[[GX:.*]])
// CHECK: exec.launch "gemm"(%[[GX]], %{{.*}}, %[[PRODUCT]])
tfm.function @after.backward(%g: !x, %x: !x, %y: !x) -> (!x, !x, !x) attributes {block = "after", saved_arguments = 2 : i64, saved_results = 2 : i64} {
  %v = tfm.param "v" init(ones) : !m
  %w = tfm.param "w" init(ones) : !m
  %gx = tfm.silu_grad %g, %x : !x
  %gy = tfm.linear_input_grad(%gx), (%v) : (!x, !m) -> !x
  %gz = tfm.linear_input_grad(%gy), (%w) : (!x, !m) -> !x
  tfm.return %gz, %g, %gy : !x, !x, !x
}
tfm.function @after.weight(%x: !x, %y: !x, %g: !x, %gy: !x) attributes {block = "after", saved_arguments = 4 : i64} {
  %gv = tfm.linear_weight_grad %y, (%g) : (!x, !x) -> !m
  tfm.accumulate_gradient %gv into "v" : !m
  %gw = tfm.linear_weight_grad %y, (%gy) : (!x, !x) -> !m
  tfm.accumulate_gradient %gw into "w" : !m
  tfm.return
}
