//===- Conversions.cpp - Layout conversions as layers ---------------------===//
//
// What the conversions of the dist dialect are to the passes over tfm ops: the
// identity on the global value, whose transpose the types derive.
//
//===----------------------------------------------------------------------===//
#include "dialects/tfm/Tfm.h"

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

namespace {

template <typename ConversionOp>
struct DifferentiableConversion
    : Differentiable::ExternalModel<DifferentiableConversion<ConversionOp>,
                                    ConversionOp> {
  Operation *expandForTraining(Operation *op, OpBuilder &) const { return op; }

  void buildGradient(Operation *op, GradientContext &context) const {
    Value x = op->getOperand(0);
    Value grad = dist::createTranspose(context.builder(), op->getLoc(),
                                       context.gradientOf(op->getResult(0)),
                                       cast<RankedTensorType>(x.getType()));
    if (grad) {
      context.addGradient(x, grad);
    }
  }
};

template <typename ConversionOp>
struct ConversionCost
    : Cost::ExternalModel<ConversionCost<ConversionOp>, ConversionOp> {
  OpCost getCost(Operation *op) const {
    const Conversion conversion = ConversionOp::getConversion();
    const bool free = conversion == Conversion::Replicate ||
                      conversion == Conversion::AssumeInvariant;
    return free ? OpCost() : streamingCost(op);
  }
};

template <typename... ConversionOps> void attach(MLIRContext *context) {
  (ConversionOps::template attachInterface<
       DifferentiableConversion<ConversionOps>, ConversionCost<ConversionOps>>(
       *context),
   ...);
}

} // namespace

void mega::tfm::attachConversionInterfaces(MLIRContext *context) {
  attach<dist::ReplicateOp, dist::AssumeInvariantOp, dist::SliceOp,
         dist::ToPartialOp, dist::AllGatherOp, dist::AllToAllOp,
         dist::AllReduceOp, dist::ReduceScatterOp>(context);
}
