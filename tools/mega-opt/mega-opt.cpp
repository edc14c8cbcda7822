//===- mega-opt.cpp - Runs single passes on IR, for tests and debugging ---===//
#include "dialects/Register.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect>();
  mega::registerDialects(registry);
  mlir::registerTransformsPasses();
  mega::registerMegaPasses();
  mega::registerPhases();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Mega pass driver\n", registry));
}
