#include "passes/Compile.h"

#include "dialects/Register.h"
#include "dialects/exec/Exec.h"
#include "passes/Applications.h"
#include "passes/EmitPlan.h"
#include "passes/StagePlans.h"
#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/Verifier.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"

using namespace mlir;

namespace mega {

Status checkNesting(llvm::StringRef text) {
  int depth = 0;
  int line = 1;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    line += c == '\n';
    if (inString) {
      if (c == '\\') {
        ++i;
      } else if (c == '"' || c == '\n') {
        inString = false;
      }
      continue;
    }
    if (c == '"') {
      inString = true;
    } else if (c == '/' && i + 1 < text.size() && text[i + 1] == '/') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == 'a' &&
               (text.substr(i).starts_with("affine_map") ||
                text.substr(i).starts_with("affine_set")) &&
               (i == 0 ||
                llvm::StringRef("<([{,=: \t\n").contains(text[i - 1]))) {
      // Their expressions nest without brackets.
      return makeError(Code::Failed,
                       "line {}: a model has no affine maps or sets", line);
    } else if (c == '(' || c == '[' || c == '{' || c == '<') {
      if (++depth > kMaxNesting) {
        return makeError(Code::Failed, "line {}: brackets nest deeper than {}",
                         line, kMaxNesting);
      }
    } else if (c == ')' || c == ']' || c == '}' ||
               (c == '>' && i > 0 && text[i - 1] != '-')) {
      depth = std::max(depth - 1, 0);
    }
  }
  return Status::ok();
}

namespace {

/// `NN-phase.mlir` in the dump directory.
Status dump(ModuleOp module, const std::string &directory, size_t number,
            llvm::StringRef phase) {
  if (directory.empty()) {
    return Status::ok();
  }
  if (const std::error_code error =
          llvm::sys::fs::create_directories(directory)) {
    return ioError("cannot create {}: {}", directory, error.message());
  }
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(
      path, fmt::format("{:02}-{}.mlir", number, std::string_view(phase)));
  std::string message;
  auto file = openOutputFile(path, &message);
  if (!file) {
    return ioError("{}", message);
  }
  module.print(file->os());
  file->keep();
  return Status::ok();
}

Status rejected() { return {Code::Failed, "the model was rejected"}; }

/// The phases, on a whole model and on its stages.
class Compilation {
public:
  Compilation(MLIRContext &context, const CompileRequest &request,
              const std::string &source)
      : context(context), request(request), source(source) {}

  /// The phases of a stage, or those before.
  Status runPhases(ModuleOp module, bool ofStage, int64_t stage) {
    CompileOptions options = request.options;
    options.stage = stage;
    size_t number = 0;
    for (const Phase &phase : phases()) {
      // A plan of one stage is not partitioned.
      if (options.pp == 1 && phase.name == "partition") {
        continue;
      }
      ++number;
      if (phase.ofStage != ofStage) {
        continue;
      }
      PassManager pm(&context);
      phase.build(pm, options);
      if (failed(pm.run(module))) {
        return rejected();
      }
      const std::string name =
          phase.name.str() +
          (ofStage && options.pp > 1 ? fmt::format(".stage{}", stage) : "");
      MEGA_RETURN_IF_ERROR(dump(module, request.dumpDirectory, number, name));
    }
    return Status::ok();
  }

  /// Of a module that has been through the phases before those of a stage.
  StatusOr<plan::PlanT> plan(ModuleOp module) {
    if (request.options.pp == 1) {
      MEGA_RETURN_IF_ERROR(runPhases(module, true, 0));
      return emit(module, request.flags, source);
    }
    tfm::ModelOp model = findModel(module);
    if (!model) {
      return rejected();
    }
    MEGA_ASSIGN_OR_RETURN(const StagePlans stages,
                          StagePlans::create(model, request.options));
    Status failure;
    auto whole = stages.assemble([&](int64_t stage) -> FailureOr<plan::PlanT> {
      OwningOpRef<ModuleOp> own(module.clone());
      failure = runPhases(*own, true, stage);
      if (!failure.isOk()) {
        return mlir::failure();
      }
      auto plan = emit(*own, "", "");
      if (!plan.isOk()) {
        failure = std::move(plan).takeStatus();
        return mlir::failure();
      }
      return std::move(*plan);
    });
    if (failed(whole)) {
      return failure;
    }
    MEGA_RETURN_IF_ERROR(stages.verify(*whole));
    whole->options = request.flags;
    whole->source = source;
    return std::move(*whole);
  }

private:
  StatusOr<plan::PlanT> emit(ModuleOp module, StringRef flags, StringRef text) {
    CompileOptions options = request.options;
    if (options.sequence == 0) {
      // BindShapes took the model's own; every input has it.
      auto input = *module.getOps<exec::InputOp>().begin();
      const auto type = cast<exec::BufferType>(input.getType());
      const Layout layout =
          type.getLayout() ? type.getLayout().getLayout() : Layout();
      options.sequence =
          type.getShape()[1] * layout.shards(1, dist::meshOf(module));
    }
    auto plan = emitPlan(module, options, flags, text);
    if (failed(plan)) {
      return rejected();
    }
    return std::move(*plan);
  }

  MLIRContext &context;
  const CompileRequest &request;
  const std::string &source;
};

} // namespace

StatusOr<std::vector<std::byte>>
compile(std::unique_ptr<llvm::MemoryBuffer> model,
        const CompileRequest &request) {
  const std::string source = model->getBuffer().str();
  const std::string name = model->getBufferIdentifier().str();
  MEGA_RETURN_IF_ERROR_CONTEXT(checkNesting(source), "{}", name);
  // The plan keeps it.
  if (Status status = checkText("the model", source); !status.isOk()) {
    return makeError(Code::Failed, "{}: {}", name, status.message());
  }

  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // The line of the model says where; the whole op would bury it.
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(model), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module) {
    return rejected();
  }
  MEGA_RETURN_IF_ERROR(dump(*module, request.dumpDirectory, 0, "input"));
  Compilation compilation(context, request, source);
  MEGA_RETURN_IF_ERROR(compilation.runPhases(*module, false, 0));
  MEGA_ASSIGN_OR_RETURN(plan::PlanT plan, compilation.plan(*module));
  std::vector<std::byte> bytes = packPlan(plan);
  auto loaded = loadPlan(bytes);
  if (!loaded.isOk()) {
    return Status(Code::Internal, "the compiler made a plan that the loader "
                                  "refuses: " +
                                      loaded.status().message());
  }
  const Status verified = verifyPlan(loaded->root());
  if (!verified.isOk()) {
    return Status(Code::Internal,
                  "the compiler made a plan that does not verify: " +
                      verified.message());
  }
  return bytes;
}

} // namespace mega
