//===- Conversions.cpp - Verifying and building conversions ---------------===//
//
// One verifier for all conversions: runtime/plan/Layout says what the change of
// the layout is, and the op has to be that.
//
//===----------------------------------------------------------------------===//
#include "dialects/dist/Dist.h"
#include "runtime/plan/PlanLayouts.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mega;
using namespace mega::dist;

ParseResult mega::dist::parseAxes(OpAsmParser &parser,
                                  DenseI32ArrayAttr &axes) {
  SmallVector<int32_t> numbers;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&] {
        // No axis of a mesh: the first and the last stage.
        if (succeeded(parser.parseOptionalKeyword("tie"))) {
          numbers.push_back(kTieAxis);
          return success();
        }
        mega::Axis axis;
        if (parseAxis(parser, axis)) {
          return failure();
        }
        numbers.push_back(static_cast<int32_t>(axis));
        return success();
      })) {
    return failure();
  }
  axes = parser.getBuilder().getDenseI32ArrayAttr(numbers);
  return success();
}

static std::string axesText(ArrayRef<int32_t> axes) {
  std::string text;
  for (int32_t axis : axes) {
    text += text.empty() ? "{" : ", ";
    text += axis >= 0 && axis < kAxisCount
                ? mega::name(static_cast<mega::Axis>(axis))
            : axis == kTieAxis ? "tie"
                               : "?";
  }
  return text.empty() ? "{}" : text + "}";
}

void mega::dist::printAxes(OpAsmPrinter &printer, Operation *,
                           DenseI32ArrayAttr axes) {
  printer << axesText(axes.asArrayRef());
}

/// `<[{}, {tp}]>`. The parser of attributes would take the type that follows.
static ParseResult parseLayout(OpAsmParser &parser, LayoutAttr &layout) {
  layout = dyn_cast_or_null<LayoutAttr>(LayoutAttr::parse(parser, {}));
  return success(layout != nullptr);
}
static void printLayout(OpAsmPrinter &printer, Operation *, LayoutAttr layout) {
  layout.print(printer);
}

#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"

static SmallVector<int32_t> numbersOf(ArrayRef<mega::Axis> axes) {
  return llvm::map_to_vector(
      axes, [](mega::Axis axis) { return static_cast<int32_t>(axis); });
}

static LogicalResult verifyConversion(Operation *op, Conversion conversion,
                                      ArrayRef<int32_t> axes) {
  const auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  const auto to = cast<RankedTensorType>(op->getResult(0).getType());
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType()) {
    return op->emitOpError() << "changes " << from << " to " << to
                             << "; a conversion changes the layout only";
  }
  if (!layoutOf(from) || !layoutOf(to)) {
    return op->emitOpError()
           << "converts " << from << " to " << to << "; both need a layout";
  }
  auto change =
      changeBetween(layoutOf(from).getLayout(), layoutOf(to).getLayout());
  if (!change.isOk()) {
    return op->emitOpError() << change.status().message();
  }
  const SmallVector<int32_t> changed = numbersOf(change->axes);
  if (change->conversion != conversion || ArrayRef<int32_t>(changed) != axes) {
    return op->emitOpError()
           << "says " << mega::name(conversion) << " over " << axesText(axes)
           << " but the layouts differ by " << mega::name(change->conversion)
           << " over " << axesText(changed);
  }
  return success();
}

#define MEGA_CONVERSION(op, kind)                                              \
  Conversion op::getConversion() { return Conversion::kind; }                  \
  LogicalResult op::verify() {                                                 \
    return verifyConversion(*this, getConversion(), getAxes());                \
  }
MEGA_CONVERSION(ReplicateOp, Replicate)
MEGA_CONVERSION(AssumeInvariantOp, AssumeInvariant)
MEGA_CONVERSION(SliceOp, Slice)
MEGA_CONVERSION(ToPartialOp, ToPartial)
MEGA_CONVERSION(AllGatherOp, AllGather)
MEGA_CONVERSION(AllToAllOp, AllToAll)
MEGA_CONVERSION(AllReduceOp, AllReduce)
MEGA_CONVERSION(ReduceScatterOp, ReduceScatter)
#undef MEGA_CONVERSION

Value mega::dist::createConversion(OpBuilder &builder, Location loc, Value x,
                                   LayoutAttr layout) {
  const auto type = cast<RankedTensorType>(x.getType());
  auto change = changeBetween(layoutOf(type).getLayout(), layout.getLayout());
  if (!change.isOk()) {
    emitError(loc) << type << " cannot become <" << layout.getLayout().str()
                   << "> by one conversion: " << change.status().message();
    return {};
  }
  const RankedTensorType result = withLayout(type, layout);
  const SmallVector<int32_t> axes = numbersOf(change->axes);
  switch (change->conversion) {
  case Conversion::None:
    return x;
  case Conversion::Replicate:
    return ReplicateOp::create(builder, loc, result, x, axes);
  case Conversion::AssumeInvariant:
    return AssumeInvariantOp::create(builder, loc, result, x, axes);
  case Conversion::Slice:
    return SliceOp::create(builder, loc, result, x, axes);
  case Conversion::ToPartial:
    return ToPartialOp::create(builder, loc, result, x, axes);
  case Conversion::AllGather:
    return AllGatherOp::create(builder, loc, result, x, axes);
  case Conversion::AllToAll:
    return AllToAllOp::create(builder, loc, result, x, axes);
  case Conversion::AllReduce:
    return AllReduceOp::create(builder, loc, result, x, axes);
  case Conversion::ReduceScatter:
    return ReduceScatterOp::create(builder, loc, result, x, axes);
  }
  llvm_unreachable("every conversion has an op");
}

Value mega::dist::createTranspose(OpBuilder &builder, Location loc, Value grad,
                                  RankedTensorType forward) {
  auto dual = layoutOf(forward).getLayout().dual();
  if (!dual.isOk()) {
    emitError(loc) << dual.status().message();
    return {};
  }
  return createConversion(builder, loc, grad,
                          LayoutAttr::get(builder.getContext(), *dual));
}
