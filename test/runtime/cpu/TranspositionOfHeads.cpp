#include "test/runtime/cpu/TranspositionCases.h"
#include "test/runtime/cpu/TranspositionShapes.h"

namespace mega::test {
namespace {

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

void addRope(std::vector<Case> &cases) {
  const Values table = reference::ropeTable(8, kDim, 100);
  cases.push_back({.name = "rope",
                   .kernel = Kernel::Rope,
                   .operands = {{kHeadsX}, {BufferType(kF, {8, kDim}), table}},
                   .results = {kHeadsX},
                   .reference =
                       [](const Wholes &x) {
                         return Wholes{reference::rope(x[0], x[1], kSequence,
                                                       kHeads, kDim, false)};
                       },
                   .backward =
                       [](Ranks &ranks, Use &use) {
                         return ranks.launch(Kernel::Rope,
                                             {&use.gradResults[0],
                                              &use.operands[1],
                                              &use.gradOperands[0]},
                                             {1});
                       },
                   .integers = {0}});
}

void addRopeAt(std::vector<Case> &cases) {
  const Values table = reference::ropeTable(kVocabulary, kDim, 100);
  cases.push_back(
      {.name = "rope_at",
       .kernel = Kernel::RopeAt,
       .operands = {{kHeadsX},
                    {BufferType(kF, {kVocabulary, kDim}), table},
                    {kIds, asValues(someIds(0))}},
       .results = {kHeadsX},
       .reference =
           [](const Wholes &x) {
             return Wholes{
                 reference::rope(x[0], x[1], someIds(0), kHeads, kDim, false)};
           },
       .backward =
           [](Ranks &ranks, Use &use) {
             return ranks.launch(Kernel::RopeAt,
                                 {&use.gradResults[0], &use.operands[1],
                                  &use.operands[2], &use.gradOperands[0]},
                                 {1});
           },
       .integers = {0}});
}

//===----------------------------------------------------------------------===//
// Output head
//===----------------------------------------------------------------------===//

constexpr int kIgnore = -100;
constexpr double kSoftcap = 3;

/// Cut along the vocabulary, statistics become `after`: invariant or
/// replicated.
Status headForward(Ranks &ranks, Use &use, const Layout &after) {
  Sharded &x = use.operands[0], &w = use.operands[1], &labels = use.operands[2];
  const std::vector<int64_t> integers = {kIgnore, 0, kVocabulary};
  MEGA_ASSIGN_OR_RETURN(const std::vector<Layout> layouts,
                        ranks.infer(Kernel::HeadStats, {&x, &w, &labels},
                                    {kStats, kStats, kStats}));
  Sharded max = ranks.zeros(kStats, layouts[0]);
  Sharded sum = ranks.zeros(kStats, layouts[1]);
  Sharded target = ranks.zeros(kStats, layouts[2]);
  MEGA_RETURN_IF_ERROR(ranks.launch(
      Kernel::HeadStats, {&x, &w, &labels, &max, &sum, &target, nullptr},
      integers, {kSoftcap}));
  const bool cut = sum.layout.partial != 0;
  Sharded largest = cut ? ranks.convert(max, x.layout) : max;
  Sharded rescaled = ranks.zeros(kStats, sum.layout);
  MEGA_RETURN_IF_ERROR(
      ranks.launch(Kernel::HeadRescale, {&sum, &max, &largest, &rescaled}));
  Sharded all[] = {largest, rescaled, target, labels};
  if (cut) {
    all[0] = largest.as(after);
    all[1] = ranks.convert(rescaled, after);
    all[2] = ranks.convert(target, after);
    all[3] = labels.as(after);
  }
  const BufferType scalar(kF, {});
  MEGA_ASSIGN_OR_RETURN(const std::vector<Layout> loss,
                        ranks.infer(Kernel::HeadLoss,
                                    {&all[0], &all[1], &all[2], &all[3]},
                                    {scalar}));
  use.results = {ranks.zeros(scalar, loss[0])};
  use.kept = {max, largest, all[1], all[3], sum};
  return ranks.launch(Kernel::HeadLoss,
                      {&all[0], &all[1], &all[2], &all[3], &use.results[0]},
                      {kIgnore});
}

Status headBackward(Ranks &ranks, Use &use) {
  Sharded &seed = use.gradResults[0];
  Sharded &max = use.kept[0], &largest = use.kept[1];
  Sharded &sum = use.kept[2], &labels = use.kept[3];
  MEGA_ASSIGN_OR_RETURN(const std::vector<Layout> layouts,
                        ranks.infer(Kernel::HeadLossGrad,
                                    {&seed, &sum, &labels}, {kStats, kStats}));
  Sharded gradSum = ranks.zeros(kStats, layouts[0]);
  Sharded gradTarget = ranks.zeros(kStats, layouts[1]);
  MEGA_RETURN_IF_ERROR(
      ranks.launch(Kernel::HeadLossGrad,
                   {&seed, &sum, &labels, &gradSum, &gradTarget}, {kIgnore}));
  // The transpose of the statistics' reduction, if there was one.
  MEGA_ASSIGN_OR_RETURN(const Layout local, use.kept[4].layout.dual());
  if (layouts[0] != local) {
    gradSum = ranks.convert(gradSum, local);
    gradTarget = ranks.convert(gradTarget, local);
  }
  Sharded rescaled = ranks.zeros(kStats, local);
  MEGA_RETURN_IF_ERROR(ranks.launch(Kernel::HeadRescaleGrad,
                                    {&gradSum, &max, &largest, &rescaled}));
  return ranks.launch(Kernel::HeadStatsGrad,
                      {&use.operands[0], &use.operands[1], &use.operands[2],
                       &max, &rescaled, &gradTarget, &use.gradOperands[0],
                       &use.gradOperands[1], nullptr},
                      {kIgnore, 0, kVocabulary}, {kSoftcap});
}

Case headCase(const std::string &name, const Layout &after) {
  return {
      .name = name,
      .kernel = Kernel::HeadStats,
      .operands = {{kX}, {kTable, {}, 0}, {kIds, asValues(someIds(kIgnore))}},
      .results = {},
      .reference =
          [](const Wholes &x) {
            const reference::HeadShape shape = {.tokens = kTokens,
                                                .hidden = kHidden,
                                                .vocabulary = kVocabulary,
                                                .ignore = kIgnore,
                                                .firstRow = 0,
                                                .softcap = kSoftcap};
            const std::vector<int> labels = someIds(kIgnore);
            return Wholes{{reference::headLoss(
                shape, reference::headStats(shape, x[0], x[1], labels),
                labels)}};
          },
      .backward = headBackward,
      .roundings = 64,
      .forward = [after](Ranks &ranks,
                         Use &use) { return headForward(ranks, use, after); }};
}

} // namespace

Case attentionCase(int64_t heads, int64_t kvHeads, Kernel kernel) {
  const bool packed = kernel != Kernel::Attention;
  constexpr int64_t kName = 77, kWindow = 4;
  constexpr double kP = 0.25;
  const StepScalars s = caseScalars();
  // Two documents in a row.
  reference::AttentionPlaces places;
  std::vector<Case::Operand> given;
  if (packed) {
    for (int row = 0; row < kTokens; ++row) {
      const int s = row % kSequence, cut = row / kSequence;
      places.segments.push_back(s < cut ? 0 : cut);
      places.positions.push_back(s < cut ? s : s - cut);
    }
    for (int side = 0; side < 2; ++side) {
      given.push_back({kIds, asValues(places.positions)});
      given.push_back({kIds, asValues(places.segments)});
    }
  }
  const reference::AttentionShape shape = {
      .batch = kBatch,
      .sequence = kSequence,
      .heads = heads,
      .kvHeads = kvHeads,
      .dim = kDim,
      .causal = true,
      .window = kWindow,
      .scale = 0.5,
      .dropout = kP,
      .dropoutKey = dropoutKey(s.seed, s.step, kName, kCaseApplication),
      .firstSample = kCaseFirstSample,
      .queryPlaces = places,
      .keyPlaces = places};
  const BufferType q(kF, {kBatch, kSequence, heads, kDim});
  const BufferType k(kF, {kBatch, kSequence, kvHeads, kDim});
  std::vector<int64_t> integers = {1, kWindow, kName, 0};
  if (isRing(kernel)) {
    // Group 0, pieces one after another.
    integers.insert(integers.begin(), {0, 0});
  }
  const std::vector<double> floats = {shape.scale, kP, 0};
  const Kernel gradient = isRing(kernel) ? Kernel::RingAttentionGrad
                          : packed       ? Kernel::PackedAttentionGrad
                                         : Kernel::AttentionGrad;
  std::vector<Case::Operand> operands = {{q}, {k}, {k}};
  operands.insert(operands.end(), given.begin(), given.end());
  return {.name = std::string(kernelSpec(kernel).name) + "_" +
                  std::to_string(heads) + "_" + std::to_string(kvHeads),
          .kernel = kernel,
          .operands = operands,
          .results = {q, BufferType(kF, {kBatch, heads, kSequence})},
          .reference =
              [shape](const Wholes &x) {
                auto a = reference::attention(shape, x[0], x[1], x[2]);
                return Wholes{a.out, a.lse};
              },
          .backward =
              [=](Ranks &ranks, Use &use) {
                std::vector<Sharded *> all = {&use.gradResults[0]};
                for (Sharded &operand : use.operands) {
                  all.push_back(&operand);
                }
                for (Sharded *each :
                     {&use.results[0], &use.results[1], &use.gradOperands[0],
                      &use.gradOperands[1], &use.gradOperands[2]}) {
                  all.push_back(each);
                }
                all.resize(kernelSpec(gradient).operands.size());
                return ranks.launch(gradient, all, integers, floats);
              },
          .integers = integers,
          .floats = floats,
          .roundings = 100,
          .gradRoundings = 200,
          // With one key/value head it cannot be cut; with more, query heads
          // cannot be cut alone.
          .refused = 1};
}

void addAttention(std::vector<Case> &cases) {
  addRope(cases);
  addRopeAt(cases);
  for (const Kernel kernel :
       {Kernel::Attention, Kernel::PackedAttention, Kernel::RingAttention}) {
    cases.push_back(attentionCase(12, 6, kernel));
    cases.push_back(attentionCase(6, 1, kernel));
  }
}

void addHead(std::vector<Case> &cases) {
  Layout replicated;
  replicated.replicated = 1u << static_cast<int>(Axis::Tp);
  cases.push_back(headCase("head_loss_invariant", {}));
  cases.push_back(headCase("head_loss_replicated", replicated));
}

} // namespace mega::test
