// Functions, buffers, launches: what is printed parses to the same.
// RUN: mega-opt %s | mega-opt | FileCheck %s
// RUN: mega-opt %s -mlir-print-op-generic | mega-opt | FileCheck %s

// CHECK-LABEL: exec.function @layer.forward block("layer") frame(512) scratch(768) flops(99) {
exec.function @layer.forward block("layer") frame(512) scratch(768) flops(99) {
  // CHECK: exec.argument 0 : <2x5x8xf32>
  %x = exec.argument 0 : !exec.buf<2x5x8xf32>
  // CHECK: exec.alloc scratch : <2x5x24xf32>
  %a = exec.alloc scratch : !exec.buf<2x5x24xf32>
  // CHECK: exec.alloc saved at 256 : <2x5xf32>
  %b = exec.alloc saved at 256 : !exec.buf<2x5xf32>
  // CHECK: exec.state "parameters" at 4096 : <8x8xf32>
  %w = exec.state "parameters" at 4096 : !exec.buf<8x8xf32>
  // CHECK: exec.state "gradients" at 0 per_instance 65536 : <8x8xf32>
  %g = exec.state "gradients" at 0 per_instance 65536 : !exec.buf<8x8xf32>
  // CHECK: exec.slice %{{.*}}[8] : <2x5x24xf32> -> <2x5x8xf32 stride 24>
  %k = exec.slice %a[8] : !exec.buf<2x5x24xf32> -> !exec.buf<2x5x8xf32 stride 24>
  // CHECK: exec.launch "gemm"(%{{.*}}, %{{.*}}, %{{.*}}) integers (0, 1, 0) : !exec.buf<2x5x8xf32>, !exec.buf<8x8xf32>, !exec.buf<2x5x8xf32 stride 24>
  exec.launch "gemm"(%x, %w, %k) integers (0, 1, 0)
    : !exec.buf<2x5x8xf32>, !exec.buf<8x8xf32>, !exec.buf<2x5x8xf32 stride 24>
  %n = exec.alloc scratch : !exec.buf<i64>
  %s = exec.alloc scratch : !exec.buf<f32>
  // CHECK: exec.launch "loss_seed"(%{{.*}}, %{{.*}}) floats (0.25) : !exec.buf<i64>, !exec.buf<f32>
  exec.launch "loss_seed"(%n, %s) floats (0.25) : !exec.buf<i64>, !exec.buf<f32>
}

// CHECK-LABEL: exec.function @empty {
exec.function @empty {
}

// CHECK: exec.region "saved.layer" part({{ ?}}pool) bytes(65536) copies(1)
exec.region "saved.layer" part(pool) bytes(65536) copies(1)
// CHECK: exec.region "inputs" part({{ ?}}input) bytes(512) copies(2)
exec.region "inputs" part(input) bytes(512) copies(2)
// CHECK: exec.counter "lm.sum" at 8 : !exec.buf<f64>
exec.counter "lm.sum" at 8 : !exec.buf<f64>
// CHECK: exec.input "tokens" limit(257) : !exec.buf<2x5xi32>
exec.input "tokens" limit(257) : !exec.buf<2x5xi32>
// CHECK: exec.input "labels" limit(257) at 256 : !exec.buf<2x5xi32>
exec.input "labels" limit(257) at 256 : !exec.buf<2x5xi32>
// CHECK: exec.loss_term "lm" weight(1.0) ignore(-100)
exec.loss_term "lm" weight(1.0) ignore(-100)
