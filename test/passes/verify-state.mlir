// RUN: mega-opt %s --mega-verify-state -split-input-file -verify-diagnostics

!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>
!t = tensor<2x5xi32>

tfm.shared @wte = "wte" init(ones) : !w
tfm.block @embed(%t: !t) -> !x {
  %w = tfm.param "w" init(ones) : !w
  %e = tfm.embedding %t, %w : !t, !w -> !x
  tfm.yield %e : !x
}
tfm.function @embed.backward(%g: !w, %h: !w) attributes {block = "embed"} {
  tfm.accumulate_gradient %g into "w" : !w
  tfm.accumulate_gradient %h into @wte : !w
  tfm.return
}
tfm.bucket @every_parameter_is_in_one_bucket decay elements(256) at(0) {
  tfm.member "" "wte" at(0) stride(0) instances(1) logical "wte" init(ones) prefixes [""] runs [0, 0, 1] : !w
  tfm.member "embed" "w" at(128) stride(128) instances(1) logical "w" init(ones) prefixes [""] runs [0, 0, 1] : !w
}
tfm.model @m max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
}

// -----

!x = tensor<2x5x8xf32>
!w = tensor<11x8xf32>
!t = tensor<2x5xi32>

// expected-error@+1 {{parameter /wte is in no bucket}}
tfm.shared @wte = "wte" init(ones) : !w
tfm.block @embed(%t: !t) -> !x {
  // expected-error@+1 {{parameter embed/w is in no bucket}}
  %w = tfm.param "w" init(ones) : !w
  %e = tfm.embedding %t, %w : !t, !w -> !x
  tfm.yield %e : !x
}
tfm.function @embed.backward(%g: !w) attributes {block = "embed"} {
  // expected-error@+1 {{parameter embed/w is in no bucket}}
  tfm.accumulate_gradient %g into "w" : !w
  tfm.return
}
tfm.model @all_that_is_missing_is_reported max_sequence(8) {
  %t = tfm.input "tokens" : !t
  %x = tfm.call @embed(%t) : (!t) -> !x
}

// -----

!w = tensor<11x8xf32>

tfm.shared @wte = "wte" init(ones) : !w
tfm.bucket @a decay elements(128) at(0) {
  tfm.member "" "wte" at(0) stride(0) instances(1) logical "wte" init(ones) prefixes [""] runs [0, 0, 1] : !w
}
tfm.bucket @b decay elements(128) at(128) {
  // expected-error@+1 {{parameter /wte is in two buckets}}
  tfm.member "" "wte" at(128) stride(0) instances(1) logical "wte" init(ones) prefixes [""] runs [0, 0, 1] : !w
}
tfm.model @m max_sequence(8) {
}

// -----

!w = tensor<11x8xf32>

tfm.shared @a = "a" init(ones) : !w
tfm.shared @b = "b" init(ones) : !w
tfm.bucket @members_do_not_overlap decay elements(256) at(0) {
  tfm.member "" "a" at(0) stride(0) instances(1) logical "a" init(ones) prefixes [""] runs [0, 0, 1] : !w
  // expected-error@+1 {{overlaps its predecessor, which ends at 88}}
  tfm.member "" "b" at(64) stride(0) instances(1) logical "b" init(ones) prefixes [""] runs [0, 0, 1] : !w
}
tfm.model @m max_sequence(8) {
}

// -----

!w = tensor<11x8xf32>

tfm.shared @a = "a" init(ones) : !w
tfm.shared @b = "b" init(ones) : !w
tfm.bucket @members_do_not_start_together decay elements(256) at(0) {
  tfm.member "" "a" at(0) stride(0) instances(1) logical "a" init(ones) prefixes [""] runs [0, 0, 1] : !w
  // expected-error@+1 {{starts where another parameter starts}}
  tfm.member "" "b" at(0) stride(0) instances(1) logical "b" init(ones) prefixes [""] runs [0, 0, 1] : !w
}
tfm.model @m max_sequence(8) {
}

// -----

!x = tensor<2x5x8xf32>
!v = tensor<8xf32>

tfm.block @layer(%x: !x) -> !x {
  // expected-error@+1 {{parameter layer/b has 3 applications of 'tensor<8xf32>' but its bucket 2 of 'tensor<8xf32>'}}
  %b = tfm.param "b" init(ones) : !v
  %y = tfm.add_bias %x, %b : !x, !v
  tfm.yield %y : !x
}
tfm.block @embed(%t: tensor<2x5xi32>) -> !x {
  %w = tfm.param "w" init(ones) : tensor<11x8xf32>
  %e = tfm.embedding %t, %w : tensor<2x5xi32>, tensor<11x8xf32> -> !x
  tfm.yield %e : !x
}
tfm.bucket @decayed decay elements(128) at(0) {
  tfm.member "embed" "w" at(0) stride(128) instances(1) logical "w" init(ones) prefixes [""] runs [0, 0, 1] : tensor<11x8xf32>
}
tfm.bucket @undecayed elements(128) at(128) {
  tfm.member "layer" "b" at(128) stride(64) instances(2) logical "b" init(ones) prefixes ["h"] runs [0, 0, 2] : !v
}
tfm.model @every_application_has_its_parameters max_sequence(8) {
  %t = tfm.input "tokens" : tensor<2x5xi32>
  %x = tfm.call @embed(%t) : (tensor<2x5xi32>) -> !x
  %y = tfm.repeat @layer times 3(%x) prefix "h" : !x
}

// -----

!w = tensor<11x8xf32>

tfm.shared @wte = "wte" init(ones) : !w
tfm.bucket @runs_are_triples decay elements(128) at(0) {
  // expected-error@+1 {{has 1 prefixes but 2 numbers in runs}}
  tfm.member "" "wte" at(0) stride(0) instances(1) logical "wte" init(ones) prefixes [""] runs [0, 0] : !w
}
tfm.model @m max_sequence(8) {
}
