// RUN: mega-opt %s --mega-verify-schedule -split-input-file -verify-diagnostics

// Good: activations are on communicator 0, gradients on 1, both on queues of
// their own.
pipe.pipeline @one_forward_one_backward parts([0, 1]) micro_batches(3) train {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) slot(0) buffer(0)
    pipe.send @a0 forward part(0) micro_batch(0) to(1) communicator(0) queue(0) buffer(0) bytes(4096)
    pipe.run forward part(0) micro_batch(1) slot(1) buffer(1)
    pipe.send @a1 forward part(0) micro_batch(1) to(1) communicator(0) queue(0) buffer(1) bytes(4096)
    pipe.receive @g0 backward part(1) micro_batch(0) from(1) communicator(1) queue(1) buffer(2) bytes(4096)
    pipe.wait @a0
    pipe.wait @g0
    pipe.run backward part(0) micro_batch(0) slot(0) buffer(2)
    pipe.run forward part(0) micro_batch(2) slot(0) buffer(0)
    pipe.send @a2 forward part(0) micro_batch(2) to(1) communicator(0) queue(0) buffer(0) bytes(4096)
    pipe.wait @a1
    pipe.receive @g1 backward part(1) micro_batch(1) from(1) communicator(1) queue(1) buffer(2) bytes(4096)
    pipe.wait @g1
    pipe.run backward part(0) micro_batch(1) slot(1) buffer(2)
    pipe.receive @g2 backward part(1) micro_batch(2) from(1) communicator(1) queue(1) buffer(2) bytes(4096)
    pipe.wait @a2
    pipe.wait @g2
    pipe.run backward part(0) micro_batch(2) slot(0) buffer(2)
  }
  pipe.stage 1 {
    pipe.receive @a0 forward part(0) micro_batch(0) from(0) communicator(0) queue(0) buffer(0) bytes(4096)
    pipe.wait @a0
    pipe.run forward part(1) micro_batch(0) slot(0) buffer(0)
    pipe.receive @a1 forward part(0) micro_batch(1) from(0) communicator(0) queue(0) buffer(1) bytes(4096)
    pipe.run backward part(1) micro_batch(0) slot(0) buffer(0)
    pipe.send @g0 backward part(1) micro_batch(0) to(0) communicator(1) queue(1) buffer(0) bytes(4096)
    pipe.wait @a1
    pipe.run forward part(1) micro_batch(1) slot(0) buffer(1)
    pipe.wait @g0
    pipe.receive @a2 forward part(0) micro_batch(2) from(0) communicator(0) queue(0) buffer(0) bytes(4096)
    pipe.run backward part(1) micro_batch(1) slot(0) buffer(1)
    pipe.send @g1 backward part(1) micro_batch(1) to(0) communicator(1) queue(1) buffer(1) bytes(4096)
    pipe.wait @a2
    pipe.run forward part(1) micro_batch(2) slot(0) buffer(0)
    pipe.wait @g1
    pipe.run backward part(1) micro_batch(2) slot(0) buffer(0)
    pipe.send @g2 backward part(1) micro_batch(2) to(0) communicator(1) queue(1) buffer(0) bytes(4096)
    pipe.wait @g2
  }
}

// -----

// Good: all forwards before any backward, so even one queue does.
pipe.pipeline @gpipe parts([0, 1]) micro_batches(2) train {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) slot(0) buffer(0)
    pipe.send @a0 forward part(0) micro_batch(0) to(1) communicator(0) queue(0) buffer(0)
    pipe.run forward part(0) micro_batch(1) slot(1) buffer(1)
    pipe.send @a1 forward part(0) micro_batch(1) to(1) communicator(0) queue(0) buffer(1)
    pipe.wait @a0
    pipe.receive @g0 backward part(1) micro_batch(0) from(1) communicator(1) queue(0) buffer(0)
    pipe.wait @g0
    pipe.run backward part(0) micro_batch(0) slot(0) buffer(0)
    pipe.wait @a1
    pipe.receive @g1 backward part(1) micro_batch(1) from(1) communicator(1) queue(0) buffer(1)
    pipe.wait @g1
    pipe.run backward part(0) micro_batch(1) slot(1) buffer(1)
  }
  pipe.stage 1 {
    pipe.receive @a0 forward part(0) micro_batch(0) from(0) communicator(0) queue(0) buffer(0)
    pipe.receive @a1 forward part(0) micro_batch(1) from(0) communicator(0) queue(0) buffer(1)
    pipe.wait @a0
    pipe.run forward part(1) micro_batch(0) slot(0) buffer(0)
    pipe.wait @a1
    pipe.run forward part(1) micro_batch(1) slot(1) buffer(1)
    pipe.run backward part(1) micro_batch(0) slot(0) buffer(0)
    pipe.send @g0 backward part(1) micro_batch(0) to(0) communicator(1) queue(0) buffer(0)
    pipe.run backward part(1) micro_batch(1) slot(1) buffer(1)
    pipe.send @g1 backward part(1) micro_batch(1) to(0) communicator(1) queue(0) buffer(1)
    pipe.wait @g0
    pipe.wait @g1
  }
}

// -----

// Good: an evaluation of two chunks per stage, the V shape, whose turn hands
// its buffer over; every stage joins in a collective.
pipe.pipeline @evaluation parts([0, 1, 1, 0]) micro_batches(1) {
  pipe.stage 0 {
    pipe.collective @count communicator(2) queue(2)
    pipe.run forward part(0) micro_batch(0) buffer(0)
    pipe.send @down forward part(0) micro_batch(0) to(1) communicator(0) buffer(0)
    pipe.wait @down
    pipe.receive @up forward part(2) micro_batch(0) from(1) communicator(1) buffer(0)
    pipe.wait @up
    pipe.run forward part(3) micro_batch(0) buffer(0)
    pipe.wait @count
  }
  pipe.stage 1 {
    pipe.collective @count communicator(2) queue(2)
    pipe.receive @down forward part(0) micro_batch(0) from(0) communicator(0) buffer(0)
    pipe.wait @down
    pipe.run forward part(1) micro_batch(0) buffer(0)
    pipe.run forward part(2) micro_batch(0) buffer(0)
    pipe.send @up forward part(2) micro_batch(0) to(0) communicator(1) buffer(0)
    pipe.wait @up
  }
}

// -----

// Good: a weight run frees the slot.
pipe.pipeline @split parts([0]) micro_batches(2) train splits_weight {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) slot(0)
    pipe.run forward part(0) micro_batch(1) slot(1)
    pipe.run backward part(0) micro_batch(0) slot(0)
    pipe.run backward part(0) micro_batch(1) slot(1)
    pipe.run weight part(0) micro_batch(0) slot(0)
    pipe.run weight part(0) micro_batch(1) slot(1)
  }
}

// -----

// expected-error@+1 {{stage 0, event 1: send of activation of part 0, micro-batch 0: stage 1 has no receive for it, operation 0 of communicator 0}}
pipe.pipeline @missing_receive parts([0, 1]) micro_batches(1) {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) buffer(0)
    pipe.send @a forward part(0) micro_batch(0) to(1) communicator(0) queue(0) buffer(0)
    pipe.wait @a
  }
  pipe.stage 1 {
    pipe.run forward part(1) micro_batch(0) buffer(0)
  }
}

// -----

// In the middle each stage sends before it receives, on one queue.
// expected-error-re@+1 {{the schedule deadlocks{{.*}}stage 0, event 3: send of activation of part 0, micro-batch 1 ends only once its other side starts{{.*}}stage 1, event 5: receive of activation of part 0, micro-batch 1 runs on queue 0 after{{.*}}stage 1, event 4: send of gradient of part 1, micro-batch 0 ends only once its other side starts{{.*}}stage 0, event 4: receive of gradient of part 1, micro-batch 0 runs on queue 0 after}}
pipe.pipeline @sends_block parts([0, 1]) micro_batches(2) train {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) slot(0) buffer(0)
    pipe.send @a0 forward part(0) micro_batch(0) to(1) communicator(0) queue(0) buffer(0)
    pipe.run forward part(0) micro_batch(1) slot(1) buffer(1)
    pipe.send @a1 forward part(0) micro_batch(1) to(1) communicator(0) queue(0) buffer(1)
    pipe.receive @g0 backward part(1) micro_batch(0) from(1) communicator(1) queue(0) buffer(2)
    pipe.wait @a0
    pipe.wait @g0
    pipe.run backward part(0) micro_batch(0) slot(0) buffer(2)
    pipe.receive @g1 backward part(1) micro_batch(1) from(1) communicator(1) queue(0) buffer(2)
    pipe.wait @a1
    pipe.wait @g1
    pipe.run backward part(0) micro_batch(1) slot(1) buffer(2)
  }
  pipe.stage 1 {
    pipe.receive @a0 forward part(0) micro_batch(0) from(0) communicator(0) queue(0) buffer(0)
    pipe.wait @a0
    pipe.run forward part(1) micro_batch(0) slot(0) buffer(0)
    pipe.run backward part(1) micro_batch(0) slot(0) buffer(0)
    pipe.send @g0 backward part(1) micro_batch(0) to(0) communicator(1) queue(0) buffer(0)
    pipe.receive @a1 forward part(0) micro_batch(1) from(0) communicator(0) queue(0) buffer(1)
    pipe.wait @a1
    pipe.run forward part(1) micro_batch(1) slot(0) buffer(1)
    pipe.run backward part(1) micro_batch(1) slot(0) buffer(1)
    pipe.send @g1 backward part(1) micro_batch(1) to(0) communicator(1) queue(0) buffer(1)
    pipe.wait @g0
    pipe.wait @g1
  }
}

// -----

// The same, good with gradients on a queue of their own.
pipe.pipeline @sends_do_not_block_other_queues parts([0, 1]) micro_batches(2) train {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) slot(0) buffer(0)
    pipe.send @a0 forward part(0) micro_batch(0) to(1) communicator(0) queue(0) buffer(0)
    pipe.run forward part(0) micro_batch(1) slot(1) buffer(1)
    pipe.send @a1 forward part(0) micro_batch(1) to(1) communicator(0) queue(0) buffer(1)
    pipe.receive @g0 backward part(1) micro_batch(0) from(1) communicator(1) queue(1) buffer(2)
    pipe.wait @a0
    pipe.wait @g0
    pipe.run backward part(0) micro_batch(0) slot(0) buffer(2)
    pipe.receive @g1 backward part(1) micro_batch(1) from(1) communicator(1) queue(1) buffer(2)
    pipe.wait @a1
    pipe.wait @g1
    pipe.run backward part(0) micro_batch(1) slot(1) buffer(2)
  }
  pipe.stage 1 {
    pipe.receive @a0 forward part(0) micro_batch(0) from(0) communicator(0) queue(0) buffer(0)
    pipe.wait @a0
    pipe.run forward part(1) micro_batch(0) slot(0) buffer(0)
    pipe.run backward part(1) micro_batch(0) slot(0) buffer(0)
    pipe.send @g0 backward part(1) micro_batch(0) to(0) communicator(1) queue(1) buffer(0)
    pipe.receive @a1 forward part(0) micro_batch(1) from(0) communicator(0) queue(0) buffer(1)
    pipe.wait @a1
    pipe.run forward part(1) micro_batch(1) slot(0) buffer(1)
    pipe.run backward part(1) micro_batch(1) slot(0) buffer(1)
    pipe.send @g1 backward part(1) micro_batch(1) to(0) communicator(1) queue(1) buffer(1)
    pipe.wait @g0
    pipe.wait @g1
  }
}

// -----

// Queues do not help where both directions share a communicator.
// expected-error@+1 {{operation 1 of communicator 0 does not match: stage 0, event 3: send of activation of part 0, micro-batch 1 and stage 1, event 4: send of gradient of part 1, micro-batch 0: both send}}
pipe.pipeline @both_directions_on_a_communicator parts([0, 1]) micro_batches(2) train {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) slot(0) buffer(0)
    pipe.send @a0 forward part(0) micro_batch(0) to(1) communicator(0) queue(0) buffer(0)
    pipe.run forward part(0) micro_batch(1) slot(1) buffer(1)
    pipe.send @a1 forward part(0) micro_batch(1) to(1) communicator(0) queue(0) buffer(1)
    pipe.receive @g0 backward part(1) micro_batch(0) from(1) communicator(0) queue(1) buffer(2)
    pipe.wait @a0
    pipe.wait @g0
    pipe.run backward part(0) micro_batch(0) slot(0) buffer(2)
    pipe.receive @g1 backward part(1) micro_batch(1) from(1) communicator(0) queue(1) buffer(2)
    pipe.wait @a1
    pipe.wait @g1
    pipe.run backward part(0) micro_batch(1) slot(1) buffer(2)
  }
  pipe.stage 1 {
    pipe.receive @a0 forward part(0) micro_batch(0) from(0) communicator(0) queue(0) buffer(0)
    pipe.wait @a0
    pipe.run forward part(1) micro_batch(0) slot(0) buffer(0)
    pipe.run backward part(1) micro_batch(0) slot(0) buffer(0)
    pipe.send @g0 backward part(1) micro_batch(0) to(0) communicator(0) queue(1) buffer(0)
    pipe.receive @a1 forward part(0) micro_batch(1) from(0) communicator(0) queue(0) buffer(1)
    pipe.wait @a1
    pipe.run forward part(1) micro_batch(1) slot(0) buffer(1)
    pipe.run backward part(1) micro_batch(1) slot(0) buffer(1)
    pipe.send @g1 backward part(1) micro_batch(1) to(0) communicator(0) queue(1) buffer(1)
    pipe.wait @g0
    pipe.wait @g1
  }
}

// -----

// expected-error@+1 {{stage 0, event 1: forward of part 0, micro-batch 1: writes slot 0, which holds what forward of part 0, micro-batch 0 saved}}
pipe.pipeline @slot_overwritten parts([0]) micro_batches(2) train {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) slot(0)
    pipe.run forward part(0) micro_batch(1) slot(0)
    pipe.run backward part(0) micro_batch(1) slot(0)
    pipe.run backward part(0) micro_batch(0) slot(0)
  }
}

// -----

// expected-error@+1 {{stage 1, event 0: wait for event 1: waits for what was not started}}
pipe.pipeline @wait_before_its_transfer parts([0, 1]) micro_batches(1) {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) buffer(0)
    pipe.send @a forward part(0) micro_batch(0) to(1) communicator(0) queue(0) buffer(0)
    pipe.wait @a
  }
  pipe.stage 1 {
    pipe.wait @a
    pipe.receive @a forward part(0) micro_batch(0) from(0) communicator(0) queue(0) buffer(0)
    pipe.run forward part(1) micro_batch(0) buffer(0)
  }
}

// -----

// expected-error@+1 {{stage 0, event 1: send of activation of part 0, micro-batch 0: nothing waits for it}}
pipe.pipeline @missing_wait parts([0, 1]) micro_batches(1) {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) buffer(0)
    pipe.send @a forward part(0) micro_batch(0) to(1) communicator(0) queue(0) buffer(0)
  }
  pipe.stage 1 {
    pipe.receive @a forward part(0) micro_batch(0) from(0) communicator(0) queue(0) buffer(0)
    pipe.wait @a
    pipe.run forward part(1) micro_batch(0) buffer(0)
  }
}

// -----

// expected-error@+1 {{stage 0, event 1: forward of part 0, micro-batch 0: runs a second time}}
pipe.pipeline @micro_batch_twice parts([0]) micro_batches(2) {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0)
    pipe.run forward part(0) micro_batch(0)
  }
}

// -----

// Sizes that are written have to agree.
// expected-error@+1 {{they move 4096 and 0 bytes}}
pipe.pipeline @other_size parts([0, 1]) micro_batches(1) {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) buffer(0)
    pipe.send @a forward part(0) micro_batch(0) to(1) communicator(0) queue(0) buffer(0) bytes(4096)
    pipe.wait @a
  }
  pipe.stage 1 {
    pipe.receive @a forward part(0) micro_batch(0) from(0) communicator(0) queue(0) buffer(0)
    pipe.wait @a
    pipe.run forward part(1) micro_batch(0) buffer(0)
  }
}

// -----

// expected-error-re@+1 {{the schedule deadlocks{{.*}}stage 0, event 3: collective on communicator 0 ends only once its other side starts{{.*}}stage 1, event 4: collective on communicator 0 runs on queue 0 after{{.*}}stage 1, event 3: collective on communicator 1 ends only once its other side starts{{.*}}stage 0, event 4: collective on communicator 1 runs on queue 0 after}}
pipe.pipeline @opposite_orders_on_a_queue parts([0, 1]) micro_batches(1) {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) buffer(0)
    pipe.send @a forward part(0) micro_batch(0) to(1) communicator(2) queue(2) buffer(0)
    pipe.wait @a
    pipe.collective @sum communicator(0) queue(0)
    pipe.collective @norm communicator(1) queue(0)
  }
  pipe.stage 1 {
    pipe.receive @a forward part(0) micro_batch(0) from(0) communicator(2) queue(2) buffer(0)
    pipe.wait @a
    pipe.run forward part(1) micro_batch(0) buffer(0)
    pipe.collective @norm communicator(1) queue(0)
    pipe.collective @sum communicator(0) queue(0)
  }
}

// -----

// Good with a queue each.
pipe.pipeline @opposite_orders_on_two_queues parts([0, 1]) micro_batches(1) {
  pipe.stage 0 {
    pipe.run forward part(0) micro_batch(0) buffer(0)
    pipe.send @a forward part(0) micro_batch(0) to(1) communicator(2) queue(2) buffer(0)
    pipe.wait @a
    pipe.collective @sum communicator(0) queue(0)
    pipe.collective @norm communicator(1) queue(1)
  }
  pipe.stage 1 {
    pipe.receive @a forward part(0) micro_batch(0) from(0) communicator(2) queue(2) buffer(0)
    pipe.wait @a
    pipe.run forward part(1) micro_batch(0) buffer(0)
    pipe.collective @norm communicator(1) queue(1)
    pipe.collective @sum communicator(0) queue(0)
  }
}

// -----

// Every pipeline of a module is looked at.
// expected-error@+1 {{stage 0: forward of part 0, micro-batch 0 does not run}}
pipe.pipeline @first parts([0]) micro_batches(1) {
  pipe.stage 0 {
    pipe.collective @sum communicator(0)
  }
}
// expected-error@+1 {{a schedule of 0 stages, 0 parts and 1 micro-batches}}
pipe.pipeline @second parts([]) micro_batches(1) {
}
