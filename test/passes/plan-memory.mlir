// RUN: mega-opt %s --mega-plan-memory | FileCheck %s

// Two buffers that are alive together never share bytes; %c may follow in the
// memory of %a, which is dead by then. Sizes are rounded up to 256 bytes.
// CHECK-LABEL: exec.function @lifetimes block("layer") frame(512) scratch(768)
exec.function @lifetimes block("layer") frame(512) {
  %x = exec.argument 0 : !exec.buf<2x5x8xf32>
  // CHECK: exec.alloc scratch at [[A:0|512]] : <2x5x8xf32>
  %a = exec.alloc scratch : !exec.buf<2x5x8xf32>
  // CHECK: exec.alloc scratch at {{512|0}} : <2x5xf32>
  %b = exec.alloc scratch : !exec.buf<2x5xf32>
  // CHECK: exec.alloc scratch at [[A]] : <2x5x8xf32>
  %c = exec.alloc scratch : !exec.buf<2x5x8xf32>
  %v = exec.state "parameters" at 0 : !exec.buf<8xf32>
  exec.launch "rms_norm"(%x, %v, %a, %b) floats (1.0e-5, 0.0)
    : !exec.buf<2x5x8xf32>, !exec.buf<8xf32>, !exec.buf<2x5x8xf32>, !exec.buf<2x5xf32>
  exec.launch "silu"(%a, %x) : !exec.buf<2x5x8xf32>, !exec.buf<2x5x8xf32>
  exec.launch "rms_norm"(%x, %v, %c, %b) floats (1.0e-5, 0.0)
    : !exec.buf<2x5x8xf32>, !exec.buf<8xf32>, !exec.buf<2x5x8xf32>, !exec.buf<2x5xf32>
  exec.launch "silu"(%c, %x) : !exec.buf<2x5x8xf32>, !exec.buf<2x5x8xf32>
}

// A slice keeps its source alive.
// CHECK-LABEL: exec.function @slices scratch(1024)
exec.function @slices {
  %x = exec.argument 0 : !exec.buf<2x5x8xf32>
  // CHECK: exec.alloc scratch at [[A:0|512]] : <2x5x8xf32>
  %a = exec.alloc scratch : !exec.buf<2x5x8xf32>
  // CHECK-NOT: exec.alloc scratch at [[A]]
  // CHECK: exec.alloc scratch at {{[0-9]+}} : <2x5x8xf32>
  %b = exec.alloc scratch : !exec.buf<2x5x8xf32>
  %s = exec.slice %a[0] : !exec.buf<2x5x8xf32> -> !exec.buf<2x5x2x4xf32>
  %t = exec.slice %s[0] : !exec.buf<2x5x2x4xf32> -> !exec.buf<2x5x8xf32>
  exec.launch "silu"(%x, %a) : !exec.buf<2x5x8xf32>, !exec.buf<2x5x8xf32>
  exec.launch "silu"(%x, %b) : !exec.buf<2x5x8xf32>, !exec.buf<2x5x8xf32>
  exec.launch "add"(%t, %b, %x) : !exec.buf<2x5x8xf32>, !exec.buf<2x5x8xf32>, !exec.buf<2x5x8xf32>
}

exec.function @embed {
}
exec.function @count {
}

// Between calls: the activation continues in one place, the sum has another.
// CHECK-LABEL: pipe.program @forward
// CHECK: pipe.call @embed(%{{.*}}) carry [0]
// CHECK: pipe.call @lifetimes(%{{.*}}) instance(1) count(3) carry [0]
pipe.program @forward kind(forward) {
  %t = pipe.input "tokens" : tensor<2x5xi32>
  %x = pipe.call @embed(%t) : (tensor<2x5xi32>) -> tensor<2x5x8xf32>
  %y = pipe.call @lifetimes(%x) instance(1) count(3) : (tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  // CHECK: pipe.call @count(%{{.*}}) carry [512]
  %s = pipe.call @count(%y) : (tensor<2x5x8xf32>) -> tensor<f32>
}
pipe.schedule @train stage(0) micro_batches(3) [@forward(0, 0), @forward(1, 0), @forward(2, 0)]

tfm.bucket @decayed decay elements(128) at(0) {
}
tfm.bucket @undecayed elements(72) at(128) {
}
exec.counter "lm.sum" at 0 : !exec.buf<f64>
exec.counter "lm.count" at 256 : !exec.buf<i64>

// 3 micro-batches of 2 x 5 ids are 120 bytes each.
// CHECK: exec.input "tokens" limit(11) at 0
// CHECK: exec.input "labels" limit(11) at 256
exec.input "tokens" limit(11) : !exec.buf<2x5xi32>
exec.input "labels" limit(11) : !exec.buf<2x5xi32>

// CHECK: exec.region "parameters" part({{ ?}}state) bytes(1024) copies(1)
// CHECK: exec.region "gradients" part({{ ?}}state) bytes(1024) copies(1)
// CHECK: exec.region "moments" part({{ ?}}state) bytes(1024) copies(1)
// CHECK: exec.region "variances" part({{ ?}}state) bytes(1024) copies(1)
// CHECK: exec.region "constants" part({{ ?}}state) bytes(0) copies(1)
// CHECK: exec.region "counters" part({{ ?}}state) bytes(512) copies(1)
// Instances 1 to 3: four frames.
// CHECK: exec.region "saved.layer" part({{ ?}}pool) bytes(2048) copies(1)
// CHECK: exec.region "carry" part({{ ?}}carry) bytes(768) copies(1)
// The largest function's.
// CHECK: exec.region "scratch" part({{ ?}}scratch) bytes(1024) copies(1)
// One step's batches are read while the next are loaded.
// CHECK: exec.region "inputs" part({{ ?}}input) bytes(512) copies(2)
