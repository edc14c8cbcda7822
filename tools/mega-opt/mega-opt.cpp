//===- mega-opt.cpp - Runs single passes on IR, for tests and debugging ---===//
#include "dialects/Register.h"
#include "passes/Compile.h"
#include "passes/Passes.h"

#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect>();
  mega::registerDialects(registry);
  mlir::registerTransformsPasses();
  mega::registerMegaPasses();
  mega::registerPhases();

  llvm::InitLLVM init(argc, argv);
  const auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Mega pass driver\n", registry);
  std::string error;
  auto model = mlir::openInputFile(input, &error);
  if (!model) {
    llvm::errs() << "mega-opt: error: " << error << "\n";
    return static_cast<int>(mega::Code::Io);
  }
  if (mega::Status status = mega::checkNesting(model->getBuffer());
      !status.isOk()) {
    llvm::errs() << "mega-opt: error: " << status.message() << "\n";
    return static_cast<int>(status.code());
  }
  auto file = mlir::openOutputFile(output, &error);
  if (!file) {
    llvm::errs() << "mega-opt: error: " << error << "\n";
    return static_cast<int>(mega::Code::Io);
  }
  if (failed(
          mlir::MlirOptMain(file->os(), std::move(model), registry,
                            mlir::MlirOptMainConfig::createFromCLOptions()))) {
    return static_cast<int>(mega::Code::Failed);
  }
  file->keep();
  return 0;
}
