// Two stages, a stage of three, and two chunks of each of two stages, of a model with a
// cycle of two kinds of layers and a table that embedding and head share.
// RUN: mega-opt %s --mega-partition-pipeline="pp=2 stage=0 stages='E 3L | 2L H'" | FileCheck %s --check-prefix=FIRST
// RUN: mega-opt %s --mega-partition-pipeline="pp=2 stage=1 stages='E 3L | 2L H'" | FileCheck %s --check-prefix=LAST
// RUN: mega-opt %s --mega-partition-pipeline="pp=2 stage=1 stages='E L | 4L H'" | FileCheck %s --check-prefix=CYCLE
// RUN: mega-opt %s --mega-partition-pipeline="pp=3 stage=1 stages='E L | 3L | L H'" | FileCheck %s --check-prefix=MIDDLE
// RUN: mega-opt %s --mega-partition-pipeline="pp=2 vpp=2 stage=0 stages='E L | 2L | L | L H'" | FileCheck %s --check-prefix=CHUNKS
// RUN: mega-opt %s --mega-partition-pipeline="pp=2 stage=1" | FileCheck %s --check-prefix=BALANCED

!t = tensor<2x5xi32>
!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>
!s = tensor<2x5xf32>

// FIRST: module attributes {pipe.stage = 0 : i64}
// FIRST: tfm.shared @table = "table" init(normal, 0.02) tied
// FIRST: tfm.block @embed
// FIRST: tfm.block @sliding
// FIRST: tfm.block @full
// Blocks of other stages go.
// FIRST-NOT: tfm.block
// FIRST-LABEL: tfm.model @cycle
// FIRST-NEXT: %[[T:.*]] = tfm.input "tokens"
// FIRST-NEXT: %[[L:.*]] = tfm.input "labels"
// FIRST-NEXT: %[[X:.*]] = tfm.call @embed(%[[T]]) {application = 0 : i64}
// FIRST-NEXT: %[[Y:.*]] = tfm.repeat [@sliding x2, @full] times 3(%[[X]]) prefix "h" {application = 1 : i64}
// FIRST-NEXT: tfm.send %[[Y]] part(0) : tensor<2x5x8xf32>
// The loss is summed on the last stage; every stage counts the labels.
// FIRST-NEXT: %[[SUM:.*]] = tfm.elsewhere : tensor<f32>
// FIRST-NEXT: %[[COUNT:.*]] = tfm.count_valid %[[L]]
// FIRST-NEXT: tfm.loss_term "lm", %[[SUM]], %[[COUNT]] weight(0.5)
// FIRST-NEXT: }

// LAST: module attributes {pipe.stage = 1 : i64}
// LAST: tfm.shared @table = "table" init(normal, 0.02) tied
// LAST-NOT: tfm.block @embed
// LAST-NOT: tfm.block @full
// LAST-LABEL: tfm.model @cycle
// LAST-NEXT: tfm.input "tokens"
// LAST-NEXT: %[[L:.*]] = tfm.input "labels"
// LAST-NEXT: %[[X:.*]] = tfm.receive part(1) : tensor<2x5x8xf32>
// Names and numbers go on where the stage before ends.
// LAST-NEXT: %[[Y:.*]] = tfm.repeat @sliding times 2(%[[X]]) prefix "h" from 3 {application = 4 : i64}
// LAST-NEXT: %[[Z:.*]] = tfm.call @head(%[[Y]], %[[L]]) {application = 6 : i64}
// LAST-NOT: tfm.send
// LAST-NOT: tfm.elsewhere
// LAST: tfm.loss_term "lm", %[[Z]],

// Cut after the first of two @sliding: the cycle begins in its middle, and is
// walked once.
// CYCLE-LABEL: tfm.model @cycle
// CYCLE: tfm.repeat [@sliding, @full, @sliding x2] times 4(%{{.*}}) prefix "h" from 1 {application = 2 : i64}
// CYCLE-NEXT: tfm.call @head(%{{.*}}) {application = 6 : i64}

// Neither end is here, nor the table.
// MIDDLE-NOT: tfm.shared
// MIDDLE-LABEL: tfm.model @cycle
// MIDDLE: %[[X:.*]] = tfm.receive part(1)
// MIDDLE-NEXT: %[[Y:.*]] = tfm.repeat [@sliding, @full, @sliding] times 3(%[[X]]) prefix "h" from 1 {application = 2 : i64}
// MIDDLE-NEXT: tfm.send %[[Y]] part(1)
// MIDDLE-NEXT: tfm.elsewhere

// Without a map the parts are balanced by cost; here they are the first ones.
// BALANCED: tfm.repeat @sliding times 2(%{{.*}}) prefix "h" from 3 {application = 4 : i64}

// Parts 0 and 2.
// CHUNKS-LABEL: tfm.model @cycle
// CHUNKS: %[[X:.*]] = tfm.call @embed(%{{.*}}) {application = 0 : i64}
// CHUNKS-NEXT: %[[Y:.*]] = tfm.repeat @sliding times 1(%[[X]]) prefix "h" {application = 1 : i64}
// CHUNKS-NEXT: tfm.send %[[Y]] part(0)
// CHUNKS-NEXT: %[[V:.*]] = tfm.receive part(2)
// CHUNKS-NEXT: %[[W:.*]] = tfm.repeat @sliding times 1(%[[V]]) prefix "h" from 3 {application = 4 : i64}
// CHUNKS-NEXT: tfm.send %[[W]] part(2)
// CHUNKS-NEXT: tfm.elsewhere

tfm.shared @table = "table" init(normal, 0.02) : !w
tfm.block @embed(%t: !t) -> !x {
  %w = tfm.use @table : !w
  %e = tfm.embedding %t, %w : !t, !w -> !x
  tfm.yield %e : !x
}
tfm.block @sliding(%x: !x) -> !x {
  %y = tfm.silu %x : !x
  tfm.yield %y : !x
}
tfm.block @full(%x: !x) -> !x {
  %y = tfm.gelu %x erf : !x
  tfm.yield %y : !x
}
tfm.block @head(%x: !x, %l: !t) -> tensor<f32> {
  %w = tfm.use @table : !w
  %m, %s, %t = tfm.head_stats %x, %w, %l ignore(-100) : !x, !w, !t -> !s, !s, !s
  %y = tfm.head_loss %m, %s, %t, %l ignore(-100) : !s, !t -> tensor<f32>
  tfm.yield %y : tensor<f32>
}
tfm.model @cycle max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %l = tfm.input "labels" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
  %y = tfm.repeat [@sliding x2, @full] times 5(%x) prefix "h" : !x
  %z = tfm.call @head(%y, %l) : (!x, !t) -> tensor<f32>
  %n = tfm.count_valid %l ignore(-100) : !t -> tensor<i64>
  tfm.loss_term "lm", %z, %n weight(0.5) : tensor<f32>, tensor<i64>
}
