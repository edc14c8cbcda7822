//===- Tfm.cpp - The dialect, shared assembly directives ------------------===//
#include "dialects/tfm/Tfm.h"

#include "dialects/Float.h"
#include "runtime/plan/Philox.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

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

#define GET_OP_CLASSES
#include "dialects/tfm/TfmOps.cpp.inc"

void TfmDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/tfm/TfmAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/tfm/TfmOps.cpp.inc"
      >();
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

ExecOperand ExecOperand::counter(StringRef name, BufferType type) {
  ExecOperand operand;
  operand.kind = Kind::Counter;
  operand.type = type;
  operand.name = name;
  return operand;
}
