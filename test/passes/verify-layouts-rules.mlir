// One case per rule of the calculus (docs/layouts.md).
// RUN: mega-opt %s --mega-verify-layouts -split-input-file -verify-diagnostics

#I = #dist.layout<>
#R = #dist.layout<replicated = {tp}>
#P = #dist.layout<partial = {tp}>
#x_x_tp = #dist.layout<[{}, {}, {tp}]>
#x_tp_x = #dist.layout<[{}, {tp}, {}]>
#tp_x = #dist.layout<[{tp}, {}]>
#x_tp = #dist.layout<[{}, {tp}]>
module attributes {dist.mesh = #dist.mesh<tp = 2>} {
func.func @product_of_two_sums(%x: tensor<2x4x8xf32, #P>, %w: tensor<6x8xf32, #P>) {
  // expected-error@+1 {{operand 0 is partial over tp, so operand 1 must be replicated, not partial}}
  %y = tfm.linear %x, %w : tensor<2x4x8xf32, #P>, tensor<6x8xf32, #P> -> tensor<2x4x6xf32, #P>
  return
}
func.func @sum_plus_replicated(%x: tensor<2x4x8xf32, #P>, %y: tensor<8xf32, #R>) {
  // expected-error@+1 {{operand 0 is partial over tp, so operand 1 must be partial, not replicated}}
  %z = tfm.add_bias %x, %y : tensor<2x4x8xf32, #P>, tensor<8xf32, #R>
  return
}
func.func @sum_times_invariant(%x: tensor<2x4x8xf32, #P>, %w: tensor<6x8xf32, #I>) {
  // expected-error@+1 {{operand 0 is partial over tp, so operand 1 must be replicated, not invariant}}
  %y = tfm.linear %x, %w : tensor<2x4x8xf32, #P>, tensor<6x8xf32, #I> -> tensor<2x4x6xf32, #P>
  return
}
func.func @invariant_mixed_with_replicated(%x: tensor<2x4x8xf32, #I>, %w: tensor<6x8xf32, #R>) {
  // expected-error@+1 {{operand 0 is invariant over tp and operand 1 replicated: invariant and replicated values do not mix}}
  %y = tfm.linear %x, %w : tensor<2x4x8xf32, #I>, tensor<6x8xf32, #R> -> tensor<2x4x6xf32, #I>
  return
}
func.func @invariant_mixed_with_sharded(%x: tensor<2x4x8xf32, #I>, %w: tensor<6x8xf32, #tp_x>) {
  // expected-error@+1 {{tp shards dimension 0 of operand 1, so operand 0 must be replicated over it, not invariant}}
  %y = tfm.linear %x, %w : tensor<2x4x8xf32, #I>, tensor<6x8xf32, #tp_x> -> tensor<2x4x6xf32, #x_x_tp>
  return
}
func.func @nonlinear_function_of_a_sum(%x: tensor<2x4x8xf32, #P>) {
  // expected-error@+1 {{operand 0 is partial over tp and the op is not linear in it: reduce it first}}
  %y = tfm.gelu %x tanh : tensor<2x4x8xf32, #P>
  return
}
func.func @contracted_but_not_partial(%x: tensor<2x4x8xf32, #x_x_tp>, %w: tensor<6x8xf32, #x_tp>) {
  // expected-error@+1 {{tp shards dimension 2 of operand 0, so result 0 must be partial over it, not invariant}}
  %y = tfm.linear %x, %w : tensor<2x4x8xf32, #x_x_tp>, tensor<6x8xf32, #x_tp> -> tensor<2x4x6xf32, #I>
  return
}
func.func @half_of_a_contraction(%x: tensor<2x4x8xf32, #x_x_tp>, %w: tensor<6x8xf32, #R>) {
  // expected-error@+1 {{tp shards dimension 2 of operand 0 but not dimension 1 of operand 1, which belongs to it (it is replicated)}}
  %y = tfm.linear %x, %w : tensor<2x4x8xf32, #x_x_tp>, tensor<6x8xf32, #R> -> tensor<2x4x6xf32, #P>
  return
}
func.func @two_factors_on_one_axis(%x: tensor<2x4x8xf32, #x_tp_x>, %w: tensor<6x8xf32, #tp_x>) {
  // expected-error@+1 {{tp shards dimension 1 of operand 0 and dimension 0 of operand 1, which do not belong together}}
  %y = tfm.linear %x, %w : tensor<2x4x8xf32, #x_tp_x>, tensor<6x8xf32, #tp_x> -> tensor<2x4x6xf32, #x_x_tp>
  return
}
func.func @features_of_a_norm(%x: tensor<2x4x8xf32, #x_x_tp>, %g: tensor<8xf32, #R>) {
  // expected-error@+1 {{dimension 2 of operand 0 must be whole, but tp shards it}}
  %y = tfm.rms_norm %x, %g epsilon(1.0e-5) : tensor<2x4x8xf32, #x_x_tp>, tensor<8xf32, #R>
  return
}
func.func @a_norm_weight_of_sharded_tokens(%x: tensor<2x4x8xf32, #x_tp_x>, %g: tensor<8xf32, #I>) {
  // expected-error@+1 {{tp shards dimension 1 of operand 0, so operand 1 must be replicated over it, not invariant}}
  %y = tfm.rms_norm %x, %g epsilon(1.0e-5) : tensor<2x4x8xf32, #x_tp_x>, tensor<8xf32, #I>
  return
}
// Ids are inactive: invariant and replicated are one state.
func.func @inactive_values_mix(%t: tensor<2x4xi32, #I>, %w: tensor<6x8xf32, #tp_x>) {
  %y = tfm.embedding %t, %w : tensor<2x4xi32, #I>, tensor<6x8xf32, #tp_x> -> tensor<2x4x8xf32, #P>
  return
}
func.func @a_gradient_that_is_not_reduced(%g: tensor<2x4x8xf32, #x_tp_x>) {
  // expected-error@+1 {{tp shards dimension 1 of operand 0, so result 0 must be partial over it, not invariant}}
  %b = tfm.bias_grad %g : (tensor<2x4x8xf32, #x_tp_x>) -> tensor<8xf32, #I>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 4>} {
// expected-error@+1 {{dimension 1 of extent 6 does not divide into 4 pieces (pad it to 8)}}
tfm.block @does_not_divide(%x: tensor<2x6x8xf32, #dist.layout<[{}, {tp}, {}]>>) -> tensor<2x6x8xf32, #dist.layout<[{}, {tp}, {}]>> {
  tfm.yield %x : tensor<2x6x8xf32, #dist.layout<[{}, {tp}, {}]>>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<tp = 4>} {
// expected-error@+1 {{dp has one rank, so no tensor is replicated over it}}
tfm.block @an_axis_of_one_rank(%x: tensor<2x8xf32, #dist.layout<replicated = {dp}>>) -> tensor<2x8xf32, #dist.layout<replicated = {dp}>> {
  tfm.yield %x : tensor<2x8xf32, #dist.layout<replicated = {dp}>>
}
}
