// Meshes and layouts: what is printed parses to the same.
// RUN: mega-opt %s | mega-opt | FileCheck %s

// CHECK: module attributes {dist.mesh = #dist.mesh<tp = 2, dp = 4>, test.one_rank = #dist.mesh<>}
module attributes {dist.mesh = #dist.mesh<tp = 2, dp = 4>, test.one_rank = #dist.mesh<>} {
  // CHECK-LABEL: func.func private @invariant(tensor<4x6x64xf32, #dist.layout<>>)
  func.func private @invariant(tensor<4x6x64xf32, #dist.layout<>>)
  // CHECK-LABEL: func.func private @unassigned(tensor<4x6x64xf32>)
  func.func private @unassigned(tensor<4x6x64xf32>)
  // CHECK-LABEL: @sharded(tensor<4x6x64xf32, #dist.layout<[{}, {tp}, {}]>>)
  func.func private @sharded(tensor<4x6x64xf32, #dist.layout<[{}, {tp}, {}]>>)
  // Major to minor: the order of axes within a dimension has a meaning.
  // CHECK-LABEL: @major_to_minor(tensor<4x6x64xf32, #dist.layout<[{dp}, {tp, cp}, {}]>>)
  func.func private @major_to_minor(tensor<4x6x64xf32, #dist.layout<[{dp}, {tp, cp}, {}]>>)
  // CHECK-LABEL: @minor_to_major(tensor<4x6x64xf32, #dist.layout<[{dp}, {cp, tp}, {}]>>)
  func.func private @minor_to_major(tensor<4x6x64xf32, #dist.layout<[{dp}, {cp, tp}, {}]>>)
  // CHECK-LABEL: @zigzag(tensor<4x8x64xf32, #dist.layout<[{dp}, {cp zigzag, tp}, {}]>>)
  func.func private @zigzag(tensor<4x8x64xf32, #dist.layout<[{dp}, {cp zigzag, tp}, {}]>>)
  // CHECK-LABEL: @replicated(tensor<64xf32, #dist.layout<replicated = {tp, cp, dp}>>)
  func.func private @replicated(tensor<64xf32, #dist.layout<replicated = {tp, cp, dp}>>)
  // CHECK-LABEL: @partial_sum(tensor<64xf32, #dist.layout<partial = {tp}>>)
  func.func private @partial_sum(tensor<64xf32, #dist.layout<partial = {tp}>>)
  // CHECK-LABEL: @partial_maximum(tensor<64xf32, #dist.layout<partial = {tp max}>>)
  func.func private @partial_maximum(tensor<64xf32, #dist.layout<partial = {tp max}>>)
  // CHECK-LABEL: @partial_minimum(tensor<64xf32, #dist.layout<partial = {tp, dp min}>>)
  func.func private @partial_minimum(tensor<64xf32, #dist.layout<partial = {tp, dp min}>>)
  // CHECK-LABEL: @all_states(tensor<8x64xf32, #dist.layout<[{dp}, {}], replicated = {tp}, partial = {cp}>>)
  func.func private @all_states(tensor<8x64xf32, #dist.layout<[{dp}, {}], replicated = {tp}, partial = {cp}>>)
  // 257 rows over two ranks: each has 129, the last row is padding.
  // CHECK-LABEL: @padded(tensor<257x64xf32, #dist.layout<[{tp, pad 258}, {}]>>)
  func.func private @padded(tensor<257x64xf32, #dist.layout<[{tp, pad 258}, {}]>>)
  // CHECK-LABEL: @dynamic(tensor<?x?x64xf32, #dist.layout<[{dp}, {cp, pad 8}, {}]>>)
  func.func private @dynamic(tensor<?x?x64xf32, #dist.layout<[{dp}, {cp, pad 8}, {}]>>)
  // CHECK-LABEL: @scalar(tensor<f32, #dist.layout<partial = {dp}>>)
  func.func private @scalar(tensor<f32, #dist.layout<partial = {dp}>>)
  // CHECK-LABEL: @expert(tensor<8x64x32xf32, #dist.layout<[{ep}, {}, {}]>>)
  func.func private @expert(tensor<8x64x32xf32, #dist.layout<[{ep}, {}, {}]>>)
}
