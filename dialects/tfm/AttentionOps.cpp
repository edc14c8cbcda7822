//===- AttentionOps.cpp - Heads, rope, attention and gradients ------------===//
#include "dialects/tfm/Tfm.h"
#include "runtime/plan/SequenceOrder.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

//===----------------------------------------------------------------------===//
// split_heads and merge_heads: views
//===----------------------------------------------------------------------===//

static LogicalResult verifyHeads(Operation *op, Value merged, Value heads) {
  const auto flat = tensor(merged).getShape();
  const auto split = tensor(heads).getShape();
  if (flat.take_front(2) != split.take_front(2) ||
      flat[2] != split[2] * split[3]) {
    return op->emitOpError() << tensor(merged) << " is not " << tensor(heads)
                             << " with its heads joined";
  }
  return success();
}

LogicalResult SplitHeadsOp::verify() {
  return verifyHeads(*this, getX(), getResult());
}

OpCost SplitHeadsOp::getCost() { return {}; }

LogicalResult SplitHeadsOp::lowerToExec(ExecContext &context) {
  context.alias(getResult(), getX());
  return success();
}

void SplitHeadsOp::buildGradient(GradientContext &context) {
  context.addGradient(getX(),
                      MergeHeadsOp::create(context.builder(), getLoc(),
                                           gradientType(getX()),
                                           context.gradientOf(getResult())));
}

LogicalResult MergeHeadsOp::verify() {
  return verifyHeads(*this, getResult(), getX());
}

OpCost MergeHeadsOp::getCost() { return {}; }

LogicalResult MergeHeadsOp::lowerToExec(ExecContext &context) {
  context.alias(getResult(), getX());
  return success();
}

void MergeHeadsOp::buildGradient(GradientContext &context) {
  context.addGradient(getX(),
                      SplitHeadsOp::create(context.builder(), getLoc(),
                                           gradientType(getX()),
                                           context.gradientOf(getResult())));
}

//===----------------------------------------------------------------------===//
// rope
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::verify() {
  const int64_t dim = tensor(getX()).getDimSize(3);
  const double base = getBaseAttr().getValueAsDouble();
  if (dim % 2 != 0) {
    return emitOpError() << "rotates pairs, but head_dim is " << dim;
  }
  if (!(base > 0)) {
    return emitOpError() << "base is " << base
                         << ", expected a positive number";
  }
  return verifyPlaces(*this, getX(), getPositions(), "positions");
}

mega::ShardingRule RopeOp::getShardingRule() {
  return ShardingRule::parse(getPositions() ? "*bshD, =bs -> bshD"
                                            : "*bshD -> bshD");
}

Value RopeOp::getIndexIds() { return getPositions(); }

int64_t RopeOp::getIndexLimit() { return tensor(getX()).getDimSize(1); }

OpCost RopeOp::getCost() { return streamingCost(*this); }

/// The table for positions 0 .. sequence-1, as a value of its own: equal tables
/// are one constant of the plan, the same on every rank.
static Value ropeTable(OpBuilder &builder, RopeOp op, int64_t sequence) {
  const auto type = RankedTensorType::get(
      {sequence, tensor(op.getX()).getDimSize(3)}, builder.getF32Type());
  return RopeTableOp::create(builder, op.getLoc(), type, op.getBaseAttr(),
                             op.getScalingAttr());
}

LogicalResult RopeOp::lowerToExec(ExecContext &context) {
  OpBuilder builder(*this);
  Value table =
      ropeTable(builder, *this, context.wholeType(getX()).getDimSize(1));
  const ExecInteger inverse = getInverse() ? 1 : 0;
  if (getPositions()) {
    context.launch(Kernel::RopeAt, {getX(), table, getPositions(), getResult()},
                   inverse);
  } else {
    context.launch(Kernel::Rope, {getX(), table, getResult()}, inverse);
  }
  return success();
}

void RopeOp::buildGradient(GradientContext &context) {
  context.addGradient(
      getX(),
      RopeOp::create(context.builder(), getLoc(), gradientType(getX()),
                     context.gradientOf(getResult()),
                     context.useAny(getPositions()), getBaseAttr(),
                     getScalingAttr(),
                     getInverse() ? UnitAttr() : UnitAttr::get(getContext())));
}

LogicalResult RopeTableOp::lowerToExec(ExecContext &context) {
  context.launch(Kernel::RopeTable, {getResult()}, {kernelInteger()},
                 kernelFloats());
  return success();
}

int64_t RopeTableOp::kernelInteger() {
  return getScaling() ? static_cast<int64_t>(getScaling()->getKind()) : 0;
}

SmallVector<double> RopeTableOp::kernelFloats() {
  SmallVector<double> floats = {getBaseAttr().getValueAsDouble()};
  if (const RopeScalingAttr scaling = getScalingAttr()) {
    for (FloatAttr number :
         {scaling.getFactor(), scaling.getLow(), scaling.getHigh(),
          scaling.getOriginal(), scaling.getBetaFast(), scaling.getBetaSlow(),
          scaling.getAttention()}) {
      floats.push_back(number.getValueAsDouble());
    }
  } else {
    floats.append(7, 1.0);
  }
  return floats;
}

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::verify() {
  const auto q = tensor(getQ()).getShape();
  const auto k = tensor(getK()).getShape();
  if (q.take_front(2) != k.take_front(2) || q[3] != k[3]) {
    return emitOpError() << "query " << tensor(getQ()) << " and key "
                         << tensor(getK())
                         << " differ in batch, sequence or head dimension";
  }
  if (k[2] < 1 || q[2] % k[2] != 0) {
    return emitOpError() << k[2] << " key/value heads do not divide " << q[2]
                         << " query heads";
  }
  if (getWindow() && static_cast<int64_t>(*getWindow()) < 1) {
    return emitOpError() << "window is " << static_cast<int64_t>(*getWindow())
                         << ", expected at least 1";
  }
  if (getPAttr()) {
    const double p = getPAttr().getValueAsDouble();
    if (!(p >= 0 && p < 1)) {
      return emitOpError() << "p is " << p << ", expected 0 <= p < 1";
    }
  }
  const Value places[] = {getQPositions(), getQSegments(), getKPositions(),
                          getKSegments()};
  if (llvm::any_of(places, [&](Value v) { return !v != !places[0]; })) {
    return emitOpError()
           << "has some places of queries and keys, not all; give "
              "positions and segments of both, or none";
  }
  if (getRing() && !places[0]) {
    return emitOpError() << "is a ring and has no places of queries and keys";
  }
  for (auto [rows, place, what] :
       {std::tuple(getQ(), places[0], "query positions"),
        std::tuple(getQ(), places[1], "query segments"),
        std::tuple(getK(), places[2], "key positions"),
        std::tuple(getK(), places[3], "key segments")}) {
    if (failed(verifyPlaces(*this, rows, place, what))) {
      return failure();
    }
  }
  return verifySoftcap(*this, getSoftcapAttr());
}

/// Query-key pairs that are not masked, per head and batch row, if all of it is
/// one document.
static double visiblePairs(int64_t sequence, bool causal,
                           std::optional<uint64_t> window) {
  const double s = static_cast<double>(sequence);
  double pairs = causal ? s * (s + 1) / 2 : s * s;
  if (window && causal && static_cast<int64_t>(*window) < sequence) {
    const double w = static_cast<double>(*window);
    pairs = w * (w + 1) / 2 + (s - w) * w;
  }
  return pairs;
}

template <typename AttentionLike>
static OpCost attentionCost(AttentionLike op, double gemms) {
  OpCost cost = streamingCost(op);
  const auto q = tensor(op.getQ());
  if (q.hasStaticShape()) {
    const auto shape = q.getShape();
    // A rank's queries see as many keys as those of others: rows are dealt so.
    const int64_t sequence = op.getKPositions()
                                 ? tensor(op.getKPositions()).getDimSize(1)
                                 : shape[1];
    const double pairs =
        visiblePairs(sequence, op.getCausal(), op.getWindow()) *
        static_cast<double>(shape[1]) / static_cast<double>(sequence);
    cost.flops =
        gemms * 2 * static_cast<double>(shape[0]) * shape[2] * shape[3] * pairs;
  }
  return cost;
}

struct AttentionAttributes {
  SmallVector<ExecInteger, 4> integers;
  SmallVector<double, 3> floats;
};

/// The rule of an attention or a gradient of one. In `operands` and `results`
/// the sequence of queries is Q and that of keys K. Without places a row is its
/// place, so both stay whole; with them queries may be cut, and in a ring keys
/// with them.
template <typename AttentionLike>
static mega::ShardingRule attentionRule(AttentionLike op, StringRef operands,
                                        StringRef results) {
  const bool cut = static_cast<bool>(op.getQPositions());
  SmallString<96> text;
  (operands + (cut ? ", =bQ, =bQ, =bT, =bT" : "") + " -> " + results +
   " | h in k")
      .toVector(text);
  std::replace(text.begin(), text.end(), 'Q', cut ? 's' : 'S');
  std::replace(text.begin(), text.end(), 'K',
               op.getRing() ? 's'
               : cut        ? 'T'
                            : 'S');
  return ShardingRule::parse({text.data(), text.size()});
}

mega::ShardingRule AttentionOp::getShardingRule() {
  return attentionRule(*this, "bQhD, bKkD, *bKkD", "bQhD");
}
mega::ShardingRule AttentionStatsOp::getShardingRule() {
  return attentionRule(*this, "bQhD, bKkD, bKkD", "bQhD, bhQ");
}
mega::ShardingRule AttentionGradOp::getShardingRule() {
  return attentionRule(*this, "*bQhD, bQhD, bKkD, bKkD, bQhD, bhQ",
                       "bQhD, bKkD, bKkD");
}

/// `before`, the places of queries and of keys if there are any, `after`.
template <typename AttentionLike>
static SmallVector<ExecOperand> withPlaces(AttentionLike op,
                                           ArrayRef<ExecOperand> before,
                                           ArrayRef<ExecOperand> after) {
  SmallVector<ExecOperand> operands(before);
  if (op.getQPositions()) {
    operands.append({op.getQPositions(), op.getQSegments(), op.getKPositions(),
                     op.getKSegments()});
  }
  operands.append(after.begin(), after.end());
  return operands;
}

template <typename AttentionLike>
static AttentionAttributes kernelAttributes(ExecContext &context,
                                            AttentionLike op) {
  const double p = op.getPAttr() ? op.getPAttr().getValueAsDouble() : 0.0;
  return {{op.getCausal() ? 1 : 0,
           op.getWindow() ? static_cast<int64_t>(*op.getWindow()) : 0,
           op.getKey() ? static_cast<int64_t>(*op.getKey()) : 0,
           pieceStart(context, op.getQ(), 2)},
          {op.getScaleAttr().getValueAsDouble(), p,
           op.getSoftcapAttr().getValueAsDouble()}};
}

/// Of a ring: its group and order come first, and `exchange` is where it sends
/// and receives.
struct RingAttributes {
  AttentionAttributes all;
  ExecOperand exchange;

  template <typename AttentionLike>
  RingAttributes(ExecContext &context, AttentionLike op)
      : all(kernelAttributes(context, op)),
        exchange(ExecOperand::scratchBuffer({})) {
    const auto type = dist::layoutIn(op.getQ().getType());
    const bool zigzag = type.dims[1].zigzag;
    const bool packed =
        op->template getParentOfType<ModuleOp>()->hasAttr(kPackedAttrName);
    const SequenceOrder order = zigzag   ? SequenceOrder::Zigzag
                                : packed ? SequenceOrder::Balanced
                                         : SequenceOrder::Contiguous;
    const ExecInteger first[] = {context.groupOf(mega::Axis::Cp),
                                 static_cast<int64_t>(order)};
    all.integers.insert(all.integers.begin(), std::begin(first),
                        std::end(first));
    const BufferType k = dist::bufferType(tensor(op.getK()));
    exchange = ExecOperand::scratchBuffer(
        BufferType(k.type, {ringScratch(k, ranksOf(context))}));
  }

  static int64_t ranksOf(ExecContext &context) {
    return context.mesh().size(mega::Axis::Cp);
  }
};

template <typename AttentionLike>
static void launchForward(ExecContext &context, AttentionLike op,
                          const ExecOperand &lse) {
  if (op.getRing()) {
    const RingAttributes ring(context, op);
    const int64_t sums = ringSums(dist::bufferType(tensor(op.getQ())));
    context.launch(Kernel::RingAttention,
                   withPlaces(op, {op.getQ(), op.getK(), op.getV()},
                              {op.getResult(), lse, ring.exchange,
                               ExecOperand::scratchBuffer(
                                   BufferType(DataType::F32, {sums}))}),
                   ring.all.integers, ring.all.floats);
    return;
  }
  const AttentionAttributes attributes = kernelAttributes(context, op);
  context.launch(
      op.getQPositions() ? Kernel::PackedAttention : Kernel::Attention,
      withPlaces(op, {op.getQ(), op.getK(), op.getV()}, {op.getResult(), lse}),
      attributes.integers, attributes.floats);
}

OpCost AttentionOp::getCost() { return attentionCost(*this, 2); }

LogicalResult AttentionOp::lowerToExec(ExecContext &context) {
  const auto q = tensor(getQ()).getShape();
  ExecOperand lse =
      ExecOperand::scratchBuffer(BufferType(DataType::F32, {q[0], q[2], q[1]}));
  lse.layout = dist::layoutOf(statisticsType(getQ(), {0, 2, 1}));
  launchForward(context, *this, lse);
  return success();
}

Operation *AttentionOp::expandForTraining(OpBuilder &builder) {
  const RankedTensorType lse = statisticsType(getQ(), {0, 2, 1});
  auto expanded = AttentionStatsOp::create(
      builder, getLoc(), getResult().getType(), lse, getQ(), getK(), getV(),
      getQPositions(), getQSegments(), getKPositions(), getKSegments(),
      getRingAttr(), getCausalAttr(), getWindowAttr(), getScaleAttr(),
      getSoftcapAttr(), getDropoutAttr(), getPAttr(), getKeyAttr());
  getResult().replaceAllUsesWith(expanded.getResult());
  erase();
  return expanded;
}

void AttentionOp::buildGradient(GradientContext &) {
  llvm_unreachable("expandForTraining replaced it");
}

OpCost AttentionStatsOp::getCost() { return attentionCost(*this, 2); }

LogicalResult AttentionStatsOp::lowerToExec(ExecContext &context) {
  if (getDropout() && !getKey()) {
    return emitOpError() << "has no dropout key; run mega-differentiate first";
  }
  launchForward(context, *this, getLse());
  return success();
}

void AttentionStatsOp::buildGradient(GradientContext &context) {
  auto grad = AttentionGradOp::create(
      context.builder(), getLoc(),
      TypeRange{gradientType(getQ()), gradientType(getK()),
                gradientType(getV())},
      context.gradientOf(getResult()), context.use(getQ()), context.use(getK()),
      context.use(getV()), context.use(getResult()), context.use(getLse()),
      context.useAny(getQPositions()), context.useAny(getQSegments()),
      context.useAny(getKPositions()), context.useAny(getKSegments()),
      getRingAttr(), getCausalAttr(), getWindowAttr(), getScaleAttr(),
      getSoftcapAttr(), getDropoutAttr(), getPAttr(), getKeyAttr());
  context.addGradient(getQ(), grad.getGradQ());
  context.addGradient(getK(), grad.getGradK());
  context.addGradient(getV(), grad.getGradV());
}

OpCost AttentionGradOp::getCost() { return attentionCost(*this, 5); }

LogicalResult AttentionGradOp::lowerToExec(ExecContext &context) {
  if (getRing()) {
    const RingAttributes ring(context, *this);
    const int64_t sums = ringGradSums(dist::bufferType(tensor(getQ())),
                                      dist::bufferType(tensor(getK())),
                                      RingAttributes::ranksOf(context));
    context.launch(Kernel::RingAttentionGrad,
                   withPlaces(*this, {getGrad(), getQ(), getK(), getV()},
                              {getOut(), getLse(), getGradQ(), getGradK(),
                               getGradV(), ring.exchange,
                               ExecOperand::scratchBuffer(
                                   BufferType(DataType::F32, {sums}))}),
                   ring.all.integers, ring.all.floats);
    return success();
  }
  const auto lse = tensor(getLse()).getShape();
  const AttentionAttributes attributes = kernelAttributes(context, *this);
  context.launch(
      getQPositions() ? Kernel::PackedAttentionGrad : Kernel::AttentionGrad,
      withPlaces(*this, {getGrad(), getQ(), getK(), getV()},
                 {getOut(), getLse(), getGradQ(), getGradK(), getGradV(),
                  ExecOperand::scratchBuffer(
                      BufferType(DataType::F32, {lse[0], lse[1], lse[2]}))}),
      attributes.integers, attributes.floats);
  return success();
}

StringAttr AttentionOp::getRandomName() { return getDropoutAttr(); }

void AttentionOp::assignKey(StringRef block) {
  setKeyAttr(randomKey(block, getDropoutAttr()));
}

void AttentionOp::makeDeterministic() {
  removeDropoutAttr();
  removePAttr();
  removeKeyAttr();
}
