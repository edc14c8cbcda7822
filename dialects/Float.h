//===- Float.h - Floats in assembly formats ---------------------*- C++ -*-===//
//
// `custom<Float>($attr)` of every dialect: an F64Attr without its type, in the
// shortest form that reads back to the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_DIALECTS_FLOAT_H
#define MEGA_DIALECTS_FLOAT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include <charconv>
#include <string>

namespace mega {

inline std::string floatLiteral(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
  // MLIR's lexer wants a fraction: 1e-05 is written 1.0e-05.
  if (text.find('.') == std::string::npos &&
      text.find_first_of("ni") == std::string::npos) {
    const size_t exponent = text.find('e');
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return text;
}

inline mlir::ParseResult parseFloat(mlir::AsmParser &parser,
                                    mlir::FloatAttr &attr) {
  const bool negative = mlir::succeeded(parser.parseOptionalMinus());
  double value = 0;
  int64_t whole = 0;
  const mlir::OptionalParseResult integer = parser.parseOptionalInteger(whole);
  if (integer.has_value()) {
    if (failed(*integer)) {
      return mlir::failure();
    }
    value = static_cast<double>(whole);
  } else if (parser.parseFloat(value)) {
    return mlir::failure();
  }
  attr = parser.getBuilder().getF64FloatAttr(negative ? -value : value);
  return mlir::success();
}

inline void printFloat(mlir::OpAsmPrinter &printer, mlir::Operation *,
                       mlir::FloatAttr attr) {
  printer << floatLiteral(attr.getValueAsDouble());
}

} // namespace mega

#endif // MEGA_DIALECTS_FLOAT_H
