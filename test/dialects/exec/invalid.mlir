// Constraints of buffers (B), slices (S) and launches (K).
// RUN: mega-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{a buffer has at most four dimensions, not 5}}
func.func private @buffer_b1_rank(!exec.buf<1x2x3x4x5xf32>)

// -----

// expected-error@+1 {{expected static shape}}
func.func private @buffer_b1_dynamic(!exec.buf<?x8xf32>)

// -----

// expected-error@+1 {{row stride 63 is smaller than the row of 64}}
func.func private @buffer_b2(!exec.buf<4x32x64xf32 stride 63>)

// -----

// expected-error@+1 {{row stride 63 is smaller than the row of 64}}
func.func private @buffer_b2_heads(!exec.buf<4x32x8x8xf32 stride 63>)

// -----

// expected-error@+1 {{'f16' is no buffer element type}}
func.func private @buffer_element_type(!exec.buf<4xf16>)

// -----

exec.function @slice_s1_rows {
  %x = exec.argument 0 : !exec.buf<2x5x24xf32>
  // expected-error@+1 {{does not have the rows of}}
  %y = exec.slice %x[0] : !exec.buf<2x5x24xf32> -> !exec.buf<2x4x8xf32 stride 24>
}

// -----

exec.function @slice_s1_element_type {
  %x = exec.argument 0 : !exec.buf<2x5x24xf32>
  // expected-error@+1 {{does not have the rows of}}
  %y = exec.slice %x[0] : !exec.buf<2x5x24xf32> -> !exec.buf<2x5x8xi32 stride 24>
}

// -----

exec.function @slice_s1_columns {
  %x = exec.argument 0 : !exec.buf<2x5x24xf32>
  // expected-error@+1 {{columns 17 to 25 leave the source's rows of 24}}
  %y = exec.slice %x[17] : !exec.buf<2x5x24xf32> -> !exec.buf<2x5x8xf32 stride 24>
}

// -----

exec.function @slice_s1_negative_column {
  %x = exec.argument 0 : !exec.buf<2x5x24xf32>
  // expected-error@+1 {{columns -1 to 7 leave the source's rows of 24}}
  %y = exec.slice %x[-1] : !exec.buf<2x5x24xf32> -> !exec.buf<2x5x8xf32 stride 24>
}

// -----

exec.function @slice_s1_stride {
  %x = exec.argument 0 : !exec.buf<2x5x24xf32>
  // expected-error@+1 {{row stride 8 is not the source's 24}}
  %y = exec.slice %x[0] : !exec.buf<2x5x24xf32> -> !exec.buf<2x5x8xf32>
}

// -----

exec.function @launch_k1 {
  %x = exec.argument 0 : !exec.buf<f32>
  // expected-error@+1 {{unknown kernel 'sofmax'}}
  exec.launch "sofmax"(%x) : !exec.buf<f32>
}

// -----

exec.function @launch_k2_operands {
  %x = exec.argument 0 : !exec.buf<2x5x24xf32>
  // expected-error@+1 {{operands}}
  exec.launch "copy"(%x) : !exec.buf<2x5x24xf32>
}

// -----

exec.function @launch_k2_shapes {
  %x = exec.argument 0 : !exec.buf<2x5x24xf32>
  %w = exec.argument 1 : !exec.buf<6x23xf32>
  %y = exec.argument 2 : !exec.buf<2x5x6xf32>
  // expected-error@+1 {{gemm}}
  exec.launch "gemm"(%x, %w, %y) integers (0, 1, 0)
    : !exec.buf<2x5x24xf32>, !exec.buf<6x23xf32>, !exec.buf<2x5x6xf32>
}

// -----

exec.function @launch_k2_integers {
  %x = exec.argument 0 : !exec.buf<2x5x24xf32>
  %w = exec.argument 1 : !exec.buf<6x24xf32>
  %y = exec.argument 2 : !exec.buf<2x5x6xf32>
  // expected-error@+1 {{integer}}
  exec.launch "gemm"(%x, %w, %y) integers (0, 1)
    : !exec.buf<2x5x24xf32>, !exec.buf<6x24xf32>, !exec.buf<2x5x6xf32>
}

// -----

exec.function @launch_k2_floats {
  %n = exec.argument 0 : !exec.buf<i64>
  %s = exec.argument 1 : !exec.buf<f32>
  // expected-error@+1 {{float}}
  exec.launch "loss_seed"(%n, %s) : !exec.buf<i64>, !exec.buf<f32>
}
