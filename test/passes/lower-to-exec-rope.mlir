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
  tfm.return %a, %b, %c : !h, !k, !k
}

// CHECK-LABEL: exec.function @setup
// CHECK-COUNT-2: exec.launch "rope_table"
// CHECK-NOT: exec.launch
// CHECK: pipe.program @{{.*}} kind({{ ?}}setup)
