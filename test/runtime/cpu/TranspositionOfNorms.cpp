#include "test/runtime/cpu/TranspositionCases.h"
#include "test/runtime/cpu/TranspositionShapes.h"

namespace mega::test {
namespace {

constexpr double kEpsilon = 1e-5;

void addLayerNorms(std::vector<Case> &cases) {
  cases.push_back(
      {.name = "layer_norm",
       .kernel = Kernel::LayerNorm,
       .operands = {{kX}, {kVector}, {kVector}},
       .results = {kX, kStats, kStats},
       .reference =
           [](const Wholes &x) {
             auto n = reference::layerNorm(x[0], x[1], x[2], kEpsilon);
             return Wholes{n.y, n.mean, n.rstd};
           },
       .backward =
           [](Ranks &ranks, Use &use) {
             return ranks.launch(Kernel::LayerNormGrad,
                                 {&use.gradResults[0], &use.operands[0],
                                  &use.operands[1], &use.results[1],
                                  &use.results[2], &use.gradOperands[0],
                                  &use.gradOperands[1], &use.gradOperands[2]},
                                 {0});
           },
       .floats = {kEpsilon}});
  cases.push_back(
      {.name = "add_layer_norm",
       .kernel = Kernel::AddLayerNorm,
       .operands = {{kX}, {kX}, {kVector}, {kVector}},
       .results = {kX, kX, kStats, kStats},
       .reference =
           [](const Wholes &x) {
             const Values sum = plus(x[0], x[1]);
             auto n = reference::layerNorm(sum, x[2], x[3], kEpsilon);
             return Wholes{sum, n.y, n.mean, n.rstd};
           },
       .backward =
           [](Ranks &ranks, Use &use) {
             pass(use, 0);
             Status status = ranks.launch(
                 Kernel::LayerNormGrad,
                 {&use.gradResults[1], &use.results[0], &use.operands[2],
                  &use.results[2], &use.results[3], &use.gradOperands[0],
                  &use.gradOperands[2], &use.gradOperands[3]},
                 {1});
             use.gradOperands[1] = use.gradOperands[0];
             return status;
           },
       .floats = {kEpsilon},
       .active = {0, 1}});
}

void addRmsNorms(std::vector<Case> &cases) {
  constexpr double kOffset = 1;
  const auto grad = [](Ranks &ranks, Use &use) {
    return ranks.launch(Kernel::RmsNormGrad,
                        {&use.gradResults[0], &use.operands[0],
                         &use.operands[1], &use.results[1],
                         &use.gradOperands[0], &use.gradOperands[1]},
                        {0}, {kOffset});
  };
  const auto reference = [](const Wholes &x) {
    auto n = reference::rmsNorm(x[0], x[1], kEpsilon, kOffset);
    return Wholes{n.y, n.rstd};
  };
  cases.push_back({.name = "rms_norm",
                   .kernel = Kernel::RmsNorm,
                   .operands = {{kX}, {kVector}},
                   .results = {kX, kStats},
                   .reference = reference,
                   .backward = grad,
                   .floats = {kEpsilon, kOffset}});
  cases.push_back(
      {.name = "rms_norm_of_heads",
       .kernel = Kernel::RmsNorm,
       .operands = {{kHeadsX}, {BufferType(kF, {kDim})}},
       .results = {kHeadsX, BufferType(kF, {kBatch, kSequence, kHeads})},
       .reference = reference,
       .backward = grad,
       .floats = {kEpsilon, kOffset}});
  cases.push_back(
      {.name = "add_rms_norm",
       .kernel = Kernel::AddRmsNorm,
       .operands = {{kX}, {kX}, {kVector}},
       .results = {kX, kX, kStats},
       .reference =
           [](const Wholes &x) {
             const Values sum = plus(x[0], x[1]);
             auto n = reference::rmsNorm(sum, x[2], kEpsilon, kOffset);
             return Wholes{sum, n.y, n.rstd};
           },
       .backward =
           [](Ranks &ranks, Use &use) {
             pass(use, 0);
             Status status = ranks.launch(
                 Kernel::RmsNormGrad,
                 {&use.gradResults[1], &use.results[0], &use.operands[2],
                  &use.results[2], &use.gradOperands[0], &use.gradOperands[2]},
                 {1}, {kOffset});
             use.gradOperands[1] = use.gradOperands[0];
             return status;
           },
       .floats = {kEpsilon, kOffset},
       .active = {0, 1}});
}

} // namespace

void addNorms(std::vector<Case> &cases) {
  addLayerNorms(cases);
  addRmsNorms(cases);
}

} // namespace mega::test
