#include "test/runtime/cpu/TranspositionCases.h"

#include "test/runtime/cpu/TranspositionShapes.h"

namespace mega::test {
namespace {

Wholes elementwise(const Values &x, const std::function<double(double)> &f) {
  Values y;
  for (double value : x) {
    y.push_back(f(value));
  }
  return {y};
}
/// Of one operand, and linear: its own transpose but for the integers.
Case linearCase(std::string name, Kernel kernel, BufferType type,
                std::vector<int64_t> integers, std::vector<double> floats,
                std::function<double(size_t, double)> factor) {
  return {.name = std::move(name),
          .kernel = kernel,
          .operands = {{type}},
          .results = {type},
          .reference =
              [factor](const Wholes &x) {
                Values y = x[0];
                for (size_t i = 0; i < y.size(); ++i) {
                  y[i] = factor(i, y[i]);
                }
                return Wholes{y};
              },
          .backward =
              [=](Ranks &ranks, Use &use) {
                return ranks.launch(kernel,
                                    {&use.gradResults[0], &use.gradOperands[0]},
                                    integers, floats);
              },
          .integers = integers,
          .floats = floats};
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

/// c = op(a) op(b).
Case gemmCase(const std::string &name, BufferType a, BufferType b, BufferType c,
              bool ta, bool tb) {
  const int64_t k = ta ? a.rows() : a.rowSize();
  return {
      .name = "gemm_" + name,
      .kernel = Kernel::Gemm,
      .operands = {{a}, {b}},
      .results = {c},
      .reference =
          [=](const Wholes &x) {
            return Wholes{reference::gemm({c.rows(), c.rowSize(), k, ta, tb},
                                          x[0], x[1])};
          },
      .backward =
          [=](Ranks &ranks, Use &use) {
            Sharded &g = use.gradResults[0];
            Sharded &gradA = use.gradOperands[0], &gradB = use.gradOperands[1];
            MEGA_RETURN_IF_ERROR(
                ta ? ranks.launch(Kernel::Gemm, {&use.operands[1], &g, &gradA},
                                  {tb, 1, 0})
                   : ranks.launch(Kernel::Gemm, {&g, &use.operands[1], &gradA},
                                  {0, !tb, 0}));
            return tb ? ranks.launch(Kernel::Gemm,
                                     {&g, &use.operands[0], &gradB}, {1, ta, 1})
                      : ranks.launch(Kernel::Gemm,
                                     {&use.operands[0], &g, &gradB},
                                     {!ta, 0, 1});
          },
      .integers = {ta, tb, 0},
      .roundings = 64};
}

void addMatrices(std::vector<Case> &cases) {
  const BufferType square(kF, {12, 12}), x(kF, {18, 12}), xt(kF, {12, 18});
  const BufferType y(kF, {18, 12});
  cases.push_back(gemmCase("linear", kX, BufferType(kF, {24, kHidden}),
                           BufferType(kF, {kBatch, kSequence, 24}), false,
                           true));
  cases.push_back(gemmCase("to_heads", kX,
                           BufferType(kF, {kHeads * kDim, kHidden}), kHeadsX,
                           false, true));
  cases.push_back(gemmCase("from_heads", kHeadsX,
                           BufferType(kF, {kHidden, kHeads * kDim}), kX, false,
                           true));
  // Cut inside of the heads, of which the matrix knows nothing.
  cases.back().refused = 1;
  cases.push_back(gemmCase("plain", x, square, y, false, false));
  cases.push_back(gemmCase("a", xt, square, y, true, false));
  cases.push_back(gemmCase("b", x, square, y, false, true));
  cases.push_back(gemmCase("both", xt, square, y, true, true));

  cases.push_back(
      {.name = "embedding",
       .kernel = Kernel::Embedding,
       .operands = {{kIds, asValues(someIds(0))}, {kTable, {}, 0}},
       .results = {kX},
       .reference =
           [](const Wholes &x) {
             return Wholes{reference::embedding(someIds(0), x[1], kHidden)};
           },
       .backward =
           [](Ranks &ranks, Use &use) {
             return ranks.launch(
                 Kernel::EmbeddingGrad,
                 {&use.operands[0], &use.gradResults[0], &use.gradOperands[1]},
                 {0, kVocabulary});
           },
       .integers = {0, kVocabulary}});
  cases.push_back({.name = "add_positions",
                   .kernel = Kernel::AddPositions,
                   .operands = {{kX}, {BufferType(kF, {8, kHidden})}},
                   .results = {kX},
                   .reference =
                       [](const Wholes &x) {
                         return Wholes{reference::addPositions(
                             x[0], x[1], kSequence, kHidden)};
                       },
                   .backward =
                       [](Ranks &ranks, Use &use) {
                         pass(use, 0);
                         return ranks.launch(
                             Kernel::PositionsGrad,
                             {&use.gradResults[0], &use.gradOperands[1]}, {0});
                       },
                   .integers = {0}});
  // Ids are positions as well: every row of the table occurs.
  cases.push_back(
      {.name = "add_positions_at",
       .kernel = Kernel::AddPositionsAt,
       .operands = {{kX}, {kTable}, {kIds, asValues(someIds(0))}},
       .results = {kX},
       .reference =
           [](const Wholes &x) {
             return Wholes{
                 plus(x[0], reference::embedding(someIds(0), x[1], kHidden))};
           },
       .backward =
           [](Ranks &ranks, Use &use) {
             pass(use, 0);
             return ranks.launch(
                 Kernel::PositionsGradAt,
                 {&use.operands[2], &use.gradResults[0], &use.gradOperands[1]});
           }});
}

//===----------------------------------------------------------------------===//
// Element-wise
//===----------------------------------------------------------------------===//

Case activationCase(const std::string &name, Kernel kernel, Kernel grad,
                    const std::vector<int64_t> &integers,
                    const std::function<double(double)> &f) {
  return {.name = name,
          .kernel = kernel,
          .operands = {{kX}},
          .results = {kX},
          .reference = [f](const Wholes &x) { return elementwise(x[0], f); },
          .backward =
              [=](Ranks &ranks, Use &use) {
                return ranks.launch(grad,
                                    {&use.gradResults[0], &use.operands[0],
                                     &use.gradOperands[0]},
                                    integers);
              },
          .integers = integers};
}

void addActivations(std::vector<Case> &cases) {
  for (const GeluKind kind : {GeluKind::Tanh, GeluKind::Erf}) {
    cases.push_back(activationCase(
        kind == GeluKind::Tanh ? "gelu_tanh" : "gelu_erf", Kernel::Gelu,
        Kernel::GeluGrad, {static_cast<int64_t>(kind)},
        [=](double x) { return reference::gelu(kind, x); }));
  }
  cases.push_back(activationCase("silu", Kernel::Silu, Kernel::SiluGrad, {},
                                 reference::silu));
  for (const GateKind kind : {GateKind::Silu, GateKind::GeluTanh}) {
    const std::vector<int64_t> integers = {static_cast<int64_t>(kind)};
    cases.push_back(
        {.name = kind == GateKind::Silu ? "gated_silu" : "gated_gelu",
         .kernel = Kernel::Gated,
         .operands = {{kX}, {kX}},
         .results = {kX},
         .reference =
             [=](const Wholes &x) {
               Values y = x[1];
               for (size_t i = 0; i < y.size(); ++i) {
                 y[i] *= reference::gate(kind, x[0][i]);
               }
               return Wholes{y};
             },
         .backward =
             [=](Ranks &ranks, Use &use) {
               return ranks.launch(Kernel::GatedGrad,
                                   {&use.gradResults[0], &use.operands[0],
                                    &use.operands[1], &use.gradOperands[0],
                                    &use.gradOperands[1]},
                                   integers);
             },
         .integers = integers,
         // A partial `up`: its gate's gradient reads it.
         .forwardOnly = 1});
  }
}

void addSums(std::vector<Case> &cases) {
  const auto biasGrad = [](Ranks &ranks, Use &use) {
    pass(use, 0);
    return ranks.launch(Kernel::BiasGrad,
                        {&use.gradResults[0], &use.gradOperands[1]});
  };
  const auto addBias = [](const Wholes &x) {
    return Wholes{reference::addBias(x[0], x[1])};
  };
  cases.push_back({.name = "add_bias",
                   .kernel = Kernel::AddBias,
                   .operands = {{kX}, {kVector}},
                   .results = {kX},
                   .reference = addBias,
                   .backward = biasGrad});
  const BufferType matrix(kF, {kBatch, kHidden});
  cases.push_back({.name = "add_bias_to_rows",
                   .kernel = Kernel::AddBias,
                   .operands = {{matrix}, {kVector}},
                   .results = {matrix},
                   .reference = addBias,
                   .backward = biasGrad});
  cases.push_back(
      {.name = "bias_gelu",
       .kernel = Kernel::BiasGelu,
       .operands = {{kX}, {kVector}},
       .results = {kX, kX},
       .reference =
           [](const Wholes &x) {
             const Values z = reference::addBias(x[0], x[1]);
             return Wholes{z, elementwise(z, [](double value) {
                             return reference::gelu(GeluKind::Erf, value);
                           })[0]};
           },
       .backward =
           [](Ranks &ranks, Use &use) {
             MEGA_RETURN_IF_ERROR(ranks.launch(
                 Kernel::GeluGrad,
                 {&use.gradResults[1], &use.results[0], &use.gradOperands[0]},
                 {static_cast<int64_t>(GeluKind::Erf)}));
             return ranks.launch(Kernel::BiasGrad,
                                 {&use.gradOperands[0], &use.gradOperands[1]});
           },
       .integers = {static_cast<int64_t>(GeluKind::Erf)},
       .active = {1}});
  cases.push_back(
      {.name = "add",
       .kernel = Kernel::Add,
       .operands = {{kX}, {kX}},
       .results = {kX},
       .reference = [](const Wholes &x) { return Wholes{plus(x[0], x[1])}; },
       .backward =
           [](Ranks &, Use &use) {
             pass(use, 0);
             pass(use, 1);
             return Status::ok();
           }});
}

Case dropoutCase(const std::string &name, const BufferType &type) {
  constexpr double kP = 0.3;
  constexpr int64_t kName = 99;
  const StepScalars s = caseScalars();
  const uint64_t key = dropoutKey(s.seed, s.step, kName, kCaseApplication);
  const auto features = static_cast<size_t>(type.rowSize());
  return linearCase(name, Kernel::Dropout, type, {kName, 0, 0}, {kP},
                    [=](size_t i, double x) {
                      const auto row = static_cast<int64_t>(i / features);
                      const bool keeps = reference::keepsActivation(
                          key, kP, kCaseFirstSample + row / kSequence,
                          row % kSequence, static_cast<int64_t>(i % features));
                      return keeps ? x / (1 - kP) : 0;
                    });
}

/// Of rows at places of their own.
Case dropoutAtCase() {
  constexpr double kP = 0.3;
  constexpr int64_t kName = 98;
  const StepScalars s = caseScalars();
  const uint64_t key = dropoutKey(s.seed, s.step, kName, kCaseApplication);
  const std::vector<int> positions = someIds(2), segments = someIds(1);
  const std::vector<int64_t> integers = {kName, 0};
  return {.name = "dropout_at",
          .kernel = Kernel::DropoutAt,
          .operands = {{kX},
                       {kIds, asValues(positions)},
                       {kIds, asValues(segments)}},
          .results = {kX},
          .reference =
              [=](const Wholes &x) {
                Values y = x[0];
                for (size_t i = 0; i < y.size(); ++i) {
                  const size_t row = i / kHidden;
                  const bool keeps = reference::keepsActivation(
                      key, kP,
                      kCaseFirstSample + static_cast<int64_t>(row / kSequence),
                      positions[row] + segments[row],
                      static_cast<int64_t>(i % kHidden));
                  y[i] = keeps ? y[i] / (1 - kP) : 0;
                }
                return Wholes{y};
              },
          .backward =
              [=](Ranks &ranks, Use &use) {
                return ranks.launch(Kernel::DropoutAt,
                                    {&use.gradResults[0], &use.operands[1],
                                     &use.operands[2], &use.gradOperands[0]},
                                    integers, {kP});
              },
          .integers = integers,
          .floats = {kP}};
}

void addLinears(std::vector<Case> &cases) {
  const auto identity = [](size_t, double x) { return x; };
  cases.push_back(dropoutCase("dropout", kX));
  cases.push_back(dropoutCase("dropout_of_heads", kHeadsX));
  // Cut inside of its heads, no first_feature counts it.
  cases.back().refused = 1;
  cases.push_back(dropoutAtCase());
  cases.push_back(linearCase("scale", Kernel::Scale, kX, {}, {0.3},
                             [](size_t, double x) { return 0.3 * x; }));
  cases.push_back(linearCase("copy", Kernel::Copy, kX, {}, {}, identity));
  cases.push_back(
      linearCase("accumulate", Kernel::Accumulate, kX, {}, {}, identity));
  Case cast = linearCase("cast", Kernel::Cast, kX, {}, {}, identity);
  cast.results[0].type = DataType::BF16;
  // 2^-9 of a summand, which may be larger than the sum.
  cast.roundings = 0x1p17;
  cases.push_back(cast);
}

} // namespace

Values plus(Values a, const Values &b) {
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] += b[i];
  }
  return a;
}

void pass(Use &use, size_t operand) {
  use.gradOperands[operand] = use.gradResults[0];
}

std::vector<int> someIds(int ignored) {
  std::vector<int> ids;
  for (int t = 0; t < kTokens; ++t) {
    ids.push_back(t % 7 == 3 ? ignored : t * 5 % kVocabulary);
  }
  return ids;
}

Values asValues(const std::vector<int> &ids) {
  return {ids.begin(), ids.end()};
}

StepScalars caseScalars() {
  StepScalars scalars;
  scalars.seed = 7;
  scalars.step = 11;
  return scalars;
}

std::vector<Case> transpositionCases() {
  std::vector<Case> cases;
  addMatrices(cases);
  addNorms(cases);
  addActivations(cases);
  addSums(cases);
  addLinears(cases);
  addAttention(cases);
  addHead(cases);
  return cases;
}

} // namespace mega::test
