// Constraints of meshes (M) and layouts (L).
// RUN: mega-opt %s -split-input-file -verify-diagnostics

// (M1)
// expected-error@+1 {{size of axis tp is 1, expected at least 2}}
module attributes {dist.mesh = #dist.mesh<tp = 1>} {}

// -----

// (M1)
// expected-error@+1 {{size of axis dp is -4, expected at least 2}}
module attributes {dist.mesh = #dist.mesh<dp = -4>} {}

// -----

// (M1)
// expected-error@+1 {{mesh axes must be in the order tp, tp:1, tp:0, cp, dp, pp, ep and occur once}}
module attributes {dist.mesh = #dist.mesh<dp = 2, tp = 2>} {}

// -----

// (M1)
// expected-error@+1 {{mesh axes must be in the order tp, tp:1, tp:0, cp, dp, pp, ep and occur once}}
module attributes {dist.mesh = #dist.mesh<tp = 2, tp = 2>} {}

// -----

// expected-error@+1 {{unknown mesh axis 'sp' (known: tp, tp:0, tp:1, cp, dp, pp, ep)}}
module attributes {dist.mesh = #dist.mesh<sp = 2>} {}

// -----

// expected-error@+1 {{axis tp shards twice}}
func.func private @layout_l1_two_dimensions(tensor<4x8xf32, #dist.layout<[{tp}, {tp}]>>)

// -----

// expected-error@+1 {{axis tp shards twice}}
func.func private @layout_l1_one_dimension(tensor<4x8xf32, #dist.layout<[{tp, tp}, {}]>>)

// -----

// expected-error@+1 {{axis tp occurs twice}}
func.func private @layout_l1_sharded_and_partial(tensor<4x8xf32, #dist.layout<[{tp}, {}], partial = {tp}>>)

// -----

// expected-error@+1 {{axis tp, dp occurs twice}}
func.func private @layout_l1_replicated_and_partial(tensor<4x8xf32, #dist.layout<replicated = {tp, dp}, partial = {tp, dp}>>)

// -----

// expected-error@+1 {{pp is placement, not part of a layout}}
func.func private @layout_l1_sharded_by_pp(tensor<4x8xf32, #dist.layout<[{pp}, {}]>>)

// -----

// expected-error@+1 {{pp is placement, not part of a layout}}
func.func private @layout_l1_replicated_over_pp(tensor<4x8xf32, #dist.layout<replicated = {pp}>>)

// -----

// expected-error@+1 {{no dimension is sharded, so the dimension list must be omitted}}
func.func private @layout_l2_nothing_sharded(tensor<4x8xf32, #dist.layout<[{}, {}]>>)

// -----

// expected-error@+1 {{the layout has 1 dimensions but the tensor 2}}
func.func private @layout_l2_too_short(tensor<4x8xf32, #dist.layout<[{tp}]>>)

// -----

// expected-error@+1 {{the layout has 2 dimensions but the tensor 0}}
func.func private @layout_l2_of_a_scalar(tensor<f32, #dist.layout<[{tp}, {}]>>)

// -----

// expected-error@+1 {{axes of a set must be in mesh order and occur once}}
func.func private @layout_l3_order(tensor<4x8xf32, #dist.layout<replicated = {dp, tp}>>)

// -----

// expected-error@+1 {{axes of a set must be in mesh order and occur once}}
func.func private @layout_l3_duplicate(tensor<4x8xf32, #dist.layout<partial = {tp, tp}>>)

// -----

// expected-error@+1 {{dimension 1 is padded but not sharded}}
func.func private @layout_l4_not_sharded(tensor<4x8xf32, #dist.layout<[{tp}, {pad 10}]>>)

// -----

// expected-error@+1 {{dimension 0 is padded to 256 but has extent 257}}
func.func private @layout_l4_too_small(tensor<257x8xf32, #dist.layout<[{tp, pad 256}, {}]>>)

// -----

// expected-error@+1 {{dimension 0 is padded to -2 but has extent 257}}
func.func private @layout_l4_negative(tensor<257x8xf32, #dist.layout<[{tp, pad -2}, {}]>>)
