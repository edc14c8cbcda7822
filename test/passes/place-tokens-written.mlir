// A model that has the inputs itself is checked, and stays as it is.
// RUN: mega-opt %s --mega-place-tokens=packed -split-input-file -verify-diagnostics | FileCheck %s

!t = tensor<?x?xi32>
!h = tensor<?x?x2x4xf32>

// CHECK: tfm.block @attend(%{{.*}}: tensor<?x?x2x4xf32>, %{{.*}}: tensor<?x?xi32>, %{{.*}}: tensor<?x?xi32>) ->
tfm.block @attend(%q: !h, %s: !t, %p: !t) -> !h {
  %y = tfm.attention %q, %q, %q at %p in %s, %p in %s causal scale(0.5) : !h, !h, !t, !t, !t, !t
  tfm.yield %y : !h
}
// CHECK: tfm.model @m
// CHECK-COUNT-2: tfm.input
// CHECK-NOT: tfm.input
tfm.model @m max_sequence(16) {
  %s = tfm.input "segment_ids" : !t
  %p = tfm.input "positions" : !t
}

// -----

!t = tensor<?x?xi32>
!h = tensor<?x?x2x4xf32>

tfm.block @attend(%q: !h, %s: !t, %p: !t) -> !h {
  // expected-error@+1 {{--packed needs positions here, and the model has inputs for packed sequences of its own; pass them on to this op, or declare none and leave it to --packed}}
  %r = tfm.rope %q base(10000.0) : !h
  // expected-error@+1 {{--packed needs positions here}}
  %y = tfm.attention %r, %r, %r causal scale(0.5) : !h, !h
  tfm.yield %y : !h
}
tfm.model @m max_sequence(16) {
  %p = tfm.input "positions" : !t
}

// -----

!t = tensor<?x?xi32>

// expected-error@+1 {{--packed keeps documents apart where positions and attention are computed, and no block of the model does; leave it out}}
tfm.model @m max_sequence(16) {
  %t = tfm.input "tokens" : !t
}

// -----

// expected-error@+1 {{has no input that says how long a row is}}
tfm.model @m max_sequence(16) {
}
