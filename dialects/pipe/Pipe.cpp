//===- Pipe.cpp - Programs, calls, schedules ------------------------------===//
#include "dialects/pipe/Pipe.h"

#include "dialects/tfm/Tfm.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mega;
using namespace mega::pipe;

#include "dialects/pipe/PipeDialect.cpp.inc"
#include "dialects/pipe/PipeEnums.cpp.inc"

/// `[@forward(0, 0), @backward(0, 0)]`: program, micro-batch, slot; `@f(0, 0,
/// 1)`: and buffer.
static ParseResult parseActions(OpAsmParser &parser, ArrayAttr &programs,
                                DenseI32ArrayAttr &actions) {
  SmallVector<Attribute> names;
  SmallVector<int32_t> numbers;
  llvm::DenseMap<StringAttr, int32_t> indices;
  const auto parseOne = [&]() -> ParseResult {
    StringAttr name;
    int32_t microBatch = 0;
    int32_t slot = 0;
    int32_t buffer = 0;
    if (parser.parseSymbolName(name) || parser.parseLParen() ||
        parser.parseInteger(microBatch) || parser.parseComma() ||
        parser.parseInteger(slot)) {
      return failure();
    }
    if ((succeeded(parser.parseOptionalComma()) &&
         parser.parseInteger(buffer)) ||
        parser.parseRParen()) {
      return failure();
    }
    const auto [it, inserted] =
        indices.try_emplace(name, static_cast<int32_t>(names.size()));
    if (inserted) {
      names.push_back(FlatSymbolRefAttr::get(name));
    }
    numbers.append({it->second, microBatch, slot, buffer});
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne)) {
    return failure();
  }
  programs = parser.getBuilder().getArrayAttr(names);
  actions = parser.getBuilder().getDenseI32ArrayAttr(numbers);
  return success();
}

static void printActions(OpAsmPrinter &printer, Operation *, ArrayAttr programs,
                         DenseI32ArrayAttr actions) {
  printer << "[";
  for (int64_t i = 0; i + 3 < actions.size(); i += 4) {
    printer << (i == 0 ? "" : ", ") << programs[actions[i]] << "("
            << actions[i + 1] << ", " << actions[i + 2];
    if (actions[i + 3] != 0) {
      printer << ", " << actions[i + 3];
    }
    printer << ")";
  }
  printer << "]";
}

#define GET_OP_CLASSES
#include "dialects/pipe/PipeOps.cpp.inc"

void PipeDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/pipe/PipeOps.cpp.inc"
      >();
}

void InputOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getName());
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (static_cast<int64_t>(getCount()) < 1) {
    return emitOpError() << "runs " << static_cast<int64_t>(getCount())
                         << " times, expected at least once";
  }
  for (unsigned i = 0; i < getNumResults(); ++i) {
    if (takesOver(i) && !getArguments()[i].hasOneUse()) {
      return emitOpError() << "takes over operand " << i
                           << ", which has other uses";
    }
    if (static_cast<int64_t>(getCount()) > 1 && !takesOver(i)) {
      return emitOpError() << "runs several times, but result " << i
                           << " is not its next operand";
    }
  }
  auto function =
      symbols.lookupNearestSymbolFrom<tfm::FunctionOp>(*this, getCalleeAttr());
  if (!function) {
    // After lowering the callee is an exec.function, which has no types.
    return symbols.lookupNearestSymbolFrom(*this, getCalleeAttr())
               ? success()
               : emitOpError() << "no function named " << getCalleeAttr();
  }
  const auto inputs =
      function.getArgumentTypes().drop_back(function.getSavedArguments());
  const auto results =
      function.getResultTypes().drop_back(function.getSavedResults());
  if (TypeRange(inputs) != TypeRange(getArguments().getTypes()) ||
      TypeRange(results) != TypeRange(getResultTypes())) {
    return emitOpError() << "calls (" << getArguments().getTypes() << ") -> ("
                         << getResultTypes() << ") but " << getCalleeAttr()
                         << " is (" << inputs << ") -> (" << results << ")";
  }
  return success();
}

LogicalResult ScheduleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (Attribute name : getPrograms()) {
    if (!symbols.lookupNearestSymbolFrom<ProgramOp>(
            *this, cast<FlatSymbolRefAttr>(name))) {
      return emitOpError() << "no pipe.program named " << name;
    }
  }
  const ArrayRef<int32_t> actions = getActions();
  for (size_t i = 0; i + 3 < actions.size(); i += 4) {
    if (actions[i + 1] < 0 ||
        actions[i + 1] >= static_cast<int64_t>(getMicroBatches())) {
      return emitOpError() << "action " << i / 4 << " has micro-batch "
                           << actions[i + 1] << " of "
                           << static_cast<int64_t>(getMicroBatches());
    }
  }
  return success();
}

LogicalResult PipelineOp::verifyRegions() {
  if (getSplitsWeight() && !getTrain()) {
    return emitOpError() << "splits weights but does not train";
  }
  int32_t expected = 0;
  for (Operation &op : getBody().front()) {
    auto stage = dyn_cast<StageOp>(op);
    if (!stage) {
      return op.emitOpError() << "is no pipe.stage";
    }
    if (stage.getNumber() != expected) {
      return stage.emitOpError()
             << "is stage " << stage.getNumber() << ", expected " << expected;
    }
    ++expected;
  }
  return success();
}

LogicalResult StageOp::verifyRegions() {
  for (Operation &op : getBody().front()) {
    if (!isa<RunOp, SendOp, ReceiveOp, CollectiveOp, WaitOp>(op)) {
      return op.emitOpError() << "is nothing that a stage does";
    }
  }
  return success();
}

LogicalResult WaitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return symbols.lookupNearestSymbolFrom(*this, getTargetAttr())
             ? success()
             : emitOpError()
                   << "nothing on this stage is named " << getTargetAttr();
}
