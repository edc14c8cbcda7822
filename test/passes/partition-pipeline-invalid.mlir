// Parts that the model does not have.
// RUN: not mega-opt %s --mega-partition-pipeline=pp=5 -split-input-file 2>&1 | FileCheck %s --check-prefix=PARTS
// RUN: not mega-opt %s --mega-partition-pipeline="pp=2 stages='E 3L | H'" -split-input-file 2>&1 | FileCheck %s --check-prefix=MAP
// RUN: not mega-opt %s --mega-partition-pipeline="pp=2 schedule=fast" -split-input-file 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// PARTS: error: {{.*}}5 pipeline parts (stages x chunks) need as many units of the model, which has 4: 1 embedding, 2 layers, 1 head (legal: 1 to 4 parts)
// MAP: error: {{.*}}part 0 has 3 layers: 3 of 2
// SCHEDULE: error: --schedule fast is none of 1f1b, gpipe, interleaved and zero-bubble

// What cannot be cut.
// RUN: mega-opt %s --mega-partition-pipeline="pp=4 stage=3" -split-input-file -verify-diagnostics

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>

// expected-error@+1 {{is used on 2 stages, from 0 to 1; a parameter can be shared by the first and the last of 4 stages, or by the blocks of one}}
tfm.shared @table = "table" init(ones) : !w
tfm.block @embed(%t: !t) -> !x {
  %w = tfm.use @table : !w
  %e = tfm.embedding %t, %w : !t, !w -> !x
  tfm.yield %e : !x
}
tfm.block @again(%x: !x, %t: !t) -> !x {
  %w = tfm.use @table : !w
  %e = tfm.embedding %t, %w : !t, !w -> !x
  %y = tfm.add %x, %e : !x
  tfm.yield %y : !x
}
tfm.block @layer(%x: !x) -> !x {
  %y = tfm.silu %x : !x
  tfm.yield %y : !x
}
tfm.model @a_middle_stage_shares_nothing max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.call @again(%x, %t) : (!x, !t) -> !x
  %z = tfm.repeat @layer times 2(%y) prefix "h" : !x
}

// -----

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>

tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : !w
  %e = tfm.embedding %t, %w : !t, !w -> !x
  tfm.yield %e : !x
}
tfm.block @layer(%x: !x) -> !x {
  %y = tfm.silu %x : !x
  tfm.yield %y : !x
}
tfm.block @join(%x: !x, %y: !x) -> !x {
  %z = tfm.add %x, %y : !x
  tfm.yield %z : !x
}
tfm.model @one_activation_crosses_a_boundary max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat @layer times 2(%x) prefix "h" : !x
  // expected-error@+1 {{takes two activations; a pipeline can be cut where there is one}}
  %z = tfm.call @join(%x, %y) : (!x, !x) -> !x
}
