//===- ModelOps.cpp - Parameters, blocks, models --------------------------===//
#include "dialects/tfm/Tfm.h"

#include "llvm/ADT/StringSet.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mega;
using namespace mega::tfm;

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// More elements than any parameter has; keeps every size in 64 bits of bytes.
static constexpr int64_t kMaxElements = int64_t{1} << 44;

static LogicalResult verifyParameter(Operation *op, RankedTensorType type,
                                     Initializer initializer, double value) {
  if (!type.hasStaticShape() || type.getRank() < 1 || type.getRank() > 2 ||
      llvm::is_contained(type.getShape(), 0)) {
    return op->emitOpError()
           << "a parameter is a static vector or matrix, not " << type;
  }
  int64_t elements = 1;
  for (int64_t extent : type.getShape()) {
    if (extent > kMaxElements / elements) {
      return op->emitOpError() << "parameter " << type << " has more than "
                               << kMaxElements << " elements";
    }
    elements *= extent;
  }
  if (!std::isfinite(value) ||
      (initializer == Initializer::Normal && value < 0)) {
    return op->emitOpError()
           << "initialises with " << value << ", expected a finite number"
           << (initializer == Initializer::Normal ? ", not negative" : "");
  }
  return success();
}

LogicalResult ParamOp::verify() {
  return verifyParameter(*this, getResult().getType(), getInitializer(),
                         getValueAttr().getValueAsDouble());
}

LogicalResult SharedOp::verify() {
  return verifyParameter(*this, cast<RankedTensorType>(getType()),
                         getInitializer(), getValueAttr().getValueAsDouble());
}

void ParamOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getName());
}

void UseOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getSymbol());
}

LogicalResult UseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto shared =
      symbols.lookupNearestSymbolFrom<SharedOp>(*this, getSymbolAttr());
  if (!shared) {
    return emitOpError() << "no tfm.shared named @" << getSymbol();
  }
  const auto declared = cast<RankedTensorType>(shared.getType());
  const auto used = cast<RankedTensorType>(getResult().getType());
  if (declared.getShape() != used.getShape()) {
    return (emitOpError() << "reads " << used << " but @" << getSymbol()
                          << " is " << declared)
               .attachNote(shared.getLoc())
           << "declared here";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Function-like ops
//===----------------------------------------------------------------------===//

/// Signature and attributes of a function-like op, then its body.
static ParseResult parseFunctionLike(OpAsmParser &parser,
                                     OperationState &result,
                                     StringAttr typeName,
                                     StringAttr argAttrsName,
                                     StringAttr resAttrsName) {
  const auto buildType =
      [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
         function_interface_impl::VariadicFlag,
         std::string &) { return builder.getFunctionType(inputs, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, typeName, buildType,
      argAttrsName, resAttrsName);
}

/// Results of `terminator` are those of the signature.
static LogicalResult verifyReturned(FunctionOpInterface function,
                                    Operation *terminator, StringRef verb) {
  if (function.getResultTypes() !=
      ArrayRef<Type>(SmallVector<Type>(terminator->getOperandTypes()))) {
    return terminator->emitOpError()
           << verb << " (" << terminator->getOperandTypes() << ") but @"
           << function.getName() << " has results ("
           << function.getResultTypes() << ")";
  }
  return success();
}

ParseResult BlockOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFunctionLike(parser, result, getFunctionTypeAttrName(result.name),
                           getArgAttrsAttrName(result.name),
                           getResAttrsAttrName(result.name));
}

void BlockOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult BlockOp::verify() {
  auto yield = dyn_cast_or_null<YieldOp>(
      getBody().front().empty() ? nullptr : &getBody().front().back());
  if (!yield) {
    return emitOpError() << "must end in tfm.yield";
  }
  if (failed(verifyReturned(*this, yield, "yields"))) {
    return failure();
  }
  llvm::StringSet<> names;
  llvm::StringSet<> dropouts;
  for (Operation &op : getBody().front()) {
    if (auto param = dyn_cast<ParamOp>(op);
        param && !names.insert(param.getName()).second) {
      return param.emitOpError()
             << "a parameter \"" << param.getName() << "\" exists already";
    }
    auto random = dyn_cast<Randomized>(op);
    const StringAttr dropout = random ? random.getRandomName() : StringAttr();
    if (dropout && !dropouts.insert(dropout.getValue()).second) {
      return op.emitOpError() << "a dropout named " << dropout
                              << " exists already; the two would use one mask";
    }
  }
  return success();
}

ParseResult FunctionOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFunctionLike(parser, result, getFunctionTypeAttrName(result.name),
                           getArgAttrsAttrName(result.name),
                           getResAttrsAttrName(result.name));
}

void FunctionOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult FunctionOp::verify() {
  auto terminator = dyn_cast_or_null<ReturnOp>(
      getBody().front().empty() ? nullptr : &getBody().front().back());
  if (!terminator) {
    return emitOpError() << "must end in tfm.return";
  }
  const int64_t savedResults = getSavedResults();
  const int64_t savedArguments = getSavedArguments();
  if (savedResults < 0 || savedResults > getNumResults()) {
    return emitOpError() << "saves " << savedResults << " of "
                         << getNumResults() << " results";
  }
  if (savedArguments < 0 || savedArguments > getNumArguments()) {
    return emitOpError() << "has " << savedArguments << " saved of "
                         << getNumArguments() << " arguments";
  }
  return verifyReturned(*this, terminator, "returns");
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

LogicalResult ModelOp::verifyRegions() {
  llvm::StringSet<> inputs;
  llvm::StringSet<> terms;
  for (Operation &op : getBody().front()) {
    if (!isa<InputOp, CallOp, RepeatOp, CountValidOp, LossTermOp, OutputOp,
             ReceiveOp, SendOp, ElsewhereOp>(op)) {
      return op.emitOpError() << "cannot stand in a tfm.model; put it in a "
                                 "tfm.block and call that";
    }
    if (auto input = dyn_cast<InputOp>(op);
        input && !inputs.insert(input.getName()).second) {
      return input.emitOpError()
             << "an input \"" << input.getName() << "\" exists already";
    }
    if (auto term = dyn_cast<LossTermOp>(op);
        term && !terms.insert(term.getName()).second) {
      return term.emitOpError()
             << "a loss term \"" << term.getName() << "\" exists already";
    }
  }
  return success();
}

void InputOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getName());
}

LogicalResult LossTermOp::verify() {
  auto count = getCount().getDefiningOp<CountValidOp>();
  if (!count || !count.getLabels().getDefiningOp<InputOp>()) {
    return emitOpError() << "the count must be a tfm.count_valid of an input, "
                            "so that it is known before the first backward";
  }
  return success();
}

/// `block` takes `inputs` and yields `results`.
static LogicalResult verifySignature(Operation *op, BlockOp block,
                                     TypeRange inputs, TypeRange results) {
  if (TypeRange(block.getArgumentTypes()) != inputs ||
      TypeRange(block.getResultTypes()) != results) {
    return (op->emitOpError()
            << "applies (" << inputs << ") -> (" << results << ") but @"
            << block.getSymName() << " is (" << block.getArgumentTypes()
            << ") -> (" << block.getResultTypes() << ")")
               .attachNote(block.getLoc())
           << "block defined here";
  }
  return success();
}

static BlockOp lookupBlock(Operation *op, SymbolTableCollection &symbols,
                           FlatSymbolRefAttr name) {
  auto block = symbols.lookupNearestSymbolFrom<BlockOp>(op, name);
  if (!block) {
    op->emitOpError() << "no tfm.block named " << name;
  }
  return block;
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  BlockOp block = lookupBlock(*this, symbols, getCalleeAttr());
  if (!block) {
    return failure();
  }
  if (failed(verifySignature(*this, block, getArguments().getTypes(),
                             getResultTypes()))) {
    return failure();
  }
  if (block.getBody().front().getOps<ParamOp>().empty()) {
    return success();
  }
  for (Operation &other : *(*this)->getBlock()) {
    if (&other == getOperation()) {
      break;
    }
    if (auto call = dyn_cast<CallOp>(other);
        call && call.getCallee() == getCallee()) {
      return (emitOpError() << "@" << getCallee()
                            << " has parameters and is called twice; use "
                               "tfm.repeat, or tfm.shared parameters")
                 .attachNote(call.getLoc())
             << "first call";
    }
  }
  return success();
}

FlatSymbolRefAttr RepeatOp::blockOf(int64_t index) {
  int64_t cycle = 0;
  for (int64_t count : getCounts()) {
    cycle += count;
  }
  int64_t position = index % cycle;
  for (auto [block, count] : llvm::zip(getBlocks(), getCounts())) {
    if (position < count) {
      return cast<FlatSymbolRefAttr>(block);
    }
    position -= count;
  }
  llvm_unreachable("position is below the length of the cycle");
}

/// The compiler looks at every application.
static constexpr int64_t kMostApplications = 4096;

LogicalResult RepeatOp::verify() {
  const auto times = static_cast<int64_t>(getTimes());
  if (times < 1) {
    return emitOpError() << "repeats " << times
                         << " times, expected at least 1";
  }
  if (times > kMostApplications) {
    return emitOpError() << "repeats " << times << " times, expected at most "
                         << kMostApplications;
  }
  if (getBlocks().empty() || getBlocks().size() != getCounts().size()) {
    return emitOpError() << "needs a count for each of its blocks";
  }
  for (int64_t count : getCounts()) {
    if (count < 1) {
      return emitOpError() << "a block of the cycle occurs " << count
                           << " times, expected at least 1";
    }
    if (count > kMostApplications) {
      return emitOpError() << "a block of the cycle occurs " << count
                           << " times, expected at most " << kMostApplications;
    }
  }
  const auto from = static_cast<int64_t>(getFrom());
  if (from < 0 || from > std::numeric_limits<int32_t>::max()) {
    return emitOpError() << "numbers its applications from " << from;
  }
  return success();
}

LogicalResult RepeatOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (Attribute name : getBlocks()) {
    BlockOp block = lookupBlock(*this, symbols, cast<FlatSymbolRefAttr>(name));
    if (!block) {
      return failure();
    }
    SmallVector<Type> inputs(getCarried().getTypes());
    llvm::append_range(inputs, getInvariants().getTypes());
    if (failed(verifySignature(*this, block, inputs, getResultTypes()))) {
      return failure();
    }
  }
  return success();
}

/// `@layer` or `[@sliding x5, @full]`.
static ParseResult parseCycle(OpAsmParser &parser, ArrayAttr &blocks,
                              DenseI64ArrayAttr &counts) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> numbers;
  const auto parseOne = [&]() -> ParseResult {
    StringAttr name;
    if (parser.parseSymbolName(name)) {
      return failure();
    }
    names.push_back(FlatSymbolRefAttr::get(name));
    int64_t count = 1;
    StringRef keyword;
    const SMLoc loc = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalKeyword(&keyword))) {
      if (!keyword.consume_front("x") || keyword.getAsInteger(10, count)) {
        return parser.emitError(loc) << "expected a count such as x5";
      }
    }
    numbers.push_back(count);
    return success();
  };
  if (succeeded(parser.parseOptionalLSquare())) {
    if (parser.parseCommaSeparatedList(parseOne) || parser.parseRSquare()) {
      return failure();
    }
  } else {
    StringAttr name;
    if (parser.parseSymbolName(name)) {
      return failure();
    }
    names.push_back(FlatSymbolRefAttr::get(name));
    numbers.push_back(1);
  }
  blocks = parser.getBuilder().getArrayAttr(names);
  counts = parser.getBuilder().getDenseI64ArrayAttr(numbers);
  return success();
}

ParseResult RepeatOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  ArrayAttr blocks;
  DenseI64ArrayAttr counts;
  int64_t times = 0;
  int64_t from = 0;
  StringAttr prefix;
  SmallVector<OpAsmParser::UnresolvedOperand> carried;
  SmallVector<OpAsmParser::UnresolvedOperand> invariants;
  SmallVector<Type> carriedTypes;
  SmallVector<Type> invariantTypes;
  if (parseCycle(parser, blocks, counts) || parser.parseKeyword("times") ||
      parser.parseInteger(times) ||
      parser.parseOperandList(carried, AsmParser::Delimiter::Paren)) {
    return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("with")) &&
      parser.parseOperandList(invariants, AsmParser::Delimiter::Paren)) {
    return failure();
  }
  if (parser.parseKeyword("prefix") ||
      parser.parseAttribute(prefix, parser.getBuilder().getNoneType())) {
    return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("from")) &&
      parser.parseInteger(from)) {
    return failure();
  }
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseTypeList(carriedTypes)) {
    return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("with")) &&
      parser.parseTypeList(invariantTypes)) {
    return failure();
  }
  Properties &properties = result.getOrAddProperties<Properties>();
  properties.blocks = blocks;
  properties.counts = counts;
  properties.times = builder.getI64IntegerAttr(times);
  properties.from = builder.getI64IntegerAttr(from);
  properties.prefix = prefix;
  properties.operandSegmentSizes = {static_cast<int32_t>(carried.size()),
                                    static_cast<int32_t>(invariants.size())};
  const SMLoc loc = parser.getNameLoc();
  result.addTypes(carriedTypes);
  return failure(
      parser.resolveOperands(carried, carriedTypes, loc, result.operands) ||
      parser.resolveOperands(invariants, invariantTypes, loc, result.operands));
}

void RepeatOp::print(OpAsmPrinter &printer) {
  printer << " ";
  const bool single = getBlocks().size() == 1 && getCounts().front() == 1;
  printer << (single ? "" : "[");
  llvm::interleaveComma(llvm::zip(getBlocks(), getCounts()), printer,
                        [&](auto item) {
                          printer << std::get<0>(item);
                          if (std::get<1>(item) != 1) {
                            printer << " x" << std::get<1>(item);
                          }
                        });
  printer << (single ? "" : "]");
  printer << " times " << static_cast<int64_t>(getTimes()) << "("
          << getCarried() << ")";
  if (!getInvariants().empty()) {
    printer << " with (" << getInvariants() << ")";
  }
  printer << " prefix " << getPrefixAttr();
  if (getFrom() != 0) {
    printer << " from " << static_cast<int64_t>(getFrom());
  }
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {"blocks", "counts", "times", "prefix", "from", "operandSegmentSizes"});
  printer << " : ";
  llvm::interleaveComma(getCarried().getTypes(), printer);
  if (!getInvariants().empty()) {
    printer << " with ";
    llvm::interleaveComma(getInvariants().getTypes(), printer);
  }
}
