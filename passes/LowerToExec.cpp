//===- LowerToExec.cpp ----------------------------------------------------===//
//
// tfm.function -> exec.function. First every op states its launches over tensor
// values (Recorder); then values get buffers (Buffers); then launches are
// written out over exec buffers.
//
//===----------------------------------------------------------------------===//
#include "dialects/exec/Exec.h"
#include "dialects/pipe/Pipe.h"
#include "dialects/tfm/Tfm.h"
#include "passes/FunctionLowering.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mega {
#define GEN_PASS_DEF_LOWERTOEXEC
#include "passes/Passes.h.inc"
} // namespace mega

using namespace mlir;
using namespace mega;

namespace {

struct LowerToExecPass : mega::impl::LowerToExecBase<LowerToExecPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    ModuleState state(module);
    // Who saves lays out the frames that others read: forward before backward
    // before weight.
    const auto rank = [](tfm::FunctionOp function) {
      return function.getSymName().ends_with(".weight")     ? 2
             : function.getSymName().ends_with(".backward") ? 1
                                                            : 0;
    };
    SmallVector<tfm::FunctionOp> functions(module.getOps<tfm::FunctionOp>());
    llvm::stable_sort(functions, [&](tfm::FunctionOp a, tfm::FunctionOp b) {
      return rank(a) < rank(b);
    });
    for (tfm::FunctionOp function : functions) {
      OpBuilder builder(function);
      if (failed(lowerFunction(builder, function, state))) {
        return signalPassFailure();
      }
    }
    for (tfm::FunctionOp function : functions) {
      function.erase();
    }
    // Programs pass what functions take.
    for (auto program : module.getOps<pipe::ProgramOp>()) {
      for (Operation &op : program.getBody().front()) {
        for (Value result : op.getResults()) {
          result.setType(dist::localType(tfm::tensor(result), state.mesh()));
        }
      }
    }
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    state.emitSetup(builder);
    state.emitCounters(builder);
    state.emitGroups(builder);
  }
};

} // namespace
