// Values that share memory: columns of one GEMM, views, in place, results that
// take over an argument.
// RUN: mega-opt %s --mega-lower-to-exec -split-input-file | FileCheck %s

!x = tensor<2x5x24xf32>
!v = tensor<24xf32>
!wq = tensor<24x24xf32>
!wk = tensor<8x24xf32>
!k = tensor<2x5x8xf32>
!h = tensor<2x5x6x4xf32>
!kv = tensor<2x5x2x4xf32>

// Weights of the group are neighbours: 24*24, 8*24, 8*24 elements of 4 bytes.
tfm.bucket @decayed decay elements(2048) at(0) {
  tfm.member "layer" "q" at(64) stride(960) instances(2) logical "q" init(ones) prefixes ["h"] runs [0, 0, 2] : !wq
  tfm.member "layer" "k" at(640) stride(960) instances(2) logical "k" init(ones) prefixes ["h"] runs [0, 0, 2] : !wk
  tfm.member "layer" "v" at(832) stride(960) instances(2) logical "v" init(ones) prefixes ["h"] runs [0, 0, 2] : !wk
}

// CHECK-LABEL: exec.function @layer.eval block("layer")
// CHECK-DAG: %[[X:.*]] = exec.argument 0 : <2x5x24xf32>
// CHECK-DAG: %[[Y:.*]] = exec.argument 1 : <2x5x8xf32>
// One matrix of 24 + 8 + 8 rows, at its instance.
// CHECK-DAG: %[[W:.*]] = exec.state "parameters" at 256 per_instance 3840 : <40x24xf32>
// CHECK-DAG: %[[QKV:.*]] = exec.alloc scratch : <2x5x40xf32>
// q, k and v are columns of its rows, seen as heads.
// CHECK-DAG: %[[Q:.*]] = exec.slice %[[QKV]][0] : <2x5x40xf32> -> <2x5x6x4xf32 stride 40>
// CHECK-DAG: %[[K:.*]] = exec.slice %[[QKV]][24] : <2x5x40xf32> -> <2x5x2x4xf32 stride 40>
// CHECK-DAG: %[[V:.*]] = exec.slice %[[QKV]][32] : <2x5x40xf32> -> <2x5x2x4xf32 stride 40>
// CHECK: exec.launch "gemm"(%[[X]], %[[W]], %[[QKV]]) integers (0, 1, 0)
// The statistics that eval does not keep are scratch.
// CHECK-NEXT: exec.launch "attention"(%[[Q]], %[[K]], %[[V]], %[[A:.*]], %[[L:.*]]) integers
tfm.function @layer.eval(%x: !x) -> !k attributes {block = "layer"} {
  %wq = tfm.param "q" init(ones) : !wq
  %wk = tfm.param "k" init(ones) : !wk
  %wv = tfm.param "v" init(ones) : !wk
  %q0, %k0, %v0 = tfm.grouped_linear %x, (%wq, %wk, %wv) : !x, !wq, !wk, !wk -> !x, !k, !k
  %q = tfm.split_heads %q0 : !x -> !h
  %k = tfm.split_heads %k0 : !k -> !kv
  %v = tfm.split_heads %v0 : !k -> !kv
  %a = tfm.attention %q, %k, %v causal scale(0.5) : !h, !kv
  %m = tfm.merge_heads %a : !h -> !x
  %z = tfm.linear %m, %wk : !x, !wk -> !k
  tfm.return %z : !k
}

// -----

!x = tensor<2x5x8xf32>
!v = tensor<8xf32>
!m = tensor<8x8xf32>

tfm.bucket @decayed decay elements(64) at(0) {
  tfm.member "layer" "w" at(0) stride(64) instances(1) logical "w" init(ones) prefixes [""] runs [0, 0, 1] : !m
}
tfm.bucket @undecayed elements(64) at(64) {
  tfm.member "layer" "b" at(64) stride(64) instances(1) logical "b" init(ones) prefixes [""] runs [0, 0, 1] : !v
}

// CHECK-LABEL: exec.function @layer.eval
// The residual stream: the result takes over the argument's memory, so there is
// no second argument.
// CHECK: %[[X:.*]] = exec.argument 0
// CHECK-NOT: exec.argument
// CHECK: %[[Y:.*]] = exec.alloc scratch : <2x5x8xf32>
// CHECK: exec.launch "gemm"(%[[X]], %{{.*}}, %[[Y]])
// A bias is added in place.
// CHECK-NEXT: exec.launch "add_bias"(%[[Y]], %{{.*}}, %[[Y]])
// CHECK-NEXT: exec.launch "add"(%[[X]], %[[Y]], %[[X]])
tfm.function @layer.eval(%x: !x) -> !x attributes {block = "layer"} {
  %w = tfm.param "w" init(ones) : !m
  %b = tfm.param "b" init(zeros) : !v
  %y = tfm.linear %x, %w : !x, !m -> !x
  %z = tfm.add_bias %y, %b : !x, !v
  %s = tfm.add %x, %z : !x
  tfm.return %s : !x
}

// The argument is needed by the backward and its memory is taken over, so it
// is copied into the frame first.
// CHECK-LABEL: exec.function @layer.forward block("layer") frame(512)
// CHECK: %[[X:.*]] = exec.argument 0
// CHECK: %[[SAVED:.*]] = exec.alloc saved at 0 : <2x5x8xf32>
// CHECK: exec.launch "copy"(%[[X]], %[[SAVED]])
// CHECK-NEXT: exec.launch "silu"(%[[X]], %[[X]])
tfm.function @layer.forward(%x: !x) -> (!x, !x) attributes {block = "layer", saved_results = 1 : i64} {
  %y = tfm.silu %x : !x
  tfm.return %y, %x : !x, !x
}
// CHECK-LABEL: exec.function @layer.backward block("layer")
// CHECK: %[[G:.*]] = exec.argument 0
// CHECK: %[[SAVED:.*]] = exec.alloc saved at 0 : <2x5x8xf32>
// CHECK: exec.launch "silu_grad"(%[[G]], %[[SAVED]], %[[G]])
tfm.function @layer.backward(%g: !x, %x: !x) -> !x attributes {block = "layer", saved_arguments = 1 : i64} {
  %y = tfm.silu_grad %g, %x : !x
  tfm.return %y : !x
}
// CHECK-NOT: tfm.function
