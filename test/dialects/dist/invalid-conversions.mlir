// Constraints of conversions (C1 to C3).
// RUN: mega-opt %s -split-input-file -verify-diagnostics

#P = #dist.layout<partial = {tp}>
func.func @conversion_c1_shape(%x: tensor<4x8xf32, #P>) {
  // expected-error@+1 {{changes 'tensor<4x8xf32, #dist.layout<partial = {tp}>>' to 'tensor<8x4xf32, #dist.layout<>>'; a conversion changes the layout only}}
  %y = dist.all_reduce %x {tp} : tensor<4x8xf32, #P> -> tensor<8x4xf32, #dist.layout<>>
  return
}

// -----

#P = #dist.layout<partial = {tp}>
func.func @conversion_c1_element_type(%x: tensor<4x8xf32, #P>) {
  // expected-error@+1 {{a conversion changes the layout only}}
  %y = dist.all_reduce %x {tp} : tensor<4x8xf32, #P> -> tensor<4x8xbf16, #dist.layout<>>
  return
}

// -----

func.func @conversion_c2(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{both need a layout}}
  %y = dist.replicate %x {tp} : tensor<4x8xf32> -> tensor<4x8xf32, #dist.layout<replicated = {tp}>>
  return
}

// -----

#P = #dist.layout<partial = {tp}>
#S = #dist.layout<[{tp}, {}]>
func.func @conversion_c3_another_conversion(%x: tensor<4x8xf32, #P>) {
  // expected-error@+1 {{says all_reduce over {tp} but the layouts differ by reduce_scatter over {tp}}}
  %y = dist.all_reduce %x {tp} : tensor<4x8xf32, #P> -> tensor<4x8xf32, #S>
  return
}

// -----

#P = #dist.layout<partial = {tp, dp}>
func.func @conversion_c3_other_axes(%x: tensor<4x8xf32, #P>) {
  // expected-error@+1 {{says all_reduce over {tp} but the layouts differ by all_reduce over {tp, dp}}}
  %y = dist.all_reduce %x {tp} : tensor<4x8xf32, #P> -> tensor<4x8xf32, #dist.layout<>>
  return
}

// -----

func.func @conversion_c3_nothing_changes(%x: tensor<4x8xf32, #dist.layout<>>) {
  // expected-error@+1 {{says replicate over {tp} but the layouts differ by none over {}}}
  %y = dist.replicate %x {tp} : tensor<4x8xf32, #dist.layout<>> -> tensor<4x8xf32, #dist.layout<>>
  return
}

// -----

#X = #dist.layout<[{dp}, {cp, tp}]>
#Y = #dist.layout<[{dp}, {tp}], replicated = {cp}>
func.func @conversion_c3_not_the_minor_most(%x: tensor<4x8xf32, #X>) {
  // expected-error@+1 {{dimension 1 keeps axis tp in another place: only the minor-most axes of a dimension come and go}}
  %y = dist.all_gather %x {cp} : tensor<4x8xf32, #X> -> tensor<4x8xf32, #Y>
  return
}

// -----

#X = #dist.layout<[{tp}, {cp}]>
func.func @conversion_c3_two_dimensions(%x: tensor<4x8xf32, #X>) {
  // expected-error@+1 {{dimensions 0 and 1 lose axes at once}}
  %y = dist.all_gather %x {tp, cp} : tensor<4x8xf32, #X> -> tensor<4x8xf32, #dist.layout<>>
  return
}

// -----

#X = #dist.layout<replicated = {dp}, partial = {tp}>
func.func @conversion_c3_two_kinds_of_change(%x: tensor<4x8xf32, #X>) {
  // expected-error@+1 {{tp changes from partial to invariant and dp from replicated to invariant: one conversion makes one kind of change}}
  %y = dist.all_reduce %x {tp} : tensor<4x8xf32, #X> -> tensor<4x8xf32, #dist.layout<>>
  return
}

// -----

#X = #dist.layout<[{tp, pad 10}, {}]>
#Y = #dist.layout<[{tp, pad 12}, {}], partial = {dp}>
func.func @conversion_c3_padding_is_kept(%x: tensor<9x8xf32, #X>) {
  // expected-error@+1 {{the padding of dimension 0 changes from 10 to 12}}
  %y = dist.to_partial %x {dp} : tensor<9x8xf32, #X> -> tensor<9x8xf32, #Y>
  return
}

// -----

#X = #dist.layout<partial = {tp max}>
#Y = #dist.layout<partial = {tp, dp}>
func.func @conversion_c3_kind_of_reduction(%x: tensor<9x8xf32, #X>) {
  // expected-error@+1 {{partial changes from max to sum}}
  %y = dist.to_partial %x {dp} : tensor<9x8xf32, #X> -> tensor<9x8xf32, #Y>
  return
}

// -----

func.func @conversion_of_an_unknown_axis(%x: tensor<4x8xf32, #dist.layout<>>) {
  // expected-error@+1 {{unknown mesh axis 'sp' (known: tp, tp:0, tp:1, cp, dp, pp, ep)}}
  %y = dist.replicate %x {sp} : tensor<4x8xf32, #dist.layout<>> -> tensor<4x8xf32, #dist.layout<>>
  return
}
