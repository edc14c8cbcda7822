// Rotation tables are constants, computed once; equal tables are one.
// RUN: mega-opt %s --mega-lower-to-exec | FileCheck %s

!h = tensor<2x5x6x4xf32>
!k = tensor<2x5x2x4xf32>

// CHECK-LABEL: exec.function @rotate
tfm.function @rotate(%q: !h, %k: !k) -> (!h, !k, !k) {
  // CHECK-DAG: %[[A:.*]] = exec.state "constants" at 0 : <5x4xf32>
  // CHECK-DAG: %[[B:.*]] = exec.state "constants" at 256 : <5x4xf32>
  // CHECK: exec.launch "rope"(%{{.*}}, %{{.*}}, %{{.*}}) integers (0)
  %a = tfm.rope %q base(10000.0) : !h
  %b = tfm.rope %k base(10000.0) : !k
  // CHECK: exec.launch "rope"(%{{.*}}, %[[B]], %{{.*}}) integers (1)
  %c = tfm.rope %b base(500.0) inverse : !k
  // Scaling makes another table.
  %d = tfm.rope %c base(500.0) scaling <linear, factor(2.0)> : !k
  tfm.return %a, %b, %d : !h, !k, !k
}

// CHECK-LABEL: exec.function @setup
// CHECK: exec.launch "rope_table"(%{{.*}}) integers (0) floats (10000.0, 1.0,
// CHECK: exec.launch "rope_table"(%{{.*}}) integers (0) floats (500.0, 1.0,
// CHECK: exec.launch "rope_table"(%{{.*}}) integers (1) floats (500.0, 2.0,
// CHECK-NOT: exec.launch
// CHECK: pipe.program @{{.*}} kind({{ ?}}setup)
