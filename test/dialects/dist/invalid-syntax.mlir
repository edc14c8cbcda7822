// There is one spelling per layout: what the parser refuses.
// RUN: mega-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{expected a dimension list, 'replicated' or 'partial'}}
func.func private @an_unknown_state(tensor<4xf32, #dist.layout<invariant = {tp}>>)

// -----

// expected-error@+1 {{unknown mesh axis 'sp' (known: tp, tp:0, tp:1, cp, dp, pp, ep)}}
func.func private @an_unknown_axis(tensor<4xf32, #dist.layout<[{sp}]>>)

// -----

// expected-error@+1 {{unknown mesh axis 'max' (known: tp, tp:0, tp:1, cp, dp, pp, ep)}}
func.func private @a_reduction_without_axes(tensor<4xf32, #dist.layout<partial = {max}>>)

// -----

// expected-error@+1 {{expected valid keyword}}
func.func private @an_empty_set(tensor<4xf32, #dist.layout<replicated = {}>>)

// -----

// expected-error@+1 {{expected '}'}}
func.func private @only_partial_sets_name_a_reduction(tensor<4xf32, #dist.layout<replicated = {tp max}>>)

// -----

// expected-error@+1 {{a layout has at most 4 dimensions}}
func.func private @too_many_dimensions(tensor<4x4x4x4x4xf32, #dist.layout<[{tp}, {}, {}, {}, {}]>>)

// -----

// expected-error@+1 {{expected '{'}}
func.func private @an_empty_dimension_list(tensor<4xf32, #dist.layout<[]>>)

// -----

// expected-error@+1 {{replicated is given twice}}
func.func private @replicated_twice(tensor<4xf32, #dist.layout<replicated = {tp}, replicated = {dp}>>)

// -----

// expected-error@+1 {{partial is given twice}}
func.func private @partial_twice(tensor<4xf32, #dist.layout<partial = {tp}, partial = {dp}>>)

// -----

// expected-error@+1 {{the dimension list is given twice}}
func.func private @dimensions_in_two_lists(tensor<4x4xf32, #dist.layout<[{tp}], [{}]>>)

// -----

// expected-error@+1 {{padding is given twice}}
func.func private @padding_twice(tensor<4xf32, #dist.layout<[{tp, pad 8, pad 6}]>>)

// -----

// expected-error@+1 {{only cp may be zigzag}}
func.func private @zigzag_of_tp(tensor<4xf32, #dist.layout<[{tp zigzag}]>>)
