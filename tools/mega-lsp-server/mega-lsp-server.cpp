//===- mega-lsp-server.cpp - Models in an editor --------------------------===//
//
// Speaks the language server protocol on standard input and output:
// diagnostics, hover, definitions, references and completion for .mlir files
// of this project. docs/editor.md says how editors start it.
//
//===----------------------------------------------------------------------===//
#include "dialects/Register.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect>();
  mega::registerDialects(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry)) ? 1 : 0;
}
