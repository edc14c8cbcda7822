//===- Tfm.cpp - The dialect, shared assembly directives ------------------===//
#include "dialects/tfm/Tfm.h"

#include "dialects/Float.h"
#include "runtime/plan/Philox.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include <cmath>

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

#include "dialects/tfm/TfmDialect.cpp.inc"
#include "dialects/tfm/TfmEnums.cpp.inc"
#include "dialects/tfm/TfmInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/tfm/TfmAttrs.cpp.inc"

//===----------------------------------------------------------------------===//
// custom<...> directives
//===----------------------------------------------------------------------===//

/// `init(normal, 0.02)` or `init(ones)`.
static ParseResult parseInit(OpAsmParser &parser, InitializerAttr &initializer,
                             FloatAttr &value) {
  StringRef keyword;
  if (parser.parseKeyword("init") || parser.parseLParen()) {
    return failure();
  }
  const SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword)) {
    return failure();
  }
  const auto kind = symbolizeInitializer(keyword);
  if (!kind) {
    return parser.emitError(loc) << "unknown initializer '" << keyword
                                 << "' (known: zeros, ones, normal, constant)";
  }
  double number = 0;
  if (*kind == Initializer::Normal || *kind == Initializer::Constant) {
    if (parser.parseComma() || parser.parseFloat(number)) {
      return failure();
    }
  }
  initializer = InitializerAttr::get(parser.getContext(), *kind);
  value = parser.getBuilder().getF64FloatAttr(number);
  return parser.parseRParen();
}

static void printInit(OpAsmPrinter &printer, Operation *,
                      InitializerAttr initializer, FloatAttr value) {
  printer << "init(" << stringifyInitializer(initializer.getValue());
  if (initializer.getValue() == Initializer::Normal ||
      initializer.getValue() == Initializer::Constant) {
    printer << ", " << floatLiteral(value.getValueAsDouble());
  }
  printer << ")";
}

/// Nothing, or `dropout("name", 0.1)`.
static ParseResult parseNamedDropout(OpAsmParser &parser, StringAttr &name,
                                     FloatAttr &p) {
  if (failed(parser.parseOptionalKeyword("dropout"))) {
    return success();
  }
  return failure(parser.parseLParen() || parser.parseAttribute(name) ||
                 parser.parseComma() || mega::parseFloat(parser, p) ||
                 parser.parseRParen());
}

static void printNamedDropout(OpAsmPrinter &printer, Operation *,
                              StringAttr name, FloatAttr p) {
  if (name) {
    printer << "dropout(" << name << ", " << floatLiteral(p.getValueAsDouble())
            << ")";
  }
}

/// A string (a parameter of the block) or a symbol (a shared parameter).
static ParseResult parseTarget(OpAsmParser &parser, Attribute &target) {
  StringAttr symbol;
  if (succeeded(parser.parseOptionalSymbolName(symbol))) {
    target = FlatSymbolRefAttr::get(symbol);
    return success();
  }
  StringAttr name;
  if (parser.parseAttribute(name, parser.getBuilder().getNoneType())) {
    return failure();
  }
  target = name;
  return success();
}

static void printTarget(OpAsmPrinter &printer, Operation *, Attribute target) {
  printer << target;
}

//===----------------------------------------------------------------------===//
// #tfm.rope_scaling
//===----------------------------------------------------------------------===//

namespace {
/// A number of the attribute, in the order of its parameters.
struct ScalingNumber {
  StringRef name;
  bool linear, llama3, yarn;

  bool isOf(RopeScalingKind kind) const {
    switch (kind) {
    case RopeScalingKind::Linear:
      return linear;
    case RopeScalingKind::Llama3:
      return llama3;
    case RopeScalingKind::Yarn:
      return yarn;
    }
    return false;
  }
};

constexpr ScalingNumber kScalingNumbers[] = {
    {"factor", true, true, true},      {"low", false, true, false},
    {"high", false, true, false},      {"original", false, true, true},
    {"beta_fast", false, false, true}, {"beta_slow", false, false, true},
    {"attention", false, false, true},
};

SmallVector<FloatAttr, 7> numbersOf(RopeScalingAttr attr) {
  return {attr.getFactor(),   attr.getLow(),      attr.getHigh(),
          attr.getOriginal(), attr.getBetaFast(), attr.getBetaSlow(),
          attr.getAttention()};
}
} // namespace

Attribute RopeScalingAttr::parse(AsmParser &parser, Type) {
  const SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseLess() || parser.parseKeyword(&keyword)) {
    return {};
  }
  const auto kind = symbolizeRopeScalingKind(keyword);
  if (!kind) {
    parser.emitError(loc) << "unknown rope scaling '" << keyword
                          << "' (known: linear, llama3, yarn)";
    return {};
  }
  // What a kind has no use for is 1.
  Builder &builder = parser.getBuilder();
  SmallVector<FloatAttr, 7> numbers(7, builder.getF64FloatAttr(1.0));
  llvm::SmallBitVector given(7);
  while (succeeded(parser.parseOptionalComma())) {
    StringRef name;
    const SMLoc at = parser.getCurrentLocation();
    FloatAttr number;
    if (parser.parseKeyword(&name) || parser.parseLParen() ||
        mega::parseFloat(parser, number) || parser.parseRParen()) {
      return {};
    }
    const auto *it = llvm::find_if(kScalingNumbers, [&](const auto &known) {
      return known.name == name && known.isOf(*kind);
    });
    if (it == std::end(kScalingNumbers)) {
      parser.emitError(at) << keyword << " scaling has no '" << name << "'";
      return {};
    }
    const auto index = static_cast<unsigned>(it - kScalingNumbers);
    if (given.test(index)) {
      parser.emitError(at) << "'" << name << "' is given twice";
      return {};
    }
    given.set(index);
    numbers[index] = number;
  }
  if (parser.parseGreater()) {
    return {};
  }
  for (auto [index, known] : llvm::enumerate(kScalingNumbers)) {
    if (known.isOf(*kind) && !given.test(static_cast<unsigned>(index))) {
      parser.emitError(loc)
          << keyword << " scaling needs '" << known.name << "(...)'";
      return {};
    }
  }
  return parser.getChecked<RopeScalingAttr>(
      loc, parser.getContext(), *kind, numbers[0], numbers[1], numbers[2],
      numbers[3], numbers[4], numbers[5], numbers[6]);
}

void RopeScalingAttr::print(AsmPrinter &printer) const {
  printer << "<" << stringifyRopeScalingKind(getKind());
  for (auto [known, number] : llvm::zip(kScalingNumbers, numbersOf(*this))) {
    if (known.isOf(getKind())) {
      printer << ", " << known.name << "("
              << floatLiteral(number.getValueAsDouble()) << ")";
    }
  }
  printer << ">";
}

LogicalResult
RopeScalingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        RopeScalingKind kind, FloatAttr factor, FloatAttr low,
                        FloatAttr high, FloatAttr original, FloatAttr betaFast,
                        FloatAttr betaSlow, FloatAttr attention) {
  const FloatAttr numbers[] = {factor,   low,      high,     original,
                               betaFast, betaSlow, attention};
  for (auto [known, number] : llvm::zip(kScalingNumbers, numbers)) {
    const double value = number.getValueAsDouble();
    const double least = known.name == "factor" ? 1.0 : 0.0;
    if (!std::isfinite(value) || value < least || value == 0) {
      return emitError() << known.name << " is " << value << ", expected "
                         << (least == 1.0 ? "at least 1" : "a positive number");
    }
  }
  const auto ordered = [&](StringRef lower, FloatAttr less, StringRef upper,
                           FloatAttr more) -> LogicalResult {
    if (less.getValueAsDouble() >= more.getValueAsDouble()) {
      return emitError() << lower << " is " << less.getValueAsDouble() << ", "
                         << upper << " " << more.getValueAsDouble()
                         << ", expected a lower and a higher number";
    }
    return success();
  };
  if (kind == RopeScalingKind::Llama3) {
    return ordered("low", low, "high", high);
  }
  if (kind == RopeScalingKind::Yarn) {
    return ordered("beta_slow", betaSlow, "beta_fast", betaFast);
  }
  return success();
}

#define GET_OP_CLASSES
#include "dialects/tfm/TfmOps.cpp.inc"

void TfmDialect::initialize() {
  // The analyzer takes MLIR's lambdas, which capture nothing, for dangling.
#ifndef __clang_analyzer__
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/tfm/TfmAttrs.cpp.inc"
      >();
#endif
  addOperations<
#define GET_OP_LIST
#include "dialects/tfm/TfmOps.cpp.inc"
      >();
  attachConversionInterfaces(getContext());
}

//===----------------------------------------------------------------------===//
// Interface helpers
//===----------------------------------------------------------------------===//

static double tensorBytes(Type type) {
  const auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape()) {
    return 0;
  }
  return static_cast<double>(tensor.getNumElements()) *
         tensor.getElementTypeBitWidth() / 8;
}

OpCost mega::tfm::streamingCost(Operation *op) {
  OpCost cost;
  for (Type type : op->getOperandTypes()) {
    cost.bytes += tensorBytes(type);
  }
  for (Type type : op->getResultTypes()) {
    cost.bytes += tensorBytes(type);
  }
  return cost;
}

RankedTensorType mega::tfm::tensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

bool mega::tfm::isParameter(Value value) {
  return isa_and_nonnull<ParamOp, UseOp>(value.getDefiningOp());
}

RankedTensorType mega::tfm::gradientType(Value forward) {
  const auto type = cast<RankedTensorType>(forward.getType());
  const bool parameter =
      isa_and_nonnull<ParamOp, UseOp>(forward.getDefiningOp());
  const auto result = RankedTensorType::get(
      type.getShape(),
      parameter ? Float32Type::get(type.getContext()) : type.getElementType());
  const dist::LayoutAttr layout = dist::layoutOf(type);
  if (!layout) {
    return result;
  }
  // A maximum has no gradient; nobody asks for its type.
  auto dual = layout.getLayout().dual();
  return dist::withLayout(
      result,
      dual.isOk() ? dist::LayoutAttr::get(type.getContext(), *dual) : layout);
}

RankedTensorType mega::tfm::statisticsType(Value x, ArrayRef<int> dims) {
  const auto type = cast<RankedTensorType>(x.getType());
  SmallVector<int64_t> shape;
  for (int dim : dims) {
    shape.push_back(type.getDimSize(dim));
  }
  const auto result =
      RankedTensorType::get(shape, Float32Type::get(type.getContext()));
  const dist::LayoutAttr layout = dist::layoutOf(type);
  return layout ? dist::withLayout(result, dist::LayoutAttr::get(
                                               type.getContext(),
                                               layout.getLayout().select(dims)))
                : result;
}

bool mega::tfm::isPlaces(OpOperand &operand) {
  const auto isOneOf = [&](std::initializer_list<Value> places) {
    return llvm::is_contained(places, operand.get());
  };
  return llvm::TypeSwitch<Operation *, bool>(operand.getOwner())
      .Case<AddPositionsOp, RopeOp>(
          [&](auto op) { return isOneOf({op.getPositions()}); })
      .Case([&](DropoutOp op) {
        return isOneOf({op.getPositions(), op.getSegments()});
      })
      .Case([&](AttentionOp op) {
        return isOneOf({op.getQPositions(), op.getQSegments(),
                        op.getKPositions(), op.getKSegments()});
      })
      .Default(false);
}

LogicalResult mega::tfm::verifyPlaces(Operation *op, Value x, Value places,
                                      StringRef what) {
  if (places &&
      tensor(places).getShape() != tensor(x).getShape().take_front(2)) {
    return op->emitOpError() << what << " are " << tensor(places)
                             << ", expected one for each row "
                             << "of " << tensor(x);
  }
  return success();
}

LogicalResult mega::tfm::verifySoftcap(Operation *op, FloatAttr cap) {
  const double value = cap.getValueAsDouble();
  if (!(value >= 0 && std::isfinite(value))) {
    return op->emitOpError()
           << "the soft cap is " << value << ", expected a positive number";
  }
  return success();
}

IntegerAttr mega::tfm::randomKey(StringRef block, StringAttr name) {
  const std::string full = (block + "/" + name.getValue()).str();
  return Builder(name.getContext())
      .getI64IntegerAttr(static_cast<int64_t>(hashName(full)));
}

ExecOperand ExecOperand::columns(ValueRange values) {
  ExecOperand operand;
  operand.kind = Kind::Columns;
  operand.values.assign(values.begin(), values.end());
  return operand;
}

ExecOperand ExecOperand::rows(ValueRange values) {
  ExecOperand operand;
  operand.kind = Kind::Rows;
  operand.values.assign(values.begin(), values.end());
  return operand;
}

ExecOperand ExecOperand::scratchBuffer(BufferType type) {
  ExecOperand operand;
  operand.kind = Kind::Scratch;
  operand.type = type;
  return operand;
}

ExecOperand ExecOperand::state(StringRef region, int64_t offset,
                               BufferType type) {
  ExecOperand operand;
  operand.kind = Kind::State;
  operand.type = type;
  operand.name = region;
  operand.offset = offset;
  return operand;
}

ExecInteger mega::tfm::pieceStart(ExecContext &context, Value value, int dim) {
  ExecInteger start(0);
  const dist::LayoutAttr layout = dist::layoutOf(value.getType());
  if (!layout) {
    return start;
  }
  const Layout::Dimension axes =
      layout.getLayout().dims[static_cast<size_t>(dim)];
  int64_t extent = tensor(value).getDimSize(dim);
  for (int i = axes.count; i-- > 0;) {
    const mega::Axis axis = axes.axes[static_cast<size_t>(i)];
    start.terms.push_back({axis, extent});
    extent *= context.mesh().size(axis);
  }
  return start;
}

ExecOperand ExecOperand::counter(StringRef name, BufferType type) {
  ExecOperand operand;
  operand.kind = Kind::Counter;
  operand.type = type;
  operand.name = name;
  return operand;
}
