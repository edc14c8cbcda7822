//===- Exec.cpp - Buffer type, launches -----------------------------------===//
#include "dialects/exec/Exec.h"

#include "dialects/Float.h"
#include "dialects/dist/Dist.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mega::exec;
using mega::dist::parseAxes;
using mega::dist::printAxes;

static ParseResult parseIntegers(OpAsmParser &parser, DenseI64ArrayAttr &attr);
static void printIntegers(OpAsmPrinter &printer, Operation *,
                          DenseI64ArrayAttr attr);
static ParseResult parseFloats(OpAsmParser &parser, DenseF64ArrayAttr &attr);
static void printFloats(OpAsmPrinter &printer, Operation *,
                        DenseF64ArrayAttr attr);

#include "dialects/exec/ExecDialect.cpp.inc"
#include "dialects/exec/ExecEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/exec/ExecTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/exec/ExecOps.cpp.inc"

void ExecDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/exec/ExecTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/ExecOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// !exec.buf
//===----------------------------------------------------------------------===//

static mega::BufferType makePlain(ArrayRef<int64_t> shape, Type elementType,
                                  int64_t rowStride) {
  mega::BufferType plain;
  plain.type =
      mega::dist::toDataType(elementType).value_or(mega::DataType::F32);
  plain.rank = static_cast<int>(shape.size());
  for (size_t i = 0; i < shape.size() && i < mega::BufferType::kMaxRank; ++i) {
    plain.dims[i] = shape[i];
  }
  plain.rowStride = rowStride;
  return plain;
}

Type BufferType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element)) {
    return {};
  }
  int64_t stride = makePlain(shape, element, 0).rowSize();
  if (succeeded(parser.parseOptionalKeyword("stride")) &&
      parser.parseInteger(stride)) {
    return {};
  }
  dist::LayoutAttr layout;
  if (succeeded(parser.parseOptionalComma()) && parser.parseAttribute(layout)) {
    return {};
  }
  if (parser.parseGreater()) {
    return {};
  }
  return BufferType::getChecked(
      [&] { return parser.emitError(parser.getNameLoc()); },
      parser.getContext(), shape, element, stride, layout);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << "<";
  for (int64_t extent : getShape()) {
    printer << extent << "x";
  }
  printer << getElementType();
  if (!plain().isContiguous()) {
    printer << " stride " << getRowStride();
  }
  if (getLayout() && !getLayout().getLayout().isInvariant()) {
    printer << ", ";
    printer.printAttribute(getLayout());
  }
  printer << ">";
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type elementType,
                                 int64_t rowStride, dist::LayoutAttr layout) {
  if (shape.size() > mega::BufferType::kMaxRank) {
    return emitError() << "a buffer has at most four dimensions, not "
                       << shape.size();
  }
  if (!mega::dist::toDataType(elementType)) {
    return emitError() << elementType << " is no buffer element type";
  }
  if (ShapedType::isDynamicShape(shape)) {
    return emitError() << "a buffer has static dimensions";
  }
  const int64_t row = makePlain(shape, elementType, 0).rowSize();
  if (rowStride < row) {
    return emitError() << "row stride " << rowStride
                       << " is smaller than the row of " << row;
  }
  return success();
}

BufferType BufferType::get(RankedTensorType tensor) {
  return BufferType::get(
      tensor.getContext(), tensor.getShape(), tensor.getElementType(),
      makePlain(tensor.getShape(), tensor.getElementType(), 0).rowSize(),
      dist::layoutOf(tensor));
}

mega::BufferType BufferType::plain() const {
  return makePlain(getShape(), getElementType(), getRowStride());
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::verify() {
  const mega::BufferType source = getSource().getType().plain();
  const mega::BufferType result = getResult().getType().plain();
  if (source.type != result.type || source.rows() != result.rows()) {
    return emitOpError() << "result " << toString(result)
                         << " does not have the rows of " << toString(source);
  }
  const auto first = static_cast<int64_t>(getFirst());
  if (first < 0 || first + result.rowSize() > source.rowStride) {
    return emitOpError() << "columns " << first << " to "
                         << first + result.rowSize()
                         << " leave the source's rows of " << source.rowStride;
  }
  if (result.rows() > 1 && result.rowStride != source.rowStride) {
    return emitOpError() << "row stride " << result.rowStride
                         << " is not the source's " << source.rowStride;
  }
  return success();
}

LogicalResult LaunchOp::verify() {
  const auto kernel =
      findKernel(std::string_view(getKernel().data(), getKernel().size()));
  if (!kernel) {
    return emitOpError() << "unknown kernel '" << getKernel() << "'";
  }
  SmallVector<mega::BufferType> types;
  for (Value buffer : getBuffers()) {
    types.push_back(cast<BufferType>(buffer.getType()).plain());
  }
  const ArrayRef<int64_t> integers = integerValues();
  const ArrayRef<double> floats = floatValues();
  const Status status =
      checkLaunch(*kernel, {{types.data(), types.size()},
                            {integers.data(), integers.size()},
                            {floats.data(), floats.size()}});
  if (!status.isOk()) {
    return emitOpError() << status.message();
  }
  return success();
}

static ParseResult parseIntegers(OpAsmParser &parser, DenseI64ArrayAttr &attr) {
  SmallVector<int64_t> values;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
        return parser.parseInteger(values.emplace_back());
      })) {
    return failure();
  }
  attr = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

static void printIntegers(OpAsmPrinter &printer, Operation *,
                          DenseI64ArrayAttr attr) {
  printer << "(";
  llvm::interleaveComma(attr.asArrayRef(), printer);
  printer << ")";
}

static ParseResult parseFloats(OpAsmParser &parser, DenseF64ArrayAttr &attr) {
  SmallVector<double> values;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
        return parser.parseFloat(values.emplace_back());
      })) {
    return failure();
  }
  attr = parser.getBuilder().getDenseF64ArrayAttr(values);
  return success();
}

static void printFloats(OpAsmPrinter &printer, Operation *,
                        DenseF64ArrayAttr attr) {
  printer << "(";
  llvm::interleaveComma(attr.asArrayRef(), printer, [&](double value) {
    printer << mega::floatLiteral(value);
  });
  printer << ")";
}
